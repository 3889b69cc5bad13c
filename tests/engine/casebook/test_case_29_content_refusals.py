"""Casebook 29: a refusal of content is not a broken request, and neither is tried again."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_support import served
from tallystick.contract.prefix import frozen_sites
from upstream_faults import Fault
from upstream_server import Upstream, running

SIX = """
async def orchestrate(ctx, args):
    async def shot(number):
        try:
            image = await ctx.run("image.generate", {"prompt": f"shot <{number}>", "size": "64x48"})
        except CapabilityError as error:
            return [error.kind, error.text]
        return image["width"]

    return await ctx.parallel([shot(number) for number in range(6)])
"""
POLICY_WORDS = "Your request was rejected by the safety system"


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"error": {"code": "content_policy_violation", "message": POLICY_WORDS}}, "content_policy", POLICY_WORDS),
        ({"error": {"code": "moderation_blocked", "message": POLICY_WORDS}}, "content_policy", POLICY_WORDS),
        ("", "invalid_request", "400"),
        ({"error": {"code": "invalid_size", "message": "64x48 is too small"}}, "invalid_request", "64x48 is too small"),
        ({"error": {"message": "x" * 9_000}}, "invalid_request", "x" * 900),
    ],
    ids=["policy", "moderation", "no body", "size", "long"],
)
async def test_the_kinds_are_kept_apart_and_their_words_kept(
    upstream: Upstream, body: Any, kind: str, words: str
) -> None:
    upstream.script(Fault(status=400, body=body), kind="image", containing="<3>", times=None)
    async with served(upstream, policy={"retries": 3}) as engine:
        report = await engine.run(SIX)
        assert (report.status, report.result[:3], report.result[4:]) == ("completed", [64] * 3, [64] * 2)
        said_kind, said = report.result[3]
        assert said_kind == kind
        assert words in said
        assert len(said) < 2_000
        assert (upstream.count("image"), len(upstream.works)) == (6, 5), "it was not tried again"
        failed = [attempt for attempt in await engine.attempts(report.run) if attempt.state == "failed"]
        assert [(attempt.kind, attempt.cost_usd) for attempt in failed] == [(kind, 0)]
        assert round(report.spend.usd * 1e6) == upstream.bill


async def test_a_refusal_alone_freezes_no_site(upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body={"error": {"code": "content_policy_violation"}}), kind="image", times=None)
    async with served(upstream) as engine:
        report = await engine.run(SIX)
        assert frozen_sites(await engine.history(report.run)) == {}
        upstream.calm()
        milder = await engine.resume(report.run, SIX.replace("shot <", "a mild shot <"))
        assert (milder.status, milder.result) == ("completed", [64] * 6)
