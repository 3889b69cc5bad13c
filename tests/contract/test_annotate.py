"""Annotation adds the sites and changes nothing else (contract.md, section 2)."""

import ast
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from contract_corpus import SOURCES
from tallystick.contract.script import ScriptSyntaxError, read_script
from tallystick.contract.sites import collect_sites

AWKWARD = {
    "trailing comma": 'ctx.run("a", {"x": 1},)',
    "trailing comma and blanks": 'ctx.run("a", {"x": 1} , )',
    "comment after the last argument": 'ctx.run(\n    "a",\n    {"x": 1}  # (a, b)\n)',
    "comma, then a comment with a comma": 'ctx.run(\n    "a",\n    {"x": 1},  # a, b)\n)',
    "comment with a comma, no comma": 'ctx.run(\n    "a", {"x": 1}  # a, b\n    # , again\n)',
    "parenthesised argument": 'ctx.run("a", ({"x": 1}))',
    "parenthesised argument and comma": 'ctx.run("a", (({"x": 1}) ) , )',
    "parenthesised callee": '(ctx.run)("a", {})',
    "line continuation": 'ctx.run("a", \\\n    {"x": 1} \\\n    )',
    "keyword": 'ctx.run("a", payload={}, take="b")',
    "stars": 'ctx.run("a", *rest, **more)',
    "star after keyword": 'ctx.run("a", take="b", *rest,)',
    "nested": 'ctx.run("a", {"x": await ctx.run("b", {"y": ctx.run("c", {})})})',
    "no argument": "ctx.run( )",
    "bare generator": "ctx.race(gen(x) for x in xs)",
    "bare generator over lines": "ctx.race(  # first\n    gen(x) for x in xs  # last, )\n)",
    "bare generator with calls": 'ctx.race(ctx.run("a", {"x": x}) for x in xs)',
    "parenthesised generator": "ctx.race((gen(x) for x in xs))",
    "parenthesised generator and comma": "ctx.race((gen(x) for x in xs),)",
    "not ASCII": 'ctx.run("a", {"é😀": "日本"}), ctx.run("b", {"ü": 1})',
    "not ASCII before": '"é😀日本", ctx.run("b", {"ü": 1})',
    "call in a string": 'ctx.run("a", {"x": "ctx.run(\'b\', {})"})  # ctx.run("c", {})',
    "multi-line string": 'ctx.run("a", {"x": """1\n  2, )\n3"""})',
    "lambda with a name beyond ASCII": '{"Grüße": lambda: ctx.run("a", {})}',
    "key with quotes": """{"a\\"'b": lambda: ctx.run("a", {})}""",
    "f-string": """f'{await ctx.run("a", {"x": 1})}'""",
    "f-string, other quotes": '''f"{await ctx.run('a', {'x': 1})} {ctx.run('b', {})!r:>{ctx.run('c', {})}}"''',
    "f-string, not ASCII": '''f"é{ctx.run('a', {'ü': 1})}日{ctx.run('b', {})}"''',
    "f-string of more parts": """f"é{1}" f"{ctx.run('a', {})}" "x" f'{ctx.run("b", {})}' """,
    "f-string over lines": "f'''a\n{ctx.run(\"a\", {})}\né{ctx.run(\"b\", {})} '''",
}


def without_sites(tree: ast.Module) -> ast.Module:
    for found in collect_sites(tree):
        assert found.node.keywords.pop().arg == "_site"
    return tree


def assert_annotated(source: str) -> None:
    script = read_script(source)
    again = ast.parse(script.annotated)
    found = collect_sites(again)
    assert [node.site for node in found] == [fact.site for fact in script.sites]
    for node in found:
        assert ast.literal_eval(node.node.keywords[-1].value) == node.site
    again = without_sites(again)
    assert ast.dump(again) == ast.dump(script.tree)
    for before, after in zip(ast.walk(script.tree), ast.walk(again), strict=True):
        assert getattr(before, "lineno", 0) == getattr(after, "lineno", 0)
    assert len(script.annotated.splitlines()) == len(source.splitlines())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_corpus_is_annotated_line_by_line(path: Path) -> None:
    assert_annotated(path.read_text())


@pytest.mark.parametrize("call", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("opening", ["", "\ufeff", "\f\n"], ids=["plain", "BOM", "form feed"])
def test_an_awkward_call_is_annotated(call: str, ending: str, opening: str) -> None:
    source = f"{opening}async def orchestrate(ctx, args):\n    note = 'é'; x = {call}\n    return await {call}\n"
    assert_annotated(source.replace("\n", ending))


def test_the_keyword_comes_last() -> None:
    source = dedent("""
        async def orchestrate(ctx, args):
            return await ctx.run(
                "image.generate",
                {"prompt": "x"},  # the last, or so
            )
    """)
    assert read_script(source).annotated == source.replace("    )", '     _site="orchestrate/#1")')


def test_a_site_that_is_there_already_is_kept_when_it_is_the_right_one() -> None:
    once = read_script('async def f(ctx):\n    await ctx.run("a", {}, _site="f/#1")\n    ctx.run("b", {})\n')
    assert read_script(once.annotated).annotated == once.annotated
    assert once.annotated.count("_site") == 2


@pytest.mark.parametrize("own", ['"f/#2"', "site", 'f"f/#1"'])
def test_a_site_that_is_not_the_right_one_is_refused(own: str) -> None:
    with pytest.raises(ScriptSyntaxError, match="not its own site, f/#1") as caught:
        read_script(f'async def f(ctx):\n    await ctx.run("a", {{}}, _site={own})\n')
    assert (caught.value.violation.rule, caught.value.violation.span.line) == ("R00", 2)


def test_a_race_in_an_f_string_is_annotated_where_the_grammar_has_room_for_its_quotes() -> None:
    source = 'async def f(ctx):\n    return f"{await ctx.race([a(), b()])}"\n'
    if sys.version_info >= (3, 12):
        assert_annotated(source)
    else:
        with pytest.raises(ScriptSyntaxError, match="f-string that cannot hold its site"):
            read_script(source)


def test_an_f_string_that_shows_its_own_source_cannot_hold_a_call() -> None:
    with pytest.raises(ScriptSyntaxError, match="f-string that cannot hold its site") as caught:
        read_script("""async def f(ctx):\n    return f'{await ctx.run("a", {})=}'\n""")
    assert "assign the result of the call to a name first" in caught.value.hint
