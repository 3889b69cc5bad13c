"""Casebook 3: one request for each attempt, whatever breaks; nothing is billed behind our back."""

import pytest

from broker_support import PAID, served
from engine_support import House, passes
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.kernel import ManualClock
from upstream_faults import Fault
from upstream_server import Upstream, running

KINDS = ["openai", "seedream", "studio"]
BREAKS = [
    Fault(drop="unanswered"),
    Fault(drop="cut"),
    Fault(status=500),
    Fault(status=502),
    Fault(status=504),
    Fault(status=408),
]
TIMEOUT = 60.0


async def told(engine: House, run: str, upstream: Upstream) -> int:
    """Assert that every request is an attempt, and that what is told is billed or said to be unknown; return how many."""
    attempts = await engine.attempts(run)
    report = await engine.host.service.report(run)
    assert len(attempts) == upstream.paid_hits
    unknown = [attempt for attempt in attempts if attempt.cost_usd is None]
    assert report.spend.unpriced == len(unknown)
    spent = round(report.spend.usd * MICROS_PER_USD)
    assert spent == upstream.bill if not unknown else spent <= upstream.bill
    return len(attempts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", BREAKS, ids=repr)
async def test_a_call_that_breaks_is_one_request_and_one_attempt_without_an_end(fault: Fault, kind: str) -> None:
    async with running() as upstream, served(upstream, kind) as engine:
        upstream.script(fault, times=None)
        report = await engine.run(PAID)
        assert (report.status, report.reason) == ("stopped", "TS-A002")
        assert len(report.unresolved) == 1
        assert report.spend.reserved_usd == 0.02
        assert await told(engine, report.run, upstream) == 1


@pytest.mark.parametrize("kind", ["openai", "seedream"])
async def test_a_timeout_is_not_a_second_request_and_the_late_answer_changes_nothing(kind: str) -> None:
    clock = ManualClock()
    async with running() as upstream, served(upstream, kind, clock=clock, policy={"timeout": TIMEOUT}) as engine:
        gate = upstream.hold("image", worked=True)
        run = await engine.submit(PAID)
        await gate.reached()
        await passes(engine, clock, TIMEOUT + 1)
        report = await engine.end(run)
        gate.release()
        assert (report.reason, upstream.bill > 0, report.spend.unpriced) == ("TS-A002", True, 1)
        assert await told(engine, run, upstream) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_refused_is_tried_again_by_policy_alone_each_time_as_its_own_attempt(kind: str) -> None:
    policy = {"retries": 2, "retry_pause": 0.001, "retry_after_cap": 0.0}
    async with running() as upstream, served(upstream, kind, policy=policy) as engine:
        upstream.script(Fault(status=429), times=2)
        report = await engine.run(PAID)
        assert (report.status, await told(engine, report.run, upstream)) == ("completed", 3)
        assert report.spend.unpriced == 0
        assert round(report.spend.usd * MICROS_PER_USD) == upstream.bill
