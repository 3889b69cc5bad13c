"""Cancelling a run: nothing new is sent, what is in flight settles, and the run ends cancelled."""

import anyio
import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import UsageError
from tallystick.engine.messages import RunReport
from tallystick.providers.protocol import Refused, Unknown

FANOUT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": "sharp"})
        return review["score"]

    return await ctx.parallel([shot(number) for number in range(8)])
"""
STUBBORN = """
async def orchestrate(ctx, args):
    done = 0
    for number in range(8):
        try:
            image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
            done += 1
        except Exception as error:
            print(error)
    return done
"""


async def cancel(engine: House, run: str) -> RunReport:
    await engine.host.service.cancel(run, "a tester")
    return await engine.end(run)


def assert_cancelled(report: RunReport) -> None:
    assert (report.status, report.reason, report.exit_code) == ("cancelled", "TS-R009", 1)
    assert report.error is not None
    assert "a tester" in report.error.message
    assert report.result is None


async def test_a_run_in_the_queue_ends_without_a_sandbox_or_a_hit() -> None:
    async with witnessed(daemon={"max_live": 1}) as (engine, witness):
        gate = witness.hold()
        first = await engine.submit(FANOUT, limits={"concurrency": 1})
        await gate.reached()
        second = await engine.submit(FANOUT)
        report = await cancel(engine, second)
        assert_cancelled(report)
        assert (report.calls.executed, witness.count()) == (0, 1)
        assert (await engine.history(second)).attempts == {}
        await assert_standing(engine, second)
        gate.release()
        assert (await engine.end(first)).status == "completed"
        resumed = await engine.resume(second)
        assert (resumed.status, resumed.calls.executed) == ("completed", 16)


async def test_calls_that_wait_for_a_slot_are_not_sent() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT, limits={"concurrency": 2})
        await gate.reached(2)
        await engine.host.service.cancel(run, "a tester")
        gate.release()
        report = await engine.end(run)
        assert_cancelled(report)
        assert (report.calls.executed, witness.count()) == (2, 2)
        assert len((await engine.history(run)).attempts) == 2
        await assert_standing(engine, run)


async def test_calls_in_flight_settle_and_commit_before_the_run_ends() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT)
        await gate.reached(8)
        await engine.host.service.cancel(run, "a tester")
        while (await engine.host.service.report(run)).phase != "settling":
            await anyio.lowlevel.checkpoint()
        assert (await engine.host.service.report(run)).status == "running"
        gate.release()
        report = await engine.end(run)
        assert_cancelled(report)
        assert (report.calls.executed, witness.count(), report.spend.usd) == (8, 8, 0.008)
        assert len(report.not_reached) == 0
        await assert_standing(engine, run)

        resumed = await engine.resume(run)
        assert (resumed.status, resumed.calls.replayed, resumed.calls.executed, witness.count()) == (
            "completed",
            8,
            8,
            16,
        )
        await assert_standing(engine, run)


async def test_calls_that_wait_for_budget_are_not_sent() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT, limits={"budget_usd": 0.06})
        await gate.reached(3)
        await engine.host.service.cancel(run, "a tester")
        gate.release()
        report = await engine.end(run)
        assert_cancelled(report)
        assert (report.calls.executed, report.calls.denied, witness.count()) == (3, 0, 3)
        await assert_standing(engine, run)


async def test_a_script_cannot_catch_it() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold(containing="<3>")
        run = await engine.submit(STUBBORN)
        await gate.reached()
        await engine.host.service.cancel(run, "a tester")
        gate.release()
        report = await engine.end(run)
        assert_cancelled(report)
        assert (report.calls.executed, witness.count()) == (4, 4)
        await assert_standing(engine, run)


@pytest.mark.parametrize("outcome", [Refused(kind="rate_limited", text="no"), Unknown(reason="reset")])
async def test_a_call_that_settles_after_it_keeps_its_own_end(outcome: Refused | Unknown) -> None:
    async with witnessed() as (engine, witness):
        witness.broken["<3>"] = outcome
        gate = witness.hold(containing="<3>")
        run = await engine.submit(STUBBORN)
        await gate.reached()
        await engine.host.service.cancel(run, "a tester")
        gate.release()
        report = await engine.end(run)
        states = [attempt.state for attempt in await engine.attempts(run)]
        assert states == ["committed"] * 3 + ["failed" if isinstance(outcome, Refused) else "unresolved"]
        assert_cancelled(report)
        assert [attempt.attempt for attempt in report.unresolved] == ([] if isinstance(outcome, Refused) else [4])
        assert witness.count() == 4
        await assert_standing(engine, run)


async def test_cancelling_twice_is_cancelling_once() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT, limits={"concurrency": 1})
        await gate.reached()
        for _ in range(10):
            await engine.host.service.cancel(run, "a tester")
        gate.release()
        assert_cancelled(await engine.end(run))
        assert witness.count() == 1
        assert len([event for event in witness.disk.events if type(event).__name__ == "LaunchEnded"]) == 1


async def test_a_run_that_is_not_live_cannot_be_cancelled() -> None:
    async with witnessed() as (engine, _):
        run = (await engine.run(STUBBORN)).run
        with pytest.raises(UsageError, match="ended completed") as refused:
            await engine.host.service.cancel(run, "a tester")
        assert refused.value.code == "TS-U003"
        assert (await engine.host.service.report(run)).status == "completed"


async def test_at_every_moment_of_a_run_no_new_hit_follows_it() -> None:
    """Cancelled after each number of turns of the loop, until the run is done before the cancellation comes."""
    turns, finished = 0, False
    while not finished:
        async with witnessed(Witness(shuffle=turns)) as (engine, witness):
            run = await engine.submit(FANOUT, limits={"concurrency": 3})
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            try:
                await engine.host.service.cancel(run, "a tester")
            except UsageError:
                finished = True
            hits = witness.count()
            report = await engine.end(run)
            if not finished and report.status != "completed":
                assert_cancelled(report)
                assert witness.count() == hits
                assert report.calls.executed == witness.count()
            await assert_standing(engine, run)
            resumed = await engine.resume(run)
            assert (resumed.status, witness.count()) == ("completed", 16)
            await assert_standing(engine, run)
        turns += 7
