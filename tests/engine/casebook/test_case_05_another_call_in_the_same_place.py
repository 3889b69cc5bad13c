"""Casebook 5: another call in the same place, or one put ahead, must never be matched to old history."""

import pytest

from engine_witness import assert_standing, witnessed
from tallystick.contract.errors import GateStoppedError

COMMITTED = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": args["prompt"]})
    text = await ctx.run("text.generate", {"prompt": "a caption"})
    return [image["width"], text["text"]]
"""
IMAGE = '    image = await ctx.run("image.generate", {"prompt": args["prompt"]})\n'
TEXT = '    text = await ctx.run("text.generate", {"prompt": "a caption"})\n'
INSERTED = '    extra = await ctx.run("text.generate", {"prompt": "first of all"})\n'

STOPPED = {
    "another capability": (
        COMMITTED.replace("image.generate", "text.generate").replace('image["width"]', "1"),
        [("orchestrate/#1", "capability_changed")],
    ),
    "a call put ahead": (
        COMMITTED.replace(IMAGE, INSERTED + IMAGE),
        [("orchestrate/#1", "capability_changed"), ("orchestrate/#2", "capability_changed")],
    ),
    "an equal capability put ahead": (
        COMMITTED.replace(TEXT, INSERTED + TEXT),
        [("orchestrate/#2", "call_changed")],
    ),
    "wrapped in a block": (
        COMMITTED.replace(IMAGE, f"    if args:\n    {IMAGE}"),
        [("orchestrate/#1", "capability_changed"), ("orchestrate/#2", "removed")],
    ),
    "deleted": (
        COMMITTED.replace(IMAGE, '    image = {"width": 1}\n'),
        [("orchestrate/#1", "capability_changed"), ("orchestrate/#2", "removed")],
    ),
    "the last one deleted": (
        COMMITTED.replace(TEXT, '    text = {"text": ""}\n'),
        [("orchestrate/#2", "removed")],
    ),
}
ACCEPTED = {
    "a statement put ahead": (COMMITTED.replace(IMAGE, "    note = len(args)\n" + IMAGE), 0),
    "a call-free block put ahead": (COMMITTED.replace(IMAGE, "    if args:\n        note = 1\n" + IMAGE), 0),
    "a call appended": (COMMITTED.replace(TEXT, TEXT + INSERTED), 1),
}


@pytest.mark.parametrize("change", STOPPED)
async def test_the_gate_stops_it_with_no_hit_and_says_where_and_what_is_legal(change: str) -> None:
    candidate, findings = STOPPED[change]
    async with witnessed() as (engine, witness):
        run = (await engine.run(COMMITTED, {"prompt": "a mug"})).run
        with pytest.raises(GateStoppedError) as stopped:
            await engine.resume(run, candidate)
        assert [(one.site, one.kind) for one in stopped.value.details] == findings
        for one in stopped.value.details:
            old = COMMITTED.splitlines()[one.old.line - 1]
            assert one.old.text == old[one.old.column : one.old.end_column]
            assert f"line {one.old.line}" in one.message
            assert one.hint
            if one.kind != "removed":
                new = candidate.splitlines()[one.new.line - 1]
                assert one.new.text == new[one.new.column : one.new.end_column]
        assert witness.count() == 2
        report = await assert_standing(engine, run)
        assert (report.launch, report.status) == (1, "completed")


@pytest.mark.parametrize("change", ACCEPTED)
async def test_the_gate_lets_it_pass_and_only_new_work_is_paid(change: str) -> None:
    candidate, new = ACCEPTED[change]
    async with witnessed() as (engine, witness):
        run = (await engine.run(COMMITTED, {"prompt": "a mug"})).run
        resumed = await engine.resume(run, candidate)
        assert (resumed.status, resumed.calls.replayed, resumed.calls.executed) == ("completed", 2, new)
        assert witness.count() == 2 + new
        await assert_standing(engine, run)
