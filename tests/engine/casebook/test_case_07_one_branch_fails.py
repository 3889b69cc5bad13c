"""Casebook 7: one branch fails, and what its siblings finished must not be thrown away."""

import pytest

from engine_witness import Witness, assert_standing, witnessed
from scripted_provider import Gate, Hit
from tallystick.contract.errors import ScriptRefusedError
from tallystick.providers.protocol import Refused

PLAIN = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await ctx.parallel([shot(number) for number in range(6)])
    return len(images)
"""
CAUGHT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    try:
        images = await ctx.parallel([shot(number) for number in range(6)])
    except CapabilityError as error:
        return f"{error.kind}: {error.text}"
    return len(images)
"""
GATHERED = """
import asyncio


async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await asyncio.gather(*[shot(number) for number in range(6)])
    return len(images)
"""


class Siblings(Gate):
    def matches(self, hit: Hit) -> bool:
        return "<2>" not in hit.text


@pytest.mark.parametrize(("script", "ended"), [(PLAIN, "failed"), (CAUGHT, "completed")], ids=["plain", "caught"])
async def test_siblings_in_flight_settle_and_commit_before_the_run_ends(script: str, ended: str) -> None:
    witness = Witness()
    async with witnessed(witness) as (engine, _):
        witness.broken["<2>"] = Refused(kind="content_policy", text="no")
        siblings = Siblings(None, "")
        witness._gates.append(siblings)
        run = await engine.submit(script)
        await siblings.reached(5)
        await witness.has_answered(1)
        live = await engine.host.service.report(run)
        assert (live.status, live.phase) == ("running", "running")
        siblings.release()

        first = await engine.end(run)
        assert (first.status, first.calls.executed, first.calls.failed, witness.count()) == (ended, 5, 1, 6)
        history = await engine.history(run)
        assert [attempt.state for attempt in history.attempts.values()].count("failed") == 1
        assert (await assert_standing(engine, run)).result == (None if ended == "failed" else "content_policy: no")

        witness.calm()
        second = await engine.resume(run)
        assert (second.status, second.result) == ("completed", 6)
        assert (second.calls.replayed, second.calls.executed, witness.count()) == (5, 1, 7)
        await assert_standing(engine, run)


async def test_gather_is_refused_with_a_hint_and_costs_nothing() -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(ScriptRefusedError) as refused:
            await engine.run(GATHERED)
        hints = [one.hint for one in refused.value.details if one.rule == "R10"]
        assert any("ctx.parallel" in hint for hint in hints)
        assert witness.count() == 0
