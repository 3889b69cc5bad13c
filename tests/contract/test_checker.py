"""What the checker answers: findings that teach, at the right place, and never an exception."""

import ast
from pathlib import Path

import pytest

from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.checker import check, check_tree
from tallystick.contract.positions import SourceMap
from tallystick.contract.source import Span, Violation

ACCEPTED = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'
CATALOGUE = {name: CapabilitySpec(name, "read_only", 1) for name in ("text.generate", "video.edit")}


def only_finding(source: str, envelope: Envelope | None = None) -> Violation:
    report = check(source, envelope, CATALOGUE)
    assert not report.valid
    assert len(report.violations) == 1, report.violations
    return report.violations[0]


def body(*lines: str) -> str:
    return "async def orchestrate(ctx, args):\n" + "".join(f"    {line}\n" for line in lines)


def test_an_accepted_script_is_valid_and_has_its_sites() -> None:
    report = check(ACCEPTED)
    assert report.valid
    assert report.violations == ()
    assert report.script is not None
    assert [fact.site for fact in report.script.sites] == list(report.facts.sites) == ["orchestrate/#1"]


def test_findings_are_in_the_order_of_the_source() -> None:
    report = check("import json\n\n\n" + body("for x in args['xs']:", "    await ctx.run('a', {})", "return id(x)"))
    assert [one.rule for one in report.violations] == ["R10", "R03", "R04"]
    assert [one.span.line for one in report.violations] == [1, 5, 7]


def test_a_span_counts_characters_not_bytes() -> None:
    found = only_finding(body('a = "é日"; return getattr(a, "x")'))
    assert found.span == Span(2, 21, 2, 28)


def test_an_unbounded_loop_is_shown_with_the_slice_that_would_bound_it() -> None:
    found = only_finding(body('for t in args["tickets"]:', '    await ctx.run("text.generate", {"prompt": t})'))
    assert found.message == 'this loop reaches a capability call, and nothing bounds args["tickets"]'
    assert found.hint == 'slice it: args["tickets"][:20], or with a module constant'
    assert found.span == Span(2, 4, 2, 28)


def test_the_hint_leads_through_variables_to_what_has_no_bound() -> None:
    found = only_finding(
        body(
            'names = [t["name"] for t in args["tickets"]]',
            "picked = sorted(names)",
            "for i, name in enumerate(picked):",
        )
        + '        await ctx.run("text.generate", {"prompt": name})\n'
    )
    assert 'args["tickets"][:20]' in found.hint


def test_a_slice_that_may_begin_from_the_end_is_explained() -> None:
    found = only_finding(
        body('for t in args["xs"][:min(args["n"], 8)]:', '    await ctx.run("text.generate", {"prompt": t})')
    )
    assert found.hint == (
        'min(args["n"], 8) may be negative, and then the slice keeps nearly everything: '
        'write [:max(0, min(args["n"], 8))]'
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("text.genrate", "did you mean 'text.generate'? granted are text.generate"),
        ("video.edit", "granted are text.generate"),
    ],
)
def test_a_capability_outside_the_envelope_is_told_with_the_nearest_name(name: str, hint: str) -> None:
    found = only_finding(body(f'return await ctx.run("{name}", {{}})'), Envelope(grants=("text.generate",)))
    assert found.rule == "R11"
    assert found.hint.startswith(hint)


def test_without_an_envelope_no_capability_is_outside_it() -> None:
    assert check(body('return await ctx.run("no.such", {})'), None, CATALOGUE).valid


def test_an_unknown_method_of_the_context_is_told_with_the_nearest_one() -> None:
    assert only_finding(body("return await ctx.paralel([])")).hint == "did you mean ctx.parallel?"
    assert only_finding(body("return await ctx.gather([])")).hint == "did you mean ctx.parallel?"


def test_a_site_given_by_the_script_is_told_by_its_rule() -> None:
    source = body('return await ctx.run("text.generate", {}, _site="orchestrate/#9")')
    assert [one.rule for one in check(source).violations] == ["R10"]


def test_a_source_that_cannot_be_read_is_one_finding_without_a_script() -> None:
    report = check("async def orchestrate(ctx, args:\n")
    assert [one.rule for one in report.violations] == ["R00"]
    assert report.script is None
    assert report.facts.sites == ()


def test_the_same_finding_is_told_once() -> None:
    source = 'SCHEMA = {"required": {"a"}}\n' + body(
        'await ctx.run("text.generate", {"schema": SCHEMA})', 'return await ctx.run("text.generate", SCHEMA)'
    )
    assert [one.rule for one in check(source).violations] == ["R08"]


DEEP = {
    "calls": "f(" * 150 + ")" * 150,
    "sum": "1" + " + 1" * 5_000,
    "attributes": "args" + ".x" * 5_000,
    "comprehensions": "[" * 90 + "x" + " for x in args]" * 90,
    "conditions": "1 if args else " * 150 + "2",
    "lambdas": "lambda: " * 150 + "1",
    "negations": "not " * 1_000 + "args",
    "power": "2 ** 9999 ** 99999 ** 999",
    "numbers": "range(10 ** 400)[:10 ** 400 * 10 ** 400]",
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP)
def test_a_depth_bomb_is_judged_like_any_script(expression: str) -> None:
    report = check(body(f"for x in {expression}:", "    await ctx.run('a', {})"))
    assert {one.rule for one in report.violations} <= {"R00", "R03"}


def test_a_long_chain_of_elif_is_judged() -> None:
    lines = ["if args == 0:", "    n = 0"]
    for number in range(1, 190):
        lines += [f"elif args == {number}:", f"    n = {number}"]
    report = check(body(*lines, "for i in range(n):", "    await ctx.run('a', {})"))
    assert {one.rule for one in report.violations} <= {"R00"}


@pytest.mark.parametrize("path", sorted(Path(ast.__file__).parent.glob("[a-b]*.py")), ids=lambda path: path.stem)
def test_any_module_of_the_standard_library_is_judged(path: Path) -> None:
    report = check(path.read_text(encoding="utf-8", errors="replace"))
    assert not report.valid
    assert all(one.message and one.hint for one in report.violations)


def test_a_tree_is_judged_without_a_script() -> None:
    tree = ast.parse(ACCEPTED)
    violations, facts = check_tree(tree, SourceMap.of(ACCEPTED), {})
    assert violations == ()
    assert facts.calls == {"text.generate": 1}
