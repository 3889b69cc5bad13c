"""Every text is a script or a finding of R00, never a traceback (contract.md, section 4)."""

import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.errors import ScriptRefusedError
from tallystick.contract.positions import SourceMap
from tallystick.contract.script import MAX_SITE, MAX_SOURCE, Script, ScriptSyntaxError, read_script
from tallystick.contract.source import Span

SCRIPT = """async def orchestrate(ctx, args):
    é = await ctx.run("image.generate", {"prompt": "日本"}); b = await ctx.run("image.edit", {"image": é})
    return await ctx.race([gen(
        b)])
"""


def refusal(source: str) -> ScriptSyntaxError:
    with pytest.raises(ScriptSyntaxError) as caught:
        read_script(source)
    violation = caught.value.violation
    assert isinstance(caught.value, ScriptRefusedError)
    assert caught.value.details == [violation]
    assert (violation.rule, violation.severity) == ("R00", "error")
    assert violation.message
    assert violation.hint
    assert 1 <= violation.span.line <= violation.span.end_line
    return caught.value


def test_a_script_knows_its_sites_where_they_stand_and_what_is_written_there() -> None:
    script = read_script(SCRIPT)
    assert [(fact.site, fact.kind, fact.capability, fact.span) for fact in script.sites] == [
        ("orchestrate/#1", "call", "image.generate", Span(2, 14, 2, 57)),
        ("orchestrate/#2", "call", "image.edit", Span(2, 69, 2, 104)),
        ("orchestrate/race1", "race", "", Span(3, 17, 4, 12)),
    ]
    assert [script.text(fact) for fact in script.sites] == [
        'ctx.run("image.generate", {"prompt": "日本"})',
        'ctx.run("image.edit", {"image": é})',
        "ctx.race([gen(\n        b)])",
    ]
    assert all(len(fact.fingerprint) == 64 for fact in script.sites)


def test_text_is_found_again_in_the_source_alone() -> None:
    for source in (SCRIPT, "\ufeff" + SCRIPT.replace("\n", "\r\n")):
        script = read_script(source)
        assert script.source == source
        positions = SourceMap.of(source)
        assert [positions.text(fact.span) for fact in script.sites] == [script.text(fact) for fact in script.sites]


def test_bounds_that_the_checker_proves_are_added_to_the_facts() -> None:
    script = read_script(SCRIPT).with_bounds({"orchestrate/#1": (6, 1), "orchestrate/#2": (None, 1)}, {})
    assert isinstance(script, Script)
    assert [(fact.total, fact.per_path) for fact in script.sites] == [(6, 1), (None, 1), (None, None)]


@pytest.mark.parametrize(
    ("source", "line", "message", "hint"),
    [
        ("x = (1,\ny = 2\n", 1, "was never closed", "cut off"),
        ("x = 1\nx = 'abc\n", 2, "unterminated string", "cut off"),
        ("x = 1\n'''abc\n", 2, "unterminated triple-quoted", "cut off"),
        ("async def f(ctx):\n    for x in xs:", 2, "expected an indented block", "cut off"),
        ("x = 1\nx = = 2\n", 2, "invalid syntax", "complete Python module"),
        ("x = 1\n  y = 2\n", 2, "unexpected indent", "complete Python module"),
        ("```python\nx = 1\n```\n", 1, "invalid syntax", "no Markdown fences"),
        ("Here is the script:\n\n```python\nx = 1\n```\nGood luck!", 1, "invalid syntax", "no Markdown fences"),
        ("x = 1\ny = '\0'\n", 2, "null byte", "UTF-8"),
        ("x = 1\n\ny = '\ud800'\n", 3, "lone surrogate", "UTF-8"),
        ("x = 1\n" + "#" * MAX_SOURCE, 1, "524,288 are allowed", "args"),
        ("x = " + "(" * 300 + ")" * 300, 1, "too many nested parentheses", "complete Python module"),
        ("x = " + "-" * 100_000 + "1", 1, "nested deeper than 200 levels", "split long chains"),
        ("x = y" + ".a" * 100_000, 1, "nested deeper than 200 levels", "split long chains"),
        ("x = 1\ny = " + "1 + " * 300 + "1", 2, "nested deeper than 200 levels", "split long chains"),
        ("if a:\n    pass\n" + "elif a:\n    pass\n" * 1000, 1, "nested deeper than 200 levels", "split long chains"),
        ("x = 1" + "0" * 5000, 1, "integer string conversion", "complete Python module"),
    ],
)
def test_text_that_is_no_script_is_refused_with_its_line(source: str, line: int, message: str, hint: str) -> None:
    error = refusal(source)
    assert message in error.violation.message
    assert hint in error.violation.hint
    if "nested deeper" not in message or line > 1:
        assert error.violation.span.line == line


def test_a_call_that_cannot_have_a_site_is_refused_where_it_stands() -> None:
    error = refusal("async def f(ctx):\n    " + f"async def {'g' * MAX_SITE}():\n        ctx.run('a', {{}})\n")
    assert error.violation.span == Span(3, 8, 3, 24)
    assert "shorten the names" in error.violation.hint


def test_a_doubtful_escape_is_no_finding_and_no_warning() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert read_script("x = '\\d'\ny = 1 is 1\n").sites == ()
    assert seen == []


def test_an_empty_text_is_a_script_without_sites() -> None:
    assert read_script("").sites == ()
    assert read_script("\ufeff").annotated == ""


def test_strings_and_comments_are_not_read_as_code() -> None:
    script = read_script('x = "await ctx.run(\'a\', {})"  # ctx.run("b", {})\n')
    assert script.sites == ()
    assert script.annotated == script.source


PIECES = """async def orchestrate(ctx, args):\n|    |\n|await |ctx.run(|ctx.race(|"a"|{|}|)|, |f'|"|'|if x:\n|lambda: |for x in y|#"""
pieces = st.sampled_from([*PIECES.split("|"), *"\\\r\t\f\0é\ud800\ufeffx1:=", "```", "_site="])


@given(st.lists(pieces, max_size=40).map("".join))
def test_no_text_gets_anything_but_a_script_or_a_finding(source: str) -> None:
    finding = script = None
    try:
        script = read_script(source)
    except ScriptSyntaxError as error:
        finding = error.violation
    if script is not None:
        assert len(ast.parse(script.annotated).body) == len(script.tree.body)
    else:
        assert finding is not None
        assert finding.rule == "R00"
