"""What was paid for is named before it is paid for again: repeats, shifts and twins (casebook 10)."""

from typing import Any

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import PolicyDeniedError
from tallystick.contract.identity import Identity
from tallystick.engine.messages import RunReport

LOOP = """
async def orchestrate(ctx, args):
    drawn = []
    for number in range(3):
        image = await ctx.run("image.generate", {"prompt": "a logo"})
        drawn.append(image["images"][0]["$artifact"])
    voice = await ctx.run("speech.generate", {"text": "done"})
    return drawn
"""
FANOUT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot {number}"})
        return image["width"]

    return await ctx.parallel([shot(number) for number in range(3)])
"""
LOOPED = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot {number}"})
        return image["width"]

    widths = []
    for number in range(3):
        widths.append(await shot(number))
    return widths
"""


async def denied(engine: House, run: str, source: str, **options: Any) -> str:
    """Resume without a plan until the ledger stops the launch; return what it says."""
    report = await engine.resume(run, source, preflight=False, **options)
    assert (report.status, report.reason, report.calls.denied) == ("stopped", "TS-P005", 1)
    assert report.error is not None
    return f"{report.error.message} {report.error.hint}"


def warnings(report: RunReport) -> int:
    return sum("already paid" in warning for warning in report.warnings)


async def test_independent_samples_of_one_launch_are_all_drawn_and_replay_in_their_order() -> None:
    async with witnessed() as (engine, witness):
        first = await engine.run(LOOP)
        assert (first.status, warnings(first), len(set(first.result))) == ("completed", 0, 3)
        again = await engine.resume(first.run)
        assert (again.result, again.calls.replayed, witness.count()) == (first.result, 4, 4)
        await assert_standing(engine, first.run)


async def test_a_draw_that_the_old_script_could_have_made_goes_on_with_a_warning() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 2, "unavailable")
        failed = await engine.run(LOOP)
        assert (failed.status, witness.count()) == ("failed", 2)
        resumed = await engine.resume(failed.run, preflight=True)
        assert (resumed.status, resumed.calls.executed) == ("completed", 3)
        assert warnings(resumed) == 2
        await assert_standing(engine, failed.run)


async def test_a_widened_loop_is_denied_at_the_first_draw_beyond_the_old_bound_and_can_be_allowed() -> None:
    wider = LOOP.replace("range(3)", "range(6)")
    fourth = Identity("orchestrate/for1/#1", (), 3)
    async with witnessed() as (engine, witness):
        run = (await engine.run(LOOP)).run
        with pytest.raises(PolicyDeniedError, match=r"orchestrate/for1/#1 \[\] 3") as refused:
            await engine.resume(run, wider, preflight=True)
        assert (refused.value.code, refused.value.exit_code) == ("TS-P005", 6)
        said = await denied(engine, run, wider)
        assert str(fourth) in said
        assert "take=" in said
        assert witness.count() == 4
        assert str(fourth.occurrence + 1) in await denied(engine, run, wider, allowed_repeats=(fourth,))
        assert witness.count() == 5
        allowed = await engine.resume(run, wider, allow_repeats=True)
        assert (allowed.status, len(set(allowed.result)), witness.count()) == ("completed", 6, 7)
        await assert_standing(engine, run)


async def test_a_take_declares_a_fresh_sample() -> None:
    more = LOOP.replace(
        "    voice", '    other = await ctx.run("image.generate", {"prompt": "a logo"}, take="other")\n    voice'
    )
    async with witnessed() as (engine, witness):
        witness.fail("speech.generate", 1, "unavailable")
        failed = await engine.run(LOOP)
        resumed = await engine.resume(failed.run, more, preflight=True)
        assert (resumed.status, warnings(resumed), resumed.calls.executed) == ("completed", 0, 2)
        await assert_standing(engine, failed.run)


async def test_paid_work_on_another_path_is_a_shift_and_denied() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(FANOUT)).run
        with pytest.raises(PolicyDeniedError):
            await engine.resume(run, LOOPED, preflight=True)
        assert witness.count() == 3
        await assert_standing(engine, run)


async def test_paid_work_at_another_site_is_a_twin_and_denied() -> None:
    twin = FANOUT.replace(
        "    return await",
        '    extra = await ctx.run("image.generate", {"prompt": "shot 1"})\n    return await',
    )
    async with witnessed() as (engine, witness):
        run = (await engine.run(FANOUT)).run
        assert "orchestrate.shot/#1 [1] 0" in await denied(engine, run, twin)
        assert witness.count() == 3
        await assert_standing(engine, run)


@pytest.mark.parametrize(
    ("policy", "code", "warned"), [("off", None, 0), ("warn", None, 1), ("deny", "TS-P005", 0), ("auto", None, 1)]
)
async def test_a_read_only_repeat_is_what_the_policy_makes_of_it(policy: str, code: str | None, warned: int) -> None:
    script = LOOP.replace("image.generate", "text.generate").replace('image["images"][0]["$artifact"]', 'image["text"]')
    async with witnessed(Witness()) as (engine, witness):
        run = (await engine.run(script)).run
        wider = script.replace("range(3)", "range(4)")
        report = await engine.resume(run, wider, limits={"repeat_policy": policy}, preflight=False)
        assert (report.reason, warnings(report)) == (code, warned)
        assert witness.count() == 4 + (code is None)
        await assert_standing(engine, run)
