"""Casebook 1: a fanout ahead of the failure point must not make a resume pay for everything again."""

from engine_witness import Witness, assert_standing, witnessed
from tallystick.providers.protocol import Refused

TAIL_FAILS = """
async def orchestrate(ctx, args):
    async def gen(s):
        return await ctx.run("image.generate", {"prompt": s})

    shots = await ctx.parallel([gen(s) for s in args["shots"][:12]])
    caption = await ctx.run("text.generate", {"prompt": "one line for all"})
    voice = await ctx.run("speech.generate", {"text": caption["text"]})
    return {"shots": [shot["images"][0]["$artifact"] for shot in shots], "voice": voice["audio"]["$artifact"]}
"""
FANOUT_FAILS = """
SHOTS = ["s00", "s01", "s02", "bad03", "s04", "s05", "s06", "s07", "s08", "bad09", "s10", "s11"]


async def orchestrate(ctx, args):
    async def gen(s):
        return await ctx.run("image.generate", {"prompt": s})

    shots = await ctx.parallel([gen(s) for s in SHOTS])
    return [shot["images"][0]["$artifact"] for shot in shots]
"""
REFUSED = Refused(kind="rate_limited", text="later")


def pictured(witness: Witness, artifacts: list[str]) -> list[str]:
    """Return the prompts that pictures were made for: a stand-in picture holds its payload."""
    texts = [witness.disk.files[artifact.removeprefix("sha256:")].decode() for artifact in artifacts]
    return [text.partition('"prompt": "')[2].partition('"')[0] for text in texts]


async def test_resume_pays_for_the_failed_call_alone_however_the_branches_finish() -> None:
    shots = [f"shot {number:02}" for number in range(12)]
    witness = Witness(shuffle=0)
    async with witnessed(witness) as (engine, _):
        for nth in range(1, 6):
            witness.fail("speech.generate", nth, "rate_limited")
        first = await engine.run(TAIL_FAILS, {"shots": shots})
        assert (first.status, first.calls.executed, first.calls.replayed, first.calls.failed) == ("failed", 13, 0, 1)
        assert witness.count() == 14
        for again in range(1, 6):
            witness.reshuffle(again)
            report = await engine.resume(first.run)
            assert witness.count() == 14 + again
            assert (report.calls.replayed, report.calls.executed + report.calls.failed) == (13, 1)
            await assert_standing(engine, first.run)
        assert report.status == "completed"
        assert pictured(witness, report.result["shots"]) == shots


async def test_a_rewrite_that_mends_two_branches_pays_for_two() -> None:
    witness = Witness(shuffle=3)
    async with witnessed(witness) as (engine, _):
        witness.broken["bad"] = REFUSED
        first = await engine.run(FANOUT_FAILS)
        assert (first.status, first.calls.executed, first.calls.failed) == ("failed", 10, 2)

        witness.reshuffle(8)
        mended = FANOUT_FAILS.replace("bad03", "s03").replace("bad09", "s09")
        second = await engine.resume(first.run, mended)
        assert (second.status, second.calls.replayed, second.calls.executed) == ("completed", 10, 2)
        assert witness.count() == 12 + 2
        assert pictured(witness, second.result) == [f"s{number:02}" for number in range(12)]
        await assert_standing(engine, first.run)
