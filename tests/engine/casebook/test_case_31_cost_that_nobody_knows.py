"""Casebook 31: a cost that nobody knows is a state and not zero, in budgets and reports, until somebody sets it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_support import PAID, served
from upstream_faults import Fault
from upstream_server import Upstream, running

THREE = """
async def orchestrate(ctx, args):
    widths = []
    for number in range(3):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>", "size": "64x48"})
        widths.append(image["width"])
    return widths
"""


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


@pytest.mark.parametrize(
    ("kind", "lie", "options"),
    [
        ("openai", "usage", {}),
        ("openai", "null usage", {}),
        ("studio", "usage", {}),
        ("studio", "null usage", {}),
        ("openai", None, {"priced": False}),
    ],
)
async def test_it_is_unpriced_and_keeps_its_reservation_until_it_is_set(
    upstream: Upstream, kind: str, lie: Any, options: dict[str, Any]
) -> None:
    upstream.script(Fault(lie=lie), times=None)
    async with served(upstream, kind, **options) as engine:
        report = await engine.run(PAID)
        assert (report.status, report.spend.usd, report.spend.unpriced) == ("completed", 0, 1)
        assert report.spend.reserved_usd == 0.02
        await engine.reconcile(report.run, 1, cost_usd=upstream.bill / 1e6, why="on the invoice")
        spend = (await engine.host.service.report(report.run)).spend
        assert (round(spend.usd * 1e6), spend.unpriced, spend.reserved_usd) == (upstream.bill, 0, 0)


async def test_a_budget_counts_unpriced_calls_at_their_estimates(upstream: Upstream) -> None:
    upstream.script(Fault(lie="usage"), times=None)
    async with served(upstream) as engine:
        report = await engine.run(THREE, limits={"budget_usd": 0.05})
        assert (report.reason, upstream.paid_hits, report.spend.unpriced) == ("TS-P002", 2, 2)
        for number in (1, 2):
            await engine.reconcile(report.run, number, cost_usd=0.001)
        resumed = await engine.resume(report.run)
        assert (resumed.status, upstream.paid_hits) == ("completed", 3)


async def test_four_pictures_of_one_call_are_billed_as_the_upstream_bills_them(upstream: Upstream) -> None:
    async with served(upstream, "seedream") as engine:
        report = await engine.run(THREE)
        assert (report.status, round(report.spend.usd * 1e6), report.spend.unpriced) == ("completed", upstream.bill, 0)


async def test_failed_and_unresolved_attempts_are_told_apart_from_what_was_spent(upstream: Upstream) -> None:
    upstream.script(Fault(status=400), kind="image", containing="<0>")
    async with served(upstream) as engine:
        failed = await engine.run(THREE)
        assert (failed.spend.usd, failed.spend.unpriced, failed.calls.failed) == (0, 0, 1)
        upstream.script(Fault(drop="unanswered"), kind="image", containing="<1>")
        lost = await engine.resume(failed.run)
        assert (lost.calls.unresolved, lost.spend.unpriced, lost.spend.reserved_usd) == (1, 1, 0.02)
        assert round(lost.spend.usd * 1e6) == upstream.works[0].cost
