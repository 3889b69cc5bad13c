"""Rates of calls: the bucket alone, and a capability whose calls wait for their tokens."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_support import passes
from engine_witness import Witness, assert_standing, witnessed
from tallystick.engine.config import CapabilityPolicy
from tallystick.engine.rate import TokenBucket
from tallystick.kernel import ManualClock

FANOUT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        return image["width"]

    return len(await ctx.parallel([shot(number) for number in range(6)]))
"""


@given(
    number=st.integers(1, 500),
    unit=st.sampled_from([("s", 1), ("min", 60), ("h", 3600)]),
    gaps=st.lists(st.floats(0, 5), max_size=40),
)
def test_no_stretch_of_time_has_more_starts_than_the_rate_and_one_burst(
    number: int, unit: tuple[str, int], gaps: list[float]
) -> None:
    name, seconds = unit
    bucket = TokenBucket(f"{number}/{name}")
    per_second = number / seconds
    now, starts = 0.0, []
    for gap in gaps:
        now += gap
        now += bucket.wait(now)
        bucket.take(now)
        starts.append(now)
    for first, start in enumerate(starts):
        for last in range(first, len(starts)):
            allowed = per_second * (starts[last] - start) + max(1.0, per_second)
            assert last - first + 1 <= allowed + 1e-6


async def test_calls_start_at_the_rate_of_their_capability() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"rate": "2/s"}) as (engine, witness):
        run = await engine.submit(FANOUT)
        counts = []
        for _ in range(6):
            await passes(engine, clock, 0.5)
            counts.append(witness.count())
        report = await engine.end(run)
        assert (report.status, report.result) == ("completed", 6)
        assert counts == [3, 4, 5, 6, 6, 6], "two at once, then one each half second"
        await assert_standing(engine, run)


async def test_a_rate_holds_over_all_runs() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"rate": "60/min"}) as (engine, witness):
        runs = [await engine.submit(FANOUT) for _ in range(2)]
        await passes(engine, clock, 4)
        assert witness.count() == 5
        await passes(engine, clock, 7)
        assert witness.count() == 12
        for run in runs:
            assert (await engine.end(run)).status == "completed"


async def test_a_run_that_is_cancelled_leaves_its_tokens_to_others() -> None:
    clock = ManualClock()
    witness = Witness()
    async with witnessed(witness, clock=clock, policy={"rate": "1/min"}) as (engine, _):
        first = await engine.submit(FANOUT)
        await passes(engine, clock, 0)
        assert witness.count() == 1
        await engine.host.service.cancel(first, "tester")
        cancelled = await engine.end(first)
        assert (cancelled.status, witness.count()) == ("cancelled", 1)
        second = await engine.submit(FANOUT)
        await passes(engine, clock, 59)
        assert witness.count() == 1
        await passes(engine, clock, 1)
        assert witness.count() == 2
        await engine.host.service.cancel(second, "tester")
        await engine.end(second)


@pytest.mark.parametrize("bad", ["0/s", "5", "5/day", "-1/s", "1.5/s", "/s"])
def test_what_is_no_rate_is_refused(bad: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"provider": "local", "rate": bad}, CapabilityPolicy)
