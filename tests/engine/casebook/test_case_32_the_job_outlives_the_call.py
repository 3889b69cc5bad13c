"""Casebook 32: the job's id is durable as soon as it is known, and asked after before anything is ordered again."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from broker_support import PAID, served, states
from engine_stores import RefusingStore
from tallystick.contract.errors import AttemptUnresolvedError
from tallystick.contract.events import AttemptSubmitted
from tallystick.kernel import ManualClock
from tallystick.store.memory import MemoryDisk
from upstream_faults import Fault
from upstream_server import Upstream, running

BLIND: dict[str, Any] = {"operations": {"image.generate": {"lookup": None}}, "dedupes_keys": 0}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


async def test_what_was_not_ready_in_time_is_fetched_by_a_resume(upstream: Upstream) -> None:
    upstream.polls_until_done = None
    async with served(upstream, "studio") as engine:
        late = await engine.run(PAID)
        assert (late.reason, await states(engine, late.run)) == ("TS-A002", ["unresolved"])
        (attempt,) = late.unresolved
        assert (attempt.job, upstream.count("submit")) == ("job-1", 1)
        upstream.finish()
        report = await engine.resume(late.run)
        assert (report.status, report.calls.replayed, upstream.count("submit")) == ("completed", 1, 1)
        assert (round(report.spend.usd * 1e6), report.spend.unpriced) == (upstream.bill, 0)


async def crashed_when(upstream: Upstream, disk: MemoryDisk, kind: Any, *, worked: bool = False, **changes: Any) -> str:
    """Die while a request of a kind is held; return the run's id."""
    store = RefusingStore(disk)
    async with served(upstream, "studio", store=store, **changes) as engine:
        gate = upstream.hold(kind, worked=worked)
        run = await engine.submit(PAID)
        await gate.reached()
        store.die()
        gate.release()
    return run


async def test_a_crash_right_after_the_order_loses_nothing(upstream: Upstream) -> None:
    disk = MemoryDisk()
    run = await crashed_when(upstream, disk, "poll", **BLIND)
    assert any(isinstance(event, AttemptSubmitted) for event in disk.events)
    async with served(upstream, "studio", disk=disk, **BLIND) as engine:
        while not (report := await engine.end(run)).result:
            await anyio.lowlevel.checkpoint()
        assert (report.status, upstream.count("submit"), len(upstream.works)) == ("completed", 1, 1)


async def test_a_crash_before_the_id_is_known_is_looked_up_by_its_key(upstream: Upstream) -> None:
    disk = MemoryDisk()
    run = await crashed_when(upstream, disk, "submit", worked=True)
    assert not any(isinstance(event, AttemptSubmitted) for event in disk.events)
    async with served(upstream, "studio", disk=disk, daemon={"auto_resume": False}) as engine:
        report = await engine.resume(run)
        assert (report.status, report.calls.replayed, upstream.count("submit")) == ("completed", 1, 1)
        assert round(report.spend.usd * 1e6) == upstream.bill


async def test_without_an_id_and_without_a_look_up_it_stays_unresolved(upstream: Upstream) -> None:
    disk = MemoryDisk()
    run = await crashed_when(upstream, disk, "submit", worked=True, **BLIND)
    async with served(upstream, "studio", disk=disk, daemon={"auto_resume": False}, **BLIND) as engine:
        with pytest.raises(AttemptUnresolvedError) as refused:
            await engine.resume(run)
        assert "again" not in refused.value.hint
        assert (await states(engine, run), upstream.count("submit")) == (["unresolved"], 1)


async def test_links_that_were_known_at_a_crash_are_fetched_without_a_new_order(upstream: Upstream) -> None:
    disk = MemoryDisk()
    run = await crashed_when(upstream, disk, "file")
    async with served(upstream, "studio", disk=disk, daemon={"auto_resume": False}) as engine:
        report = await engine.resume(run)
        assert (report.status, upstream.count("submit")) == ("completed", 1)
        assert (round(report.spend.usd * 1e6), report.spend.unpriced) == (upstream.bill, 0)


async def test_an_order_that_never_arrived_is_placed_once_it_is_known_not_to_have(upstream: Upstream) -> None:
    clock = ManualClock()
    upstream.script(Fault(drop="unread"), kind="submit")
    async with served(upstream, "studio", clock=clock, dedupes_keys=0) as engine:
        lost = await engine.run(PAID)
        assert (lost.reason, upstream.count("submit")) == ("TS-A002", 0)
        await clock.advance(61)
        report = await engine.resume(lost.run)
        assert (report.status, await states(engine, lost.run)) == ("completed", ["failed", "committed"])
        assert (upstream.count("submit"), len(upstream.works)) == (1, 1)
