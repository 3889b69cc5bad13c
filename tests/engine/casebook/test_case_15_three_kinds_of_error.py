"""Casebook 15: an error is one of three things, and only what was certainly not done is a failure."""

from collections.abc import AsyncIterator

import pytest

from broker_support import PAID, served, states
from tallystick.contract.prefix import frozen_sites
from upstream_faults import Fault
from upstream_server import Upstream, running

SOON = {"Retry-After": "0"}
NO_HEED = {"retry_after_cap": 0.0}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://nowhere.invalid", "https"])
async def test_what_was_never_sent_has_failed(upstream: Upstream, address: str) -> None:
    url = upstream.url.replace("http:", "https:") if address == "https" else address
    async with served(url) as engine:
        report = await engine.run(PAID)
        assert (report.reason, await states(engine, report.run)) == ("TS-R002", ["failed"])
        assert [attempt.kind for attempt in await engine.attempts(report.run)] == ["unavailable"]
        assert (report.spend.usd, report.spend.unpriced, upstream.count()) == (0, 0, 0)
        assert frozen_sites(await engine.history(report.run)) == {}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=400, body={"error": {"message": "bad"}}), "invalid_request"),
        (Fault(status=401), "unauthorized"),
        (Fault(status=403), "unauthorized"),
        (Fault(status=404), "invalid_request"),
        (Fault(status=422), "invalid_request"),
        (Fault(status=429, headers=SOON), "rate_limited"),
        (Fault(status=503, headers=SOON), "unavailable"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else value,
)
async def test_what_was_refused_has_failed_and_freezes_nothing(upstream: Upstream, fault: Fault, kind: str) -> None:
    upstream.script(fault, kind="image")
    async with served(upstream, policy=NO_HEED) as engine:
        report = await engine.run(PAID)
        assert (report.reason, await states(engine, report.run)) == ("TS-R002", ["failed"])
        (attempt,) = await engine.attempts(report.run)
        assert (attempt.kind, attempt.cost_usd, upstream.bill) == (kind, 0, 0)
        assert frozen_sites(await engine.history(report.run)) == {}
        edited = PAID.replace("a mug", "a cup")
        assert (await engine.resume(report.run, edited)).result == [64, 1]
        assert upstream.paid_hits == 2


@pytest.mark.parametrize(
    "fault",
    [
        Fault(drop="unread"),
        Fault(drop="unanswered"),
        Fault(drop="cut"),
        Fault(status=408),
        Fault(status=409),
        Fault(status=425),
        Fault(status=500),
        Fault(status=502),
        Fault(status=503),
        Fault(status=504),
    ],
    ids=lambda fault: str(fault.status or fault.drop),
)
async def test_what_may_have_been_done_is_unresolved_and_not_sent_again(upstream: Upstream, fault: Fault) -> None:
    upstream.script(fault, kind="image")
    policy = {"retries": 3, "retry_on": ("rate_limited", "unavailable", "unknown")}
    async with served(upstream, policy=policy) as engine:
        report = await engine.run(PAID)
        assert (report.reason, await states(engine, report.run)) == ("TS-A002", ["unresolved"])
        assert upstream.connections == 1
        assert (report.spend.unpriced, report.spend.reserved_usd) == (1, 0.02)
        assert set(frozen_sites(await engine.history(report.run))) == {"orchestrate/#1"}


async def test_an_answer_that_was_billed_and_is_broken_is_neither(upstream: Upstream) -> None:
    upstream.script(Fault(lie="broken"), kind="image")
    async with served(upstream) as engine:
        report = await engine.run(PAID)
        assert (report.reason, await states(engine, report.run)) == ("TS-R002", ["unusable"])
        assert (report.spend.unpriced, len(upstream.works)) == (1, 1)
        again = await engine.resume(report.run)
        assert (again.calls.replayed, upstream.paid_hits) == (1, 1)
