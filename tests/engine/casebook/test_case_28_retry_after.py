"""Casebook 28: Retry-After of two days, or of nothing: waits are capped, shown, cancellable, and outlive a restart.

The other half, with a provider that is not HTTP, is in ``test_retries.py``.
"""

from collections.abc import AsyncIterator

import pytest

from broker_support import PAID, served, states
from engine_support import House
from tallystick.engine.messages import ResumeRequest
from tallystick.engine.retries import shown
from tallystick.kernel import ManualClock
from tallystick.store.memory import MemoryDisk
from upstream_faults import Fault
from upstream_server import Upstream, running

SENT = "Sun, 15 Jun 2025 15:00:00 GMT"
POLICY = {"retries": 1}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


async def retrying(engine: House, run: str, containing: str = "") -> str:
    """Wait until somebody who watches is told of a wait, and return how."""
    async for line in engine.host.service.watch(run):
        if line.kind == "retrying" and containing in line.text:
            return line.text
    raise AssertionError("the run ended, and nobody was told of a wait")


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("0", 1),
        ("2", 2),
        ("90", 90),
        ("-1", 1),
        ("abc", 1),
        (None, 1),
        ("Sun, 15 Jun 2025 14:00:00 GMT", 1),
        ("Sun, 15 Jun 2025 15:00:40 GMT", 40),
    ],
)
async def test_a_call_waits_as_long_as_it_is_told(upstream: Upstream, header: str | None, wait: float) -> None:
    clock = ManualClock()
    headers = {"Date": SENT, **({"Retry-After": header} if header is not None else {})}
    upstream.script(Fault(status=429, headers=headers), kind="image")
    async with served(upstream, clock=clock, policy=POLICY) as engine:
        run = await engine.submit(PAID)
        said = await retrying(engine, run)
        assert f"the next one at {shown(clock.now() + wait, clock.now())}" in said
        await clock.advance(wait - 0.01)
        assert upstream.count("image") == 1
        await clock.advance(0.02)
        report = await engine.end(run)
        assert (report.result, await states(engine, run)) == ([64, 1], ["failed", "committed"])
        assert (upstream.count("image"), round(report.spend.usd * 1e6)) == (2, upstream.bill)


@pytest.mark.parametrize("header", ["198300", "99999999999", "Wed, 18 Jun 2025 15:00:00 GMT"])
async def test_two_days_are_not_waited_out_and_the_message_has_the_time(upstream: Upstream, header: str) -> None:
    clock = ManualClock()
    upstream.script(Fault(status=429, headers={"Date": SENT, "Retry-After": header}), kind="image")
    async with served(upstream, clock=clock, policy=POLICY) as engine:
        report = await engine.run(PAID)
        assert (report.reason, await states(engine, report.run)) == ("TS-R002", ["failed"])
        assert report.error is not None
        assert "the provider asks to wait until 2025-06-" in report.error.message
        resumed = await engine.resume(report.run)
        assert (resumed.reason, upstream.count("image")) == ("TS-P011", 1)


async def test_a_quota_that_is_used_up_is_never_unresolved(upstream: Upstream) -> None:
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
    upstream.script(Fault(status=429, body=body), kind="image", times=None)
    clock = ManualClock()
    async with served(upstream, clock=clock, policy=POLICY) as engine:
        run = await engine.submit(PAID)
        await retrying(engine, run)
        await clock.advance(2)
        report = await engine.end(run)
        assert (report.calls.unresolved, await states(engine, run)) == (0, ["failed", "failed"])
        assert (report.spend.usd, report.spend.unpriced) == (0, 0)


async def test_a_wait_is_kept_by_the_next_daemon(upstream: Upstream) -> None:
    clock, disk = ManualClock(), MemoryDisk()
    upstream.script(Fault(status=429, headers={"Retry-After": "100"}), kind="image")
    async with served(upstream, disk=disk, clock=clock) as engine:
        run = (await engine.run(PAID)).run
    await clock.advance(70)
    async with served(upstream, disk=disk, clock=clock) as engine:
        await engine.host.service.resume(run, ResumeRequest())
        assert "as its provider asks" in await retrying(engine, run)
        assert upstream.count("image") == 1
        await clock.advance(31)
        assert (await engine.end(run)).result == [64, 1]


async def test_a_wait_can_be_cancelled(upstream: Upstream) -> None:
    clock = ManualClock()
    upstream.script(Fault(status=429, headers={"Retry-After": "100"}), kind="image")
    async with served(upstream, clock=clock, policy=POLICY) as engine:
        run = await engine.submit(PAID)
        await retrying(engine, run)
        await engine.host.service.cancel(run, "tester")
        report = await engine.end(run)
        assert (report.status, await states(engine, run), upstream.count("image")) == ("cancelled", ["failed"], 1)


async def test_a_fanout_backs_off_together(upstream: Upstream) -> None:
    script = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>", "size": "64x48"})

    return len(await ctx.parallel([shot(number) for number in range(12)]))
"""
    clock = ManualClock()
    upstream.script(Fault(status=429, headers={"Retry-After": "30"}), kind="image", nth=3)
    async with served(upstream, clock=clock, policy={**POLICY, "concurrency": 1}) as engine:
        run = await engine.submit(script)
        await retrying(engine, run)
        assert upstream.count("image") == 3
        await clock.advance(29)
        assert upstream.count("image") == 3
        await clock.advance(2)
        report = await engine.end(run)
        assert (report.result, upstream.count("image"), len(upstream.works)) == (12, 13, 12)
        assert round(report.spend.usd * 1e6) == upstream.bill
