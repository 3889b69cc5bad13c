"""Casebook 11: a fanout never sails past its budget, whatever its calls cost in the end (see also ``test_budget.py``)."""

from collections.abc import AsyncIterator

import pytest

from broker_support import served
from tallystick.contract.prefix import frozen_sites
from tallystick.kernel import ManualClock
from upstream_faults import Fault
from upstream_server import Upstream, running

TEN = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>", "size": "64x48"})

    return len(await ctx.parallel([shot(number) for number in range(10)]))
"""
PRICE = {"estimate": 0.03}
THREE_IMAGES = {"budget_usd": 0.09}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


async def test_three_hits_for_three_images_of_money_and_seven_more_when_it_is_raised(upstream: Upstream) -> None:
    async with served(upstream, "seedream", policy=PRICE) as engine:
        report = await engine.run(TEN, limits=THREE_IMAGES)
        assert (report.reason, upstream.paid_hits, report.spend.usd) == ("TS-P002", 3, 0.09)
        history = await engine.history(report.run)
        assert (len(history.attempts), set(frozen_sites(history))) == (3, {"orchestrate.shot/#1"})
        raised = await engine.resume(report.run, limits={"budget_usd": 1.0})
        assert (raised.result, raised.calls.replayed, upstream.paid_hits) == (10, 3, 10)
        assert round(raised.spend.usd * 1e6) == upstream.bill


async def test_calls_that_come_without_a_price_keep_their_reservations(upstream: Upstream) -> None:
    upstream.script(Fault(lie="usage"), times=None)
    async with served(upstream, "seedream", policy=PRICE) as engine:
        report = await engine.run(TEN, limits=THREE_IMAGES)
        assert (report.reason, upstream.paid_hits) == ("TS-P002", 3)
        assert (report.spend.unpriced, report.spend.reserved_usd) == (3, 0.09)


async def test_an_unresolved_attempt_keeps_its_share(upstream: Upstream) -> None:
    upstream.script(Fault(drop="unanswered"), kind="image", nth=2)
    async with served(upstream, "seedream", policy=PRICE) as engine:
        report = await engine.run(TEN, limits=THREE_IMAGES)
        assert (report.reason, report.calls.unresolved) == ("TS-A002", 1)
        assert report.spend.reserved_usd == 0.03
        proceeded = await engine.resume(report.run, proceed=True)
        assert (proceeded.reason, upstream.paid_hits <= 3) == ("TS-A001", True)
        await engine.reconcile(report.run, report.unresolved[0].attempt, abandon=True)
        last = await engine.resume(report.run)
        assert (last.reason, upstream.paid_hits) == ("TS-P002", 3)


async def test_each_retry_has_a_reservation_of_its_own(upstream: Upstream) -> None:
    clock = ManualClock()
    upstream.script(Fault(status=429, headers={"Retry-After": "5"}), kind="image", nth=2, times=4)
    async with served(upstream, "seedream", clock=clock, policy={**PRICE, "retries": 8}) as engine:
        run = await engine.submit(TEN, limits=THREE_IMAGES)
        async for line in engine.host.service.watch(run):
            if line.kind == "retrying":
                await clock.advance(300)
        report = await engine.end(run)
        assert (report.reason, len(upstream.works), report.spend.usd) == ("TS-P002", 3, 0.09)
        assert round(report.spend.usd * 1e6) == upstream.bill
