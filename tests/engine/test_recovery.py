"""An engine that ends, in order or not, and the next one on the same disk."""

import anyio
import pytest

from engine_stores import RefusingStore
from engine_witness import Witness, assert_standing, witnessed
from scripted_provider import Gate
from tallystick.contract.errors import AttemptUnresolvedError, DaemonError, StoreCorruptError
from tallystick.kernel import ManualClock

SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        return image["width"]

    plan = await ctx.run("storyboard.plan", {"brief": "a mug", "shots": 4})
    return await ctx.parallel([shot(number) for number in range(4)])
"""
READING = """
async def orchestrate(ctx, args):
    texts = []
    for number in range(3):
        text = await ctx.run("text.generate", {"prompt": f"line <{number}>"})
        texts.append(text["text"])
    return len(texts)
"""


def crash(store: RefusingStore, gate: Gate) -> None:
    """End an engine as a killed process ends: from here on nothing it does is durable."""
    store.die()
    gate.release()


async def crashed_in_the_fanout(
    witness: Witness, script: str = SCRIPT, containing: str = "<2>", answered: int = 4
) -> str:
    """Run until one call is in flight and the others are answered and committed, then crash."""
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        gate = witness.hold(containing=containing)
        run = await engine.submit(script)
        await gate.reached()
        history = await engine.history(run)
        while len(history.records) < answered:
            await anyio.lowlevel.checkpoint()
        crash(store, gate)
    return run


async def test_what_was_in_flight_at_a_crash_is_unresolved_and_the_rest_replays() -> None:
    witness = Witness()
    run = await crashed_in_the_fanout(witness)
    hits = witness.count()
    async with witnessed(witness) as (engine, _):
        report = await assert_standing(engine, run, lossy=True)
        assert (report.status, report.reason, report.phase) == ("interrupted", "TS-N003", "idle")
        assert [str(attempt.identity) for attempt in report.unresolved] == ["orchestrate.shot/#1 [2] 0"]
        with pytest.raises(AttemptUnresolvedError):
            await engine.resume(run)
        assert witness.count() == hits
        await engine.reconcile(run, report.unresolved[0].attempt, abandon=True, why="killed")
        resumed = await engine.resume(run)
        assert (resumed.status, resumed.calls.replayed, resumed.calls.executed) == ("completed", 4, 1)
        assert witness.count() == hits + 1
        await assert_standing(engine, run, lossy=True)


async def test_a_run_that_lost_only_read_only_calls_goes_on_by_itself() -> None:
    witness = Witness()
    run = await crashed_in_the_fanout(witness, READING, "<1>", 1)
    async with witnessed(witness) as (engine, _):
        report = await engine.end(run)
        assert (report.status, report.result, report.calls.replayed, witness.count()) == ("completed", 3, 1, 4)
        assert [launch.status for launch in report.launches] == ["interrupted", "completed"]
        await assert_standing(engine, run, lossy=True)


async def test_it_waits_for_its_user_where_the_daemon_is_told_so() -> None:
    witness = Witness()
    run = await crashed_in_the_fanout(witness, READING, "<1>", 1)
    async with witnessed(witness, daemon={"auto_resume": False}) as (engine, _):
        assert (await engine.end(run)).status == "interrupted"
        assert (await engine.resume(run)).status == "completed"


async def test_a_run_that_is_cut_off_again_and_again_is_not_started_again_by_itself() -> None:
    witness = Witness()
    run = await crashed_in_the_fanout(witness, READING, "<1>", 1)
    for _ in range(2):
        store = RefusingStore(witness.disk)
        async with witnessed(witness, store=store) as (engine, _):
            gate = witness.hold(containing="<1>")
            await gate.reached()
            crash(store, gate)
    async with witnessed(witness) as (engine, _):
        report = await engine.end(run)
        assert (report.status, len(report.launches)) == ("interrupted", 3)
        resumed = await engine.resume(run)
        assert resumed.status == "completed"


async def test_an_orderly_stop_lets_calls_settle_and_the_next_start_goes_on() -> None:
    witness = Witness()
    async with witnessed(witness) as (engine, _):
        gate = witness.hold(containing="<2>")
        run = await engine.submit(SCRIPT)
        await gate.reached()
        gate.release()
    assert witness.in_flight == 0
    hits = witness.count()
    async with witnessed(witness) as (engine, _):
        report = await engine.end(run)
        assert (report.status, report.result) == ("completed", [1024] * 4)
        assert [launch.status for launch in report.launches] == ["interrupted", "completed"]
        assert report.calls.replayed == hits
        assert witness.count() == 5
        await assert_standing(engine, run)


async def test_a_run_in_the_queue_at_an_orderly_stop_goes_on_at_the_next_start() -> None:
    witness = Witness()
    async with witnessed(witness, daemon={"max_live": 1}) as (engine, _):
        gate = witness.hold()
        first, second = await engine.submit(READING), await engine.submit(READING)
        await gate.reached()
        gate.release()
    async with witnessed(witness) as (engine, _):
        assert [(await engine.end(run)).status for run in (first, second)] == ["completed", "completed"]
        assert witness.count() == 6
        for run in (first, second):
            await assert_standing(engine, run)


async def test_calls_that_outlast_the_drain_are_unresolved_and_not_lost() -> None:
    clock = ManualClock()
    witness = Witness()
    async with (
        anyio.create_task_group() as tasks,
        witnessed(witness, clock=clock, daemon={"drain": 5.0}) as (engine, _),
    ):
        gate = witness.hold(containing="<2>")
        run = await engine.submit(SCRIPT)
        await gate.reached()
        tasks.start_soon(clock.advance, 60)
    assert [hit.payload["prompt"] for hit in witness.cancelled] == ["shot <2>"]
    async with witnessed(witness) as (engine, _):
        report = await engine.end(run)
        assert (report.status, len(report.unresolved)) == ("interrupted", 1)
        assert "stopped before the answer came" in report.unresolved[0].text
        await assert_standing(engine, run, lossy=True)


async def test_an_engine_that_is_being_stopped_starts_nothing_more() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(READING)).run
        await engine.host.service.launches.drain(1.0)
        with pytest.raises(DaemonError) as refused:
            await engine.submit(READING)
        assert refused.value.exit_code == 7
        with pytest.raises(DaemonError):
            await engine.resume(run)
        assert witness.count() == 3


async def test_a_damaged_run_does_not_keep_the_others_from_going_on() -> None:
    witness = Witness()
    damaged = await crashed_in_the_fanout(witness, READING, "<1>", 1)
    sane = await crashed_in_the_fanout(witness, READING, "<1>", 1)
    events = witness.disk.events
    first_attempt = next(at for at in witness.disk.by_run[damaged] if type(events[at - 1]).__name__ == "AttemptStarted")
    witness.disk.by_run[damaged].remove(first_attempt)
    async with witnessed(witness) as (engine, _):
        assert (await engine.end(sane)).status == "completed"
        with pytest.raises(StoreCorruptError, match="contradicts itself"):
            await engine.host.service.report(damaged)
