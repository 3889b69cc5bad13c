"""What a launch may do: concurrency, ceilings, grants, schemas, the wall clock."""

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import UsageError
from tallystick.contract.prefix import frozen_sites
from tallystick.kernel import ManualClock

FANOUT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await ctx.parallel([shot(number) for number in range(8)])
    return [image["images"][0]["$artifact"] for image in images]
"""
AS_LONG_AS_ASKED = """
async def orchestrate(ctx, args):
    done = 0
    for item in args[:20]:
        if item:
            text = await ctx.run("text.generate", {"prompt": f"item {done}"})
            done += 1
    return done
"""
INVALID = """
async def orchestrate(ctx, args):
    try:
        image = await ctx.run("image.generate", args)
    except CapabilityError as error:
        return [error.kind, error.text]
    return image["width"]
"""
WAITS = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "first"})
    image = await ctx.run("image.generate", {"prompt": "second"})
    return [text["text"], image["width"]]
"""


@pytest.mark.parametrize("concurrency", [1, 2, 6])
async def test_the_limit_of_concurrency_is_used_and_never_passed(concurrency: int):
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT, limits={"concurrency": concurrency})
        await gate.reached(concurrency)
        assert witness.count() == concurrency
        gate.release()
        report = await engine.end(run)
        assert (report.status, witness.count(), witness.most_at_once) == ("completed", 8, concurrency)
        await assert_standing(engine, run)


async def test_a_capabilitys_own_limit_holds_over_all_runs():
    async with witnessed(policy={"concurrency": 3}) as (engine, witness):
        gate = witness.hold()
        runs = [await engine.submit(FANOUT), await engine.submit(FANOUT)]
        await gate.reached(3)
        gate.release()
        assert [(await engine.end(run)).status for run in runs] == ["completed", "completed"]
        assert (witness.count(), witness.most_at_once) == (16, 3)


async def test_a_run_that_waits_for_a_slot_does_not_hold_up_another_capability():
    async with witnessed(policy={"concurrency": 1}) as (engine, witness):
        gate = witness.hold("image.generate")
        slow = await engine.submit(FANOUT)
        await gate.reached()
        quick = await engine.run(AS_LONG_AS_ASKED, [1, 1])
        assert (quick.status, quick.result) == ("completed", 2)
        gate.release()
        assert (await engine.end(slow)).status == "completed"


async def test_runs_beyond_the_limit_of_live_sandboxes_wait_their_turn():
    async with witnessed(daemon={"max_live": 1}) as (engine, witness):
        gate = witness.hold()
        first = await engine.submit(AS_LONG_AS_ASKED, [1])
        await gate.reached()
        second = await engine.submit(FANOUT)
        waiting = await engine.host.service.report(second)
        assert (waiting.status, waiting.phase, witness.count()) == ("running", "queued", 1)
        gate.release()
        assert [(await engine.end(run)).status for run in (first, second)] == ["completed", "completed"]


async def test_the_ceiling_of_calls_stops_a_launch_and_raising_it_goes_on():
    async with witnessed() as (engine, witness):
        stopped = await engine.run(AS_LONG_AS_ASKED, [1] * 6, limits={"max_calls": 4})
        assert (stopped.status, stopped.reason, stopped.calls.executed) == ("stopped", "TS-P003", 4)
        assert (stopped.calls.denied, witness.count()) == (1, 4)
        await assert_standing(engine, stopped.run)

        resumed = await engine.resume(stopped.run, limits={"max_calls": 5})
        assert (resumed.status, resumed.result, resumed.calls.replayed, witness.count()) == ("completed", 6, 4, 6)
        await assert_standing(engine, stopped.run)


