"""Where something stands in a script, as clients are told: lines from 1, columns from 0 in characters, flat."""

import json

import msgspec
import pytest

from engine_witness import witnessed
from tallystick.contract.errors import GateStoppedError, ScriptRefusedError
from tallystick.contract.events import ErrorInfo
from tallystick.engine.messages import CheckRequest, ErrorBody, Limits, Region, ResumeRequest, RunRequest

SCRIPT = """
async def orchestrate(ctx, args):
    async def draw(name):
        label = "ü漢"; picture = await ctx.run("image.generate", {"prompt": "ü " + name})
        return picture["width"]

    for number in range(2):
        pass
    return await ctx.parallel([draw(name) for name in ["a", "b"]])
"""
MOVED = """
async def draw(ctx, name):
    label = "ü"; picture = await ctx.run("image.generate", {"prompt": "ü " + name})
    return picture["width"]


async def orchestrate(ctx, args):
    return await ctx.parallel([draw(ctx, name) for name in ["a", "b"]])
"""
UNBOUNDED = """
async def orchestrate(ctx, args):
    for name in args["names"]:
        await ctx.run("image.generate", {"prompt": name})
"""
CALL = 'ctx.run("image.generate", {"prompt": "ü " + name})'


def cut(source: str, region: Region) -> str:
    """Cut a region out of a source just as docs/api.md tells clients to."""
    assert region.line == region.end_line
    return source.split("\n")[region.line - 1][region.column : region.end_column]


async def test_facts_say_where_they_were_found() -> None:
    async with witnessed() as (engine, _):
        report = await engine.host.service.check(CheckRequest(SCRIPT))
        assert report.facts is not None
        (site,) = report.facts.sites
        assert (cut(SCRIPT, site), site.site, site.total, site.per_path) == (CALL, "orchestrate.draw/#1", 2, 1)
        (fanout,) = report.facts.fanouts
        assert cut(SCRIPT, fanout).startswith("ctx.parallel([")
        assert (fanout.kind, fanout.width) == ("parallel", 2)
        assert "range(2)" in {SCRIPT.split("\n")[loop.line - 1][-9:-1] for loop in report.facts.loops}


async def test_a_violation_is_flat_wherever_it_is_told() -> None:
    async with witnessed() as (engine, _):
        report = await engine.host.service.check(CheckRequest(UNBOUNDED))
        with pytest.raises(ScriptRefusedError) as refused:
            await engine.host.service.submit(RunRequest(UNBOUNDED, limits=Limits(grants=("image.generate",))))
        body = ErrorBody(ErrorInfo("TS-C001", ""), refused.value.details)
        for told in (report.violations, refused.value.details):
            assert [each.rule for each in told] == ["R03"]
        (plain,) = json.loads(msgspec.json.encode(body))["details"]
        assert set(plain) == {"rule", "severity", "line", "column", "end_line", "end_column", "message", "hint"}
        assert UNBOUNDED.split("\n")[plain["line"] - 1][plain["column"] :].startswith(("for name", 'args["names"]'))


async def test_a_counterexample_quotes_both_scripts_where_the_calls_stand() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request")
        run = (await engine.run(SCRIPT)).run
        report = await engine.gate(run, MOVED)
        (found,) = report.counterexamples
        assert found.new is not None
        assert (found.old.text, found.new.text) == (CALL, CALL)
        assert (cut(SCRIPT, found.old), cut(MOVED, found.new)) == (CALL, CALL)
        assert (found.site, found.kind, found.moved_to) == ("orchestrate.draw/#1", "removed", "draw/#1")
        assert found.hint
        with pytest.raises(GateStoppedError) as stopped:
            await engine.host.service.resume(run, ResumeRequest(source=MOVED))
        assert stopped.value.details == report.counterexamples
        (plain,) = json.loads(msgspec.json.encode(report.counterexamples))
        assert set(plain) == {"site", "kind", "message", "hint", "old", "new", "moved_to"}
        assert set(plain["old"]) == {"line", "column", "end_line", "end_column", "text"}


async def test_a_call_that_is_gone_has_nothing_new() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request")
        run = (await engine.run(SCRIPT)).run
        report = await engine.gate(run, "async def orchestrate(ctx, args):\n    return 1\n")
        assert [(each.new, each.moved_to) for each in report.counterexamples] == [(None, None)]


async def test_a_rewrite_that_the_checker_stops_was_not_compared() -> None:
    async with witnessed() as (engine, _):
        run = (await engine.run(SCRIPT)).run
        report = await engine.gate(run, UNBOUNDED)
        assert (report.accepted, report.counterexamples, report.frozen) == (False, (), 1)
        assert [each.rule for each in report.violations] == ["R03"]
