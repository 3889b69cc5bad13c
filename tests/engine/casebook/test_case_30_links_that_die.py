"""Casebook 30: a result is its bytes, kept at commit; a link that dies, or a result that is huge, costs nothing again."""

import hashlib
from typing import Any

from broker_support import served
from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.providers.protocol import Blob, Succeeded
from tallystick.store.memory import MemoryDisk
from upstream_faults import Fault
from upstream_server import Upstream, running

LINKED = """
async def orchestrate(ctx, args):
    made = await ctx.run("image.generate", {"prompt": "a lighthouse", "size": "64x48"})
    return made["images"]
"""
BIG = 25 << 20
MANY = """
async def orchestrate(ctx, args):
    async def shot(number):
        made = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        await ctx.run("review.visual", {"image": made["images"][0], "criteria": "sharp"})
        return made["images"][0]

    return await ctx.parallel([shot(number) for number in range(40)])
"""
WHOLE = """
async def orchestrate(ctx, args):
    try:
        await ctx.run("text.generate", {"prompt": "x" * 20000000})
    except CapabilityError as error:
        return error.kind
"""


def bytes_of(engine: House, images: list[dict[str, Any]]) -> list[bytes]:
    store = engine.host.service.journal.store
    return [store.get_file(image["$artifact"].removeprefix("sha256:")) for image in images]


def is_billed(engine_spend: float, upstream: Upstream) -> bool:
    return round(engine_spend * MICROS_PER_USD) == upstream.bill


async def test_replay_never_depends_on_a_link() -> None:
    disk = MemoryDisk()
    async with running() as upstream:
        async with served(upstream, "studio", disk=disk) as engine:
            first = await engine.run(LINKED)
            assert first.status == "completed"
            before = bytes_of(engine, first.result)
        upstream.links_live = False
        async with served(upstream, "studio", disk=disk) as engine:
            again = await engine.resume(first.run)
            assert (again.status, again.result, again.calls.replayed) == ("completed", first.result, 1)
            assert bytes_of(engine, again.result) == before == [upstream.files["1.png"]]
            assert is_billed(again.spend.usd, upstream)
        assert upstream.paid_hits == 1


async def test_a_half_download_leaves_the_call_unresolved_with_its_link_and_no_new_order() -> None:
    async with running() as upstream, served(upstream, "studio") as engine:
        upstream.script(Fault(drop="cut"), kind="file", times=None)
        stopped = await engine.run(LINKED)
        assert (stopped.status, stopped.reason, upstream.paid_hits) == ("stopped", "TS-A002", 1)
        attempt = (await engine.history(stopped.run)).attempts[1]
        raw = await engine.host.service.keeper.read(attempt.raw)
        assert f"{upstream.url}/files/1.png" in str(raw)
        assert is_billed(stopped.spend.usd, upstream), "what it has cost was told before the link was fetched"
        upstream.calm()
        settled = await engine.reconcile(stopped.run, 1, reprocess=True)
        assert settled.state == "committed"
        done = await engine.resume(stopped.run)
        assert (done.status, upstream.paid_hits, is_billed(done.spend.usd, upstream)) == ("completed", 1, True)
        assert bytes_of(engine, done.result) == [upstream.files["1.png"]]


async def test_forty_large_pictures_are_passed_on_as_references() -> None:
    picture = bytes(BIG)
    result = {"images": [Blob(picture, "image/png")], "width": 64, "height": 48}
    witness = Witness(cost=20_000)
    for number in range(1, 41):
        witness.script("image.generate", number, Succeeded(result=result, cost=20_000))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(MANY)
        assert (report.status, report.calls.executed) == ("completed", 80)
        name = f"sha256:{hashlib.sha256(picture).hexdigest()}"
        assert {image["$artifact"] for image in report.result} == {name}
        assert all(len(hit.text) < 500 for hit in witness.hits)
        again = await engine.resume(report.run)
        assert (again.calls.replayed, again.result, witness.count()) == (80, report.result, 80)
        await assert_standing(engine, report.run)


async def test_a_payload_beyond_the_limit_is_refused_before_it_is_sent() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(WHOLE)
        assert (report.result, witness.count(), await engine.attempts(report.run)) == ("invalid_request", 0, [])
