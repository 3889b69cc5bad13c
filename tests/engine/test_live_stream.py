"""What a run's live stream tells beside its calls: what the script prints, and which call was stopped."""

from contextlib import aclosing
from typing import Any

import pytest

from engine_support import House
from engine_witness import Witness, witnessed
from scripted_provider import Gate
from tallystick.engine.feed import BACKLOG
from tallystick.engine.launch import LOG_LIMIT
from tallystick.engine.messages import Progress, ResumeRequest
from tallystick.providers.protocol import Unknown

TALKING = """
async def orchestrate(ctx, args):
    await ctx.run("text.generate", {"prompt": "first"})
    print("one")
    ctx.log("two")
    await ctx.run("text.generate", {"prompt": "second"})
    print("three")
"""
REPLAYING = """
async def orchestrate(ctx, args):
    if args["again"]:
        await ctx.run("text.generate", {"prompt": "first"})
    await ctx.run("text.generate", {"prompt": "second"})
    print("one")
    await ctx.run("text.generate", {"prompt": "third"})
    print("two")
"""
CHATTY = """
async def orchestrate(ctx, args):
    await ctx.run("text.generate", {"prompt": "first"})
    for number in range(4 * 2048):
        print(number)
"""
LOUD = """
async def orchestrate(ctx, args):
    await ctx.run("text.generate", {"prompt": "first"})
    for number in range(400):
        print("x" * 1000)
"""
PICTURE = """
async def orchestrate(ctx, args):
    await ctx.run("text.generate", {"prompt": "first"})
    await ctx.run("image.generate", {"prompt": "a mug"})
"""


async def watched(engine: House, run: str, gate: Gate) -> list[Progress]:
    """Let the run go once it is watched, and return what the stream told until its end."""
    lines = []
    async with aclosing(engine.host.service.watch(run)) as stream:
        async for line in stream:
            gate.release()
            lines.append(line)
    return lines


async def told(engine: House, witness: Witness, script: str, **options: Any) -> tuple[str, list[Progress]]:
    """Run a script whose first call is held until the stream is open."""
    gate = witness.hold(containing="first")
    run = await engine.submit(script, **options)
    await gate.reached()
    return run, await watched(engine, run, gate)


async def test_what_a_script_prints_is_told_in_its_place() -> None:
    async with witnessed() as (engine, witness):
        run, lines = await told(engine, witness, TALKING)
        order = [(line.kind, line.text) for line in lines if line.kind in ("committed", "log")]
        assert order == [("committed", ""), ("log", "one\ntwo"), ("committed", ""), ("log", "three")]
        assert (await engine.end(run)).logs == "one\ntwo\nthree"


async def test_what_is_printed_between_replays_is_told_between_them() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(REPLAYING, {"again": False})).run
        gate = witness.hold(containing="first")
        await engine.host.service.resume(run, ResumeRequest(args={"again": True}))
        await gate.reached()
        lines = await watched(engine, run, gate)
        order = [(line.kind, line.text) for line in lines if line.kind in ("committed", "replayed", "log")]
        assert order == [("committed", ""), ("replayed", ""), ("log", "one"), ("replayed", ""), ("log", "two")]


async def test_a_script_that_prints_much_loses_nobody_who_watches() -> None:
    async with witnessed() as (engine, witness):
        run, lines = await told(engine, witness, CHATTY)
        assert lines[-1].kind == "ended"
        assert len(lines) < BACKLOG
        printed = "\n".join(line.text for line in lines if line.kind == "log")
        assert printed == (await engine.end(run)).logs == "\n".join(map(str, range(4 * 2048)))


async def test_what_is_beyond_the_limit_is_neither_told_nor_kept() -> None:
    async with witnessed() as (engine, witness):
        run, lines = await told(engine, witness, LOUD)
        printed = "\n".join(line.text for line in lines if line.kind == "log")
        assert printed == (await engine.end(run)).logs
        assert len(printed) == LOG_LIMIT


@pytest.mark.parametrize(("kind", "budget"), [("denied", 0.01), ("unresolved", 1.0)])
async def test_a_call_that_stops_the_launch_is_told_with_its_capability(kind: str, budget: float) -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = Unknown(reason="reset", kind="unavailable")
        _, lines = await told(engine, witness, PICTURE, limits={"budget_usd": budget})
        (line,) = [each for each in lines if each.kind == kind]
        assert (line.capability, str(line.identity)) == ("image.generate", "orchestrate/#2 [] 0")
