"""What a launch may do: concurrency, ceilings, grants, schemas, the wall clock."""

from typing import Any

import pytest

from engine_support import ALL
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import ScriptRefusedError, UsageError
from tallystick.engine.messages import Limits, RunRequest
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
async def test_the_limit_of_concurrency_is_used_and_never_passed(concurrency: int) -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(FANOUT, limits={"concurrency": concurrency})
        await gate.reached(concurrency)
        assert witness.count() == concurrency
        gate.release()
        report = await engine.end(run)
        assert (report.status, witness.count(), witness.most_at_once) == ("completed", 8, concurrency)
        await assert_standing(engine, run)


async def test_a_capabilitys_own_limit_holds_over_all_runs() -> None:
    async with witnessed(policy={"concurrency": 3}) as (engine, witness):
        gate = witness.hold()
        runs = [await engine.submit(FANOUT), await engine.submit(FANOUT)]
        await gate.reached(3)
        gate.release()
        assert [(await engine.end(run)).status for run in runs] == ["completed", "completed"]
        assert (witness.count(), witness.most_at_once) == (16, 3)


async def test_a_run_that_waits_for_a_slot_does_not_hold_up_another_capability() -> None:
    async with witnessed(policy={"concurrency": 1}) as (engine, witness):
        gate = witness.hold("image.generate")
        slow = await engine.submit(FANOUT)
        await gate.reached()
        quick = await engine.run(AS_LONG_AS_ASKED, [1, 1])
        assert (quick.status, quick.result) == ("completed", 2)
        gate.release()
        assert (await engine.end(slow)).status == "completed"


async def test_runs_beyond_the_limit_of_live_sandboxes_wait_their_turn() -> None:
    async with witnessed(daemon={"max_live": 1}) as (engine, witness):
        gate = witness.hold()
        first = await engine.submit(AS_LONG_AS_ASKED, [1])
        await gate.reached()
        second = await engine.submit(FANOUT)
        waiting = await engine.host.service.report(second)
        assert (waiting.status, waiting.phase, witness.count()) == ("running", "queued", 1)
        gate.release()
        assert [(await engine.end(run)).status for run in (first, second)] == ["completed", "completed"]


@pytest.mark.parametrize("limits", [{"max_calls": 7}, {"grants": ("text.generate",)}], ids=["ceiling", "grants"])
async def test_what_a_script_can_be_seen_to_exceed_is_refused_before_the_start(limits: dict[str, Any]) -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(ScriptRefusedError) as refused:
            await engine.host.service.submit(RunRequest(source=FANOUT, limits=Limits(**{"grants": ALL, **limits})))
        assert {one.rule for one in refused.value.details} == {"R11"}
        assert (witness.disk.events, witness.count()) == ([], 0)


@pytest.mark.parametrize(
    ("less", "enough"),
    [
        ({"max_calls": 7}, {"max_calls": 8}),
        ({"grants": ("text.generate",)}, {"grants": ("text.generate", "image.generate")}),
    ],
    ids=["ceiling", "grants"],
)
async def test_limits_can_be_changed_on_resume(less: dict[str, Any], enough: dict[str, Any]) -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 3, "unavailable")
        failed = await engine.run(FANOUT)
        with pytest.raises(ScriptRefusedError):
            await engine.resume(failed.run, limits=less)
        assert witness.count() == 8
        resumed = await engine.resume(failed.run, limits=enough)
        assert (resumed.status, resumed.calls.replayed, witness.count()) == ("completed", 7, 9)
        await assert_standing(engine, failed.run)


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"prompt": 1}, "prompt"),
        ({}, "prompt"),
        ({"prompt": "x", "size": "big"}, "size"),
        ({"prompt": "x", "colour": 1}, "colour"),
        ([], "payload"),
    ],
)
async def test_a_payload_against_the_schema_is_a_failed_call_without_an_attempt(payload: object, named: str) -> None:
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


async def test_the_wall_clock_ends_a_launch_after_what_is_in_flight_has_settled() -> None:
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


@pytest.mark.parametrize(
    "limits", [{"concurrency": 0}, {"max_calls": 0}, {"wall_clock": 0}, {"wall_clock": float("nan")}]
)
async def test_a_limit_that_is_none_is_refused_before_anything_starts(limits: dict[str, object]) -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError):
            await engine.run(FANOUT, limits=limits)
        assert (witness.disk.events, witness.count()) == ([], 0)


@pytest.mark.parametrize(
    "options",
    [{"seed": -1}, {"seed": 1 << 63}, {"latency": -1.0}, {"latency": float("nan")}, {"faults": ("image.generate",)}],
)
async def test_a_demand_that_cannot_be_met_is_refused_before_anything_starts(options: dict[str, object]) -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError):
            await engine.run(FANOUT, **options)
        assert (witness.disk.events, witness.count()) == ([], 0)


async def test_args_that_are_no_payload_are_refused_before_anything_starts() -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError, match=r"args\.level"):
            await engine.run(FANOUT, {"level": float("nan")})
        assert (witness.disk.events, witness.count()) == ([], 0)


async def test_the_same_run_gives_the_same_seeds_and_another_take_another_one() -> None:
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