async def test_a_capability_that_is_not_granted_is_not_called_and_grants_can_be_added():
    async with witnessed() as (engine, witness):
        denied = await engine.run(WAITS, grants=("text.generate",))
        assert (denied.status, denied.reason, denied.calls.executed, denied.calls.denied) == ("stopped", "TS-P001", 1, 1)
        assert denied.error is not None
        assert "image.generate" in denied.error.message
        assert witness.count("image.generate") == 0
        assert set(frozen_sites(await engine.history(denied.run))) == {"orchestrate/#1"}
        await assert_standing(engine, denied.run)

        resumed = await engine.resume(denied.run, limits={"grants": ("text.generate", "image.generate")})
        assert (resumed.status, resumed.calls.replayed, witness.count()) == ("completed", 1, 2)
        await assert_standing(engine, denied.run)


async def test_what_is_committed_replays_without_a_grant():
    async with witnessed() as (engine, witness):
        first = await engine.run(WAITS)
        again = await engine.resume(first.run, limits={"grants": ()})
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 2, 2)


@pytest.mark.parametrize(
    ("payload", "named"),
    [({"prompt": ""}, "prompt"), ({"prompt": "x", "size": "big"}, "size"), ({"prompt": "x", "colour": 1}, "colour"), ([], "payload")],
)
async def test_a_payload_against_the_schema_is_a_failed_call_without_an_attempt(payload: object, named: str):
    async with witnessed() as (engine, witness):
        report = await engine.run(INVALID, payload)
        kind, text = report.result
        assert (report.status, kind, report.calls.failed, witness.count()) == ("completed", "invalid_request", 1, 0)
        assert named in text
        assert (await engine.history(report.run)).attempts == {}
        await assert_standing(engine, report.run)

        again = await engine.resume(report.run, args={"prompt": "a mug"})
        assert (again.status, again.result, witness.count()) == ("completed", 1024, 1)
        await assert_standing(engine, report.run)


async def test_the_wall_clock_ends_a_launch_after_what_is_in_flight_has_settled():
    clock = ManualClock()
    async with witnessed(clock=clock) as (engine, witness):
        gate = witness.hold("text.generate")
        run = await engine.submit(WAITS, limits={"wall_clock": 30.0})
        await gate.reached()
        await clock.advance(31)
        live = await engine.host.service.report(run)
        assert (live.status, live.phase) == ("running", "settling")
        gate.release()
        stopped = await engine.end(run)
        assert (stopped.status, stopped.reason, stopped.calls.executed, witness.count()) == ("stopped", "TS-P007", 1, 1)
        await assert_standing(engine, run)

        resumed = await engine.resume(run)
        assert (resumed.status, resumed.calls.replayed, witness.count()) == ("completed", 1, 2)
        await assert_standing(engine, run)


@pytest.mark.parametrize("limits", [{"concurrency": 0}, {"max_calls": 0}, {"wall_clock": 0}, {"wall_clock": float("nan")}])
async def test_a_limit_that_is_none_is_refused_before_anything_starts(limits: dict[str, object]):
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError):
            await engine.run(FANOUT, limits=limits)
        assert (witness.disk.events, witness.count()) == ([], 0)


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 1 << 63}, {"latency": -1.0}, {"latency": float("nan")}, {"faults": ("image.generate",)}])
async def test_a_demand_that_cannot_be_met_is_refused_before_anything_starts(options: dict[str, object]):
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError):
            await engine.run(FANOUT, **options)
        assert (witness.disk.events, witness.count()) == ([], 0)


async def test_args_that_are_no_payload_are_refused_before_anything_starts():
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError, match=r"args\.level"):
            await engine.run(FANOUT, {"level": float("nan")})
        assert (witness.disk.events, witness.count()) == ([], 0)


async def test_the_same_run_gives_the_same_seeds_and_another_take_another_one():
    seeds = []
    for take in ("", ', take="second"'):
        for seed in (0, 0, 7):
            witness = Witness()
            async with witnessed(witness) as (engine, _):
                script = WAITS.replace('{"prompt": "second"}', '{"prompt": "second"}' + take)
                assert (await engine.run(script, seed=seed)).status == "completed"
                seeds.append([hit.seed for hit in witness.hits])
    assert seeds[0] == seeds[1]
    assert seeds[0] != seeds[2]
    assert seeds[3][0] == seeds[0][0]
    assert seeds[3][1] != seeds[0][1]
