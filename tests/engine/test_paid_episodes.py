"""The paper's episodes with a paid provider (E5, E5b, the six-way fanout), over a real LiteLLM proxy; the bill counts."""

import pytest

from http_support import SwiftClock
from litellm_support import make
from live_support import LiveHouse, live
from provider_support import MemoryArtifacts
from proxy_support import PROXY_SECRET, LitellmProxy
from tallystick.bench.paper.cases import (
    FANOUT_OF_SIX,
    FANOUT_OF_SIX_REPAIRED,
    FOUR,
    FOUR_ARGS,
    FOUR_REPAIRED,
    SIX_PROMPTS,
    TWO,
)
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.errors import AttemptUnresolvedError
from tallystick.engine.messages import RunReport
from tallystick.providers.catalogue import spec
from upstream_faults import Fault


async def failed_at_the_second(engine: LiveHouse, script: str) -> str:
    report = await engine.run(script)
    assert (report.status, report.calls.executed, engine.upstream.count("image")) == ("failed", 1, 2)
    return report.run


async def repaired(engine: LiveHouse, run: str, script: str, *, replayed: int) -> RunReport:
    """Resume with a repair: one call is new, and what was paid for is served as it was, byte by byte."""
    before, calls = await engine.pictures(run), engine.upstream.count("image")
    report = await engine.resume(run, script)
    assert (report.status, report.calls.replayed, report.calls.executed) == ("completed", replayed, 1)
    assert report.orphans == ()
    assert engine.upstream.count("image") == calls + 1
    after = await engine.pictures(run)
    assert len(before) == replayed
    assert all(picture in after for picture in before)
    assert (await engine.host.inquiry.certificate(run, check=True)).differences == ()
    return report


async def test_e5_four_pictures_take_five_calls_and_a_rerun_eight(litellm_proxy: LitellmProxy) -> None:
    async with litellm_proxy.upstream() as upstream, live(upstream, litellm_proxy.settings()) as engine:
        failed = await engine.run(FOUR, FOUR_ARGS)
        assert (failed.status, failed.calls.executed, failed.calls.failed) == ("failed", 3, 1)
        assert upstream.count("image") == 4
        (refused,) = [one for one in await engine.attempts(failed.run) if one.state == "failed"]
        assert (refused.kind, "9999x9999" in refused.text) == ("invalid_request", True)
        await engine.assert_sound(failed)

        await engine.assert_sound(await repaired(engine, failed.run, FOUR_REPAIRED, replayed=3))
        assert len(set(await engine.pictures(failed.run))) == 4
        assert upstream.count("image") == 4 + 1

        assert 4 + await engine.rerun(FOUR_REPAIRED, FOUR_ARGS) == 8


@pytest.mark.parametrize(
    ("wrong", "right", "status", "kind"),
    [
        ('"a wheel", 4', '"a wheel", 1', 404, "invalid_request"),
        ('"a forbidden wheel", 1', '"a wheel", 1', 403, "unauthorized"),
    ],
)
async def test_e5b_a_call_that_is_refused_costs_one_more_call(
    wrong: str, right: str, status: int, kind: str, litellm_proxy: LitellmProxy
) -> None:
    broken = TWO.replace('"a wheel", 1', wrong)
    async with litellm_proxy.upstream() as upstream, live(upstream, litellm_proxy.settings()) as engine:
        for marked in ('"n": 4', "forbidden"):
            upstream.script(Fault(status=status, body={"error": {"message": "no"}}), kind="image", containing=marked)
        run = await failed_at_the_second(engine, broken)
        assert [one.kind for one in await engine.attempts(run) if one.state == "failed"] == [kind]

        await engine.assert_sound(await repaired(engine, run, broken.replace(wrong, right), replayed=1))
        assert upstream.count("image") == 3
        assert 2 + await engine.rerun(TWO) == 4


async def test_e5b_a_timeout_goes_through_unresolved_with_its_window(litellm_proxy: LitellmProxy) -> None:
    settings, clock = litellm_proxy.settings(), SwiftClock()
    slow = TWO.replace('"a wheel"', '"a slow wheel"')
    provider = make(settings, MemoryArtifacts(), clock, secret=PROXY_SECRET)
    async with litellm_proxy.upstream() as upstream, live(upstream, settings, ready=provider) as engine:
        gate = upstream.hold("image", containing="slow", worked=True)
        run = await engine.submit(slow)
        await gate.reached()
        clock.expire()
        stopped = await engine.end(run)
        assert (stopped.status, stopped.reason, upstream.count("image")) == ("stopped", "TS-A002", 2)
        await engine.assert_sound(stopped, unknown=1)

        (held,) = (await engine.history(run)).unresolved
        assert held.ended is not None
        assert (held.ended.kind, held.ended.cost) == ("timeout", None)
        assert held.started.at < held.ended.at
        with pytest.raises(AttemptUnresolvedError):
            await engine.resume(run, TWO)
        assert upstream.count("image") == 2

        settled = await engine.reconcile(run, held.started.attempt, abandon=True, why="it is no longer wanted")
        assert settled.state == "abandoned"
        report = await repaired(engine, run, TWO, replayed=1)
        # What was abandoned counts as spent, at its estimate; the upstream did the work and billed another amount.
        lost = upstream.works[1].cost
        assert round(report.spend.usd * MICROS_PER_USD) == upstream.bill - lost + spec("image.generate").estimate
        assert upstream.count("image") == 3
        assert 2 + await engine.rerun(TWO) == 4


@pytest.mark.parametrize("width", [3, 6])
async def test_a_fanout_with_one_bad_branch_pays_for_that_branch_alone(width: int, litellm_proxy: LitellmProxy) -> None:
    prompts = SIX_PROMPTS[:width]
    async with litellm_proxy.upstream() as upstream, live(upstream, litellm_proxy.settings()) as engine:
        failed = await engine.run(FANOUT_OF_SIX, {"prompts": prompts})
        assert (failed.status, failed.calls.executed, failed.calls.failed) == ("failed", width - 1, 1)
        assert upstream.count("image") == width

        await engine.assert_sound(await repaired(engine, failed.run, FANOUT_OF_SIX_REPAIRED, replayed=width - 1))
        assert upstream.count("image") == width + 1
        assert width + await engine.rerun(FANOUT_OF_SIX_REPAIRED, {"prompts": prompts}) == 2 * width
