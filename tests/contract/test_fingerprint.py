"""Fingerprints tell apart what differs, and only that (contract.md, section 3)."""

import ast
from itertools import combinations
from typing import Literal

import pytest

from tallystick.contract.fingerprint import UnknownSyntaxError, fingerprint


def mark(expression: str, kind: Literal["call", "race"] = "call") -> str:
    node = ast.parse(expression, mode="eval").body
    assert isinstance(node, ast.Call)
    return fingerprint(node, kind)


def mark_payload(payload: str) -> str:
    return mark(f'ctx.run("text.generate", {payload})')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("""{"a": 'b'}""", """{'a': "b"}"""),
        ("""{"a": "b"}""", """{\n  "a":  # why\n  ("b"),\n}"""),
        ("""'ab'""", """"a" 'b'"""),
        ("""'a'""", """u'a'"""),
        (r"""'\x41\n'""", '"""A\n"""'),
        ("""16""", """0x1_0"""),
        ("""100.0""", """1e2"""),
        ("""f"a{x}b" """, """f"a" f'''{ x }''' "b" """),
        ("""f"{x:}" """, """f"{x}" """),
        ("""f"a{x=}" """, """"a" f"{x=}" """),
        ("""f"{x!r:>{w}}" """, """f'{x!r:>{w}}'"""),
        ("""f"{{a}}" """, """'{a}'"""),
        ("""f"" """, """''"""),
        ("""(a + b) + c""", """a + b + c"""),
        ("""(1, 2)""", """((1), 2,)"""),
        ("""x[(a, b)]""", """x[a, b]"""),
    ],
)
def test_layout_quotes_and_spelling_of_literals_leave_it(one: str, other: str) -> None:
    assert mark_payload(one) == mark_payload(other)


DIFFERENT = [
    "1", "1.0", "True", "'1'", "b'1'", "1j", "2j", "None", "'None'", "...", "'...'", "-1", "+1", "-0.0", "0.0", "0", "False",
    "1e999", "2 ** 64", str(1 << 64), hex(1 << 20000), "'\\ud800'", "'\\ufffd'", "'e\\u0301'", "'\\xe9'", "''", "b''", "()", "[]", "{}",
    "x", "'x'", "x.a", "x['a']", "x[a]", "x[a:]", "x[:a]", "x[::a]", "x[a,]", "x[a:,]", "x()", "x(a)", "x(a=a)", "x(*a)", "x(**a)", "x(b=a)",
    "[a]", "(a,)", "{a}", "{**a}", "{'a': a}", "[*a]", "[[a]]", "[a, b]", "[b, a]", "[a], b", "[(a, b)]", "a + b", "b + a", "a - b",
    "a + b + c", "a + (b + c)", "a < b", "a < b < c", "(a < b) < c", "a and b", "a or b", "a and b and c", "a and (b and c)", "not a", "~a",
    "a if b else c", "b if a else c", "lambda: a", "lambda a: a", "lambda *a: a", "lambda **a: a", "lambda *, a: a", "lambda a, /: a",
    "lambda a=b: a", "lambda *, a=b: a", "(y := a)", "await a", "[a for a in b]", "[a async for a in b]", "{a for a in b}", "(a for a in b)",
    "{a: a for a in b}", "[a for a in b if a]", "[a for a in b if a if b]", "[a for a in b for c in a]", "(yield a)", "(yield)", "(yield from a)",
    "f'{a}'", "f'{a!r}'", "f'{a!s}'", "f'{a:x}'", "f'{a:{x}}'", "f'{a:{x}x}'", "f'x{a}'", "f'{a}x'", "f'{a}{a}'", "f'{a}{x}'", "f'{a=}'", "'{a}'",
    "'a 1:b'", "'a', 'b'", "'a' 'b'", "'a, b'", "a is b", "a is not b", "a in b", "a not in b", "a == b", "a != b", "a @ b", "a // b", "a / b",
]  # fmt: skip


def test_different_expressions_have_different_fingerprints() -> None:
    marks = {expression: mark_payload(expression) for expression in DIFFERENT}
    alike = [(a, b) for a, b in combinations(DIFFERENT, 2) if marks[a] == marks[b]]
    assert alike == []


def test_every_argument_counts_but_the_site() -> None:
    plain = mark('ctx.run("a", {"x": 1})')
    assert mark('ctx.run("a", {"x": 1}, _site="orchestrate/#1")') == plain
    assert mark('helper.other("a", {"x": 1})') == plain
    assert (
        len(
            {
                plain,
                mark('ctx.run("b", {"x": 1})'),
                mark('ctx.run("a", {"x": 1}, take="2")'),
                mark('ctx.run("a", payload={"x": 1})'),
            }
        )
        == 4
    )


def test_a_race_is_marked_by_all_that_is_in_it_but_the_sites() -> None:
    plain = mark('ctx.race([ctx.run("a", {}), gen(1)])', "race")
    assert mark('ctx.race([ctx.run("a", {}, _site="x"), gen(1)], _site="y")', "race") == plain
    assert mark('ctx.race([ctx.run("a", {}), gen(2)])', "race") != plain
    assert mark('ctx.race([ctx.run("a", {}), gen(1)])', "call") != plain


def test_syntax_that_the_scheme_does_not_define_is_refused_by_name() -> None:
    call = ast.Call(ast.Name("run"), [ast.Pass()], [])  # type: ignore[list-item]  # no parser builds this
    with pytest.raises(UnknownSyntaxError, match="'Pass'"):
        fingerprint(call)
    with pytest.raises(UnknownSyntaxError, match="'Constant'"):
        fingerprint(ast.Call(ast.Name("run"), [ast.Constant(value=frozenset())], []))  # type: ignore[arg-type]  # as above
    with pytest.raises(UnknownSyntaxError, match="'Name'"):
        fingerprint(ast.Call(ast.Name("run"), [ast.JoinedStr([ast.Name("x")])], []))


def test_every_expression_node_of_this_python_is_defined_or_known_to_be_refused() -> None:
    from tallystick.contract import fingerprint as module

    special = {ast.Call, ast.Constant, ast.JoinedStr, ast.FormattedValue}
    later = {"TemplateStr", "Interpolation"}  # Python 3.14
    concrete = {
        kind for base in (ast.expr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop) for kind in base.__subclasses__()
    }
    assert {kind.__name__ for kind in concrete - module._FIELDS.keys() - special} <= later
