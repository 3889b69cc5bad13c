"""Casebook 14: one key for one logical call: over retries, restarts and lost answers, and never the script's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_support import PAID, served, states
from engine_stores import RefusingStore
from tallystick.kernel import ManualClock
from tallystick.store.memory import MemoryDisk
from upstream_faults import Fault
from upstream_server import Upstream, running

# Answers at once, takes keys, and cannot be asked: the window in which it knows a key is all that it promises.
KEYED: dict[str, Any] = {"idempotency_header": "Idempotency-Key", "dedupes_keys": 86_400}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        server.honours_keys = True
        yield server


def keys(upstream: Upstream) -> list[str | None]:
    return [hit.key for hit in upstream.hits if hit.kind in ("image", "submit")]


async def test_a_retry_after_503_goes_out_under_the_same_key(upstream: Upstream) -> None:
    clock = ManualClock()
    upstream.script(Fault(status=503, headers={"Retry-After": "2"}), kind="image")
    async with served(upstream, clock=clock, policy={"retries": 1}, **KEYED) as engine:
        run = await engine.submit(PAID)
        async for line in engine.host.service.watch(run):
            if line.kind == "retrying":
                await clock.advance(3)
        assert (await engine.end(run)).status == "completed"
        first, second = keys(upstream)
        assert first == second
        assert {attempt.effect_key for attempt in await engine.attempts(run)} == {first}


async def test_a_lost_answer_is_fetched_by_the_same_key_and_billed_once(upstream: Upstream) -> None:
    upstream.script(Fault(drop="unanswered"), kind="image")
    async with served(upstream, **KEYED) as engine:
        lost = await engine.run(PAID)
        assert (lost.reason, len(upstream.works)) == ("TS-A002", 1)
        report = await engine.resume(lost.run)
        assert (report.status, await states(engine, lost.run)) == ("completed", ["resent", "committed"])
        assert (len(set(keys(upstream))), upstream.count("image"), len(upstream.works)) == (1, 2, 1)
        assert (round(report.spend.usd * 1e6), report.spend.unpriced) == (upstream.bill, 0)


async def test_a_restart_keeps_the_key_and_an_abandonment_makes_another(upstream: Upstream) -> None:
    disk = MemoryDisk()
    store = RefusingStore(disk)
    plain: dict[str, Any] = {"idempotency_header": "Idempotency-Key"}
    async with served(upstream, store=store, **plain) as engine:
        gate = upstream.hold("image", worked=True)
        run = await engine.submit(PAID)
        await gate.reached()
        store.die()
        gate.release()
    async with served(upstream, disk=disk, **plain) as engine:
        (attempt,) = await engine.attempts(run)
        assert (attempt.state, attempt.effect_key) == ("unresolved", keys(upstream)[0])
        await engine.reconcile(run, 1, abandon=True, why="not on the bill")
        assert (await engine.resume(run)).status == "completed"
        first, second = keys(upstream)
        assert first != second


async def test_each_branch_sends_what_its_dict_held_when_it_called(upstream: Upstream) -> None:
    script = """
async def orchestrate(ctx, args):
    payload = {"prompt": "", "size": "64x48"}
    calls = []
    for number in range(3):
        payload["prompt"] = f"shot <{number}>"
        calls.append(shot(ctx, dict(payload)))
    return len(await ctx.parallel(calls))

async def shot(ctx, payload):
    image = await ctx.run("image.generate", payload)
    payload["prompt"] = "changed afterwards"
    return image["width"]
"""
    async with served(upstream, **KEYED) as engine:
        assert (await engine.run(script)).result == 3
    assert sorted(hit.payload["prompt"] for hit in upstream.hits) == ["shot <0>", "shot <1>", "shot <2>"]
    assert len(set(keys(upstream))) == 3
