"""A store that refuses: nothing is sent without a durable attempt, no hit is lost, and the run goes on afterwards."""

import pytest

from engine_stores import Nth, RefusingStore
from engine_support import House
from engine_witness import Witness, assert_standing, is_unsure, witnessed
from tallystick.contract.errors import StoreUnavailableError
from tallystick.contract.events import AttemptEnded, AttemptStarted, Committed, LaunchEnded, LaunchStarted
from tallystick.engine.messages import ResumeRequest
from tallystick.providers.protocol import Refused

SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": "sharp"})
        return review["score"]

    scores = await ctx.parallel([shot(number) for number in range(3)])
    voice = await ctx.run("speech.generate", {"text": "done"})
    return [scores, voice["duration_s"]]
"""
RESULT = [[0.9, 0.9, 0.9], 4]
CALLS = 7
#: Created, revision, launch; attempts and records. What comes after them is the end of the launch.
BEFORE_THE_END = 3 + 2 * CALLS


async def submit(engine: House) -> str | None:
    """Return the run's id, None when it was refused."""
    try:
        return await engine.submit(SCRIPT)
    except StoreUnavailableError:
        return None


async def finish(engine: House, run: str) -> None:
    """Do what an operator does once the disk has room again."""
    for attempt in await engine.attempts(run):
        if attempt.effect == "side_effecting" and attempt.state in ("unresolved", "in_flight"):
            await engine.reconcile(run, attempt.attempt, abandon=True, why="the answer was lost")
    report = await engine.resume(run)
    assert (report.status, report.result) == ("completed", RESULT)


@pytest.mark.parametrize("onwards", [False, True], ids=["one event", "from one event on"])
async def test_whichever_event_is_refused_nothing_is_lost_and_the_run_goes_on(onwards: bool) -> None:
    nth, refused = 0, True
    while refused:
        nth += 1
        witness = Witness(shuffle=nth)
        store = RefusingStore(witness.disk)
        async with witnessed(witness, store=store) as (engine, _):
            store.refuses = Nth(nth, onwards=onwards)
            run = await submit(engine)
            if run is None:
                assert nth <= 3
                assert (witness.count(), witness.disk.events, witness.disk.rows) == (0, [], {})
                continue
            report = await engine.end(run)
            refused = store.refused > 0
            if nth <= BEFORE_THE_END:
                assert refused
                assert (report.status, report.exit_code) in {("stopped", 7), ("interrupted", 7), ("stopped", 5)}
                assert report.error is not None
                assert report.error.hint
            store.heal()
            assert witness.unannounced == []
            paid_before = witness.count()
            history = await engine.history(run)
            lost = [one for one in history.attempts.values() if is_unsure(one) or one.state == "in_flight"]
            assert paid_before <= len(history.records) + len(lost)
            await finish(engine, run)
            await assert_standing(engine, run, lossy=True)
            assert witness.count() <= CALLS + len(lost)


async def test_an_attempt_that_cannot_be_written_is_not_sent() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses = lambda event: isinstance(event, AttemptStarted)
        stopped = await engine.run(SCRIPT)
        assert (stopped.status, stopped.reason, stopped.exit_code, witness.count()) == ("stopped", "TS-S002", 7, 0)
        assert (stopped.calls.denied, stopped.calls.unresolved) == (0, 0)
        assert stopped.error is not None
        assert "not sent: the disk is full" in stopped.error.message
        await assert_standing(engine, stopped.run)
        store.heal()
        assert (await engine.resume(stopped.run)).result == RESULT
        assert witness.count() == CALLS


async def test_an_answer_that_cannot_be_written_leaves_its_attempt_unresolved_and_named() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses = lambda event: isinstance(event, Committed)
        stopped = await engine.run(SCRIPT)
        assert (stopped.status, stopped.reason, witness.count()) == ("stopped", "TS-S002", 3)
        assert (stopped.calls.executed, stopped.calls.denied, stopped.calls.unresolved) == (0, 0, 3)
        assert [attempt.state for attempt in await engine.attempts(stopped.run)] == ["unresolved"] * 3
        assert stopped.error is not None
        assert "could not be written down" in stopped.error.message
        assert not [event for event in witness.disk.events if type(event).__name__ == "CallDenied"]
        await assert_standing(engine, stopped.run, lossy=True)


async def test_a_read_only_answer_that_cannot_be_written_is_asked_for_again() -> None:
    script = 'async def orchestrate(ctx, args):\n    text = await ctx.run("text.generate", {"prompt": "x"})\n    return text["text"]\n'
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses = lambda event: isinstance(event, Committed)
        stopped = await engine.run(script)
        assert (stopped.reason, stopped.unresolved) == ("TS-S002", ())
        store.heal()
        resumed = await engine.resume(stopped.run)
        assert (resumed.status, witness.count()) == ("completed", 2)
        await assert_standing(engine, stopped.run, lossy=True)


async def test_an_artifact_that_cannot_be_written_leaves_its_attempt_unresolved() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses_files = True
        stopped = await engine.run(SCRIPT)
        assert (stopped.reason, stopped.calls.unresolved, witness.count()) == ("TS-S002", 3, 3)
        store.heal()
        await assert_standing(engine, stopped.run, lossy=True)
        await finish(engine, stopped.run)


async def test_a_failure_that_cannot_be_written_is_not_told_to_the_script() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    witness.broken["<1>"] = Refused(kind="invalid_request", text="no")
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses = lambda event: isinstance(event, AttemptEnded) and event.outcome == "failed"
        stopped = await engine.run(SCRIPT)
        assert stopped.reason == "TS-S002"
        assert [attempt.attempt for attempt in stopped.unresolved] == [2]
        await assert_standing(engine, stopped.run, lossy=True)


async def test_an_end_that_cannot_be_written_is_an_interrupted_run_that_can_be_resumed() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        store.refuses = lambda event: isinstance(event, LaunchEnded)
        ended = await engine.run(SCRIPT)
        assert (ended.status, ended.exit_code, ended.result) == ("interrupted", 7, None)
        store.heal()
        resumed = await engine.resume(ended.run)
        assert (resumed.status, resumed.calls.replayed, witness.count()) == ("completed", CALLS, CALLS)
        assert [launch.status for launch in resumed.launches] == ["interrupted", "completed"]
        await assert_standing(engine, ended.run)


async def test_a_resume_that_cannot_be_written_changes_nothing() -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    witness.fail("speech.generate", 1, "unavailable")
    async with witnessed(witness, store=store) as (engine, _):
        failed = await engine.run(SCRIPT)
        store.refuses = lambda event: isinstance(event, LaunchStarted)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await engine.host.service.resume(failed.run, ResumeRequest(source=SCRIPT + "\n# another\n"))
        assert await engine.host.service.report(failed.run) == failed
        store.heal()
        assert (await engine.resume(failed.run)).calls.replayed == CALLS - 1
        await assert_standing(engine, failed.run)


async def test_one_run_that_cannot_be_written_does_not_cost_another_anything() -> None:
    witness = Witness(shuffle=2)
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        good, bad = await engine.submit(SCRIPT), await engine.submit(SCRIPT)
        store.refuses = lambda event: event.run == bad
        assert (await engine.end(good)).status == "completed"
        assert (await engine.end(bad)).status != "completed"
        store.heal()
        await assert_standing(engine, good, lossy=True)
        await finish(engine, bad)
