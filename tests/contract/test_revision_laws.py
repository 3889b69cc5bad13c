"""Lemma 1 and the seven edits of Table VII, on the scripts of the corpus (contract.md, sections 2 and 5).

Edits are made on the syntax tree and written out again by ``ast.unparse``, which also changes quotes, layout and
line numbers of everything else.
"""

import ast
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_corpus import SCRIPTS
from tallystick.contract.gate import FrozenSite, Verdict, freeze, gate
from tallystick.contract.script import Script, read_script
from tallystick.contract.sites import SiteNode, collect_sites

SOURCES = {path.parent.name: path.read_text() for path in SCRIPTS}
with_calls = st.sampled_from([name for name, source in SOURCES.items() if collect_sites(ast.parse(source))])

QUIET = [
    "note = 1",
    "if note:\n    note = 2\nelse:\n    note = 3",
    "for note in range(3):\n    note = [n for n in (1, 2)]",
    "while note < 3:\n    note += 1",
    "try:\n    note = int('1')\nexcept ValueError:\n    note = 0\nfinally:\n    pass",
    "with open as note:\n    pass",
    "match note:\n    case 1:\n        note = 2",
    "def note():\n    return lambda x: x",
    "note = {'a': lambda: 1}",
    "ctx.log('here')",
    "images = ctx.parallel([])",
]
LOUD = [
    "await ctx.run('text.generate', {'prompt': 'appended'})",
    "if note:\n    await ctx.run('text.generate', {'prompt': 'appended'})",
    "for note in range(3):\n    await ctx.race([ctx.run('text.generate', {'prompt': 'appended'})])",
    "async def orchestrate(ctx, args):\n    await ctx.run('text.generate', {'prompt': 'appended'})",
    "stage = lambda: ctx.run('text.generate', {'prompt': 'appended'})",
]


def bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    return [
        body
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(node, name, None), list) and body
    ]


def facts(source: str) -> list[tuple[str, str]]:
    return [(fact.site, fact.fingerprint) for fact in read_script(source).sites]


@given(with_calls, st.data())
def test_comments_blank_lines_and_layout_move_no_site_and_change_no_fingerprint(name: str, data: st.DataObject) -> None:
    source = SOURCES[name]
    lines = source.split("\n")
    starts = sorted({node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)}, reverse=True)
    for line in data.draw(st.lists(st.sampled_from(starts), max_size=5, unique=True).map(lambda at: sorted(at)[::-1])):
        lines.insert(line - 1, data.draw(st.sampled_from(["", "    ", "# ctx.run('a', {})", "\t# a, b)", "  \f"])))
    ending = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    edited = data.draw(st.sampled_from(["", "\ufeff"])) + ending.join(lines)
    assert facts(edited) == facts(source)
    assert facts(ast.unparse(ast.parse(source))) == facts(source)


@given(with_calls, st.data())
def test_values_in_payloads_move_no_site(name: str, data: st.DataObject) -> None:
    tree = ast.parse(SOURCES[name])
    before = [found.site for found in collect_sites(tree)]
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for node in data.draw(st.lists(st.sampled_from(constants), min_size=1, max_size=8)):
        node.value = data.draw(st.sampled_from(["other", 7, 1.5, None, True]))
    assert [found.site for found in collect_sites(tree)] == before


@given(with_calls, st.data())
def test_statements_without_a_call_may_be_inserted_anywhere(name: str, data: st.DataObject) -> None:
    tree = ast.parse(SOURCES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        body = data.draw(st.sampled_from(bodies(tree)))
        body[(at := data.draw(st.integers(0, len(body)))) : at] = ast.parse(data.draw(st.sampled_from(QUIET))).body
    assert facts(ast.unparse(tree)) == facts(SOURCES[name])


@given(with_calls, st.data())
def test_statements_appended_behind_the_last_of_a_function_leave_its_sites(name: str, data: st.DataObject) -> None:
    tree = ast.parse(SOURCES[name])
    functions = [node.body for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]
    data.draw(st.sampled_from([*functions, tree.body])).extend(ast.parse(data.draw(st.sampled_from(LOUD))).body)
    after = facts(ast.unparse(tree))
    assert set(facts(SOURCES[name])) <= set(after)
    assert len(after) > len(facts(SOURCES[name]))


# Table VII. Each edit takes a tree and one of its calls and changes the tree in place.


class Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def statement_around(tree: ast.Module, call: ast.Call) -> tuple[list[ast.stmt], int]:
    """Return the innermost statement that holds ``call``, as its body and index."""
    found = [
        (body, index)
        for body in bodies(tree)
        for index, node in enumerate(body)
        if any(n is call for n in ast.walk(node))
    ]
    return min(found, key=lambda place: sum(1 for _ in ast.walk(place[0][place[1]])))


def edit_literal(tree: ast.Module, call: ast.Call) -> None:
    for node in ast.walk(call.args[1]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value += " edited"
            return
    call.args[1] = ast.Dict([ast.Constant(value="prompt")], [ast.Constant(value="edited")])


def compute_payload(_: ast.Module, call: ast.Call) -> None:
    call.args[1] = ast.Call(ast.Name("dict", ast.Load()), [call.args[1]], [])


def wrap_in_block(tree: ast.Module, call: ast.Call) -> None:
    body, index = statement_around(tree, call)
    body[index] = ast.If(ast.Constant(value=True), [body[index]], [])


def delete_call(tree: ast.Module, call: ast.Call) -> None:
    Replace(call, ast.Name("nothing", ast.Load())).visit(tree)


def relocate_call(tree: ast.Module, call: ast.Call) -> None:
    delete_call(tree, call)
    helper = ast.parse("async def relocated(ctx):\n    return await 0").body[0]
    assert isinstance(helper, ast.AsyncFunctionDef)
    assert isinstance(helper.body[0], ast.Return)
    helper.body[0].value = ast.Await(call)
    tree.body.insert(0, helper)


def other_capability(_: ast.Module, call: ast.Call) -> None:
    call.args[0] = ast.Constant(value="other.capability")


def statement_outside(tree: ast.Module, call: ast.Call) -> None:
    body, index = statement_around(tree, call)
    body[index:index] = ast.parse("prompt = 'another'").body
    tree.body[0:0] = ast.parse("CONSTANT = 'edited'").body


def inserted_statement(tree: ast.Module, call: ast.Call) -> None:
    body, index = statement_around(tree, call)
    body[index:index] = ast.parse("if debug:\n    note = 1").body


def appended_call(tree: ast.Module, call: ast.Call) -> None:
    function = min(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.AsyncFunctionDef) and any(n is call for n in ast.walk(node))
        ),
        key=lambda node: sum(1 for _ in ast.walk(node)),
    )
    function.body += ast.parse("await ctx.run('text.generate', {'prompt': 'appended'})").body


def judged(name: str, edit: Callable[[ast.Module, ast.Call], None]) -> Iterator[tuple[str, Verdict]]:
    """Apply ``edit`` to each call of a script in turn, all its sites frozen."""
    original: Script = read_script(SOURCES[name])
    frozen = freeze(FrozenSite.of(original, fact) for fact in original.sites)
    for number, fact in enumerate(original.sites):
        tree = ast.parse(SOURCES[name])
        found: SiteNode = collect_sites(tree)[number]
        if found.kind == "call" and found.capability is not None:
            edit(tree, found.node)
            yield fact.site, gate(frozen, read_script(ast.unparse(ast.fix_missing_locations(tree))))


every_script = pytest.mark.parametrize("name", SOURCES)


@every_script
@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (edit_literal, "call_changed"),
        (compute_payload, "call_changed"),
        (other_capability, "capability_changed"),
        (wrap_in_block, "removed|call_changed|capability_changed"),
        (delete_call, "removed|call_changed|capability_changed"),
        (relocate_call, "removed|call_changed|capability_changed"),
    ],
)
def test_an_edit_of_a_committed_call_is_stopped_at_its_site(
    name: str, edit: Callable[[ast.Module, ast.Call], None], kind: str
) -> None:
    for site, verdict in judged(name, edit):
        if edit is wrap_in_block and "<lambda" in site:  # the block of such a call is the lambda, which is not wrapped
            assert verdict.accepted
            continue
        kinds = {found.site: found.kind for found in verdict.counterexamples}
        assert not verdict.accepted
        assert re.fullmatch(kind, kinds[site])


@every_script
@pytest.mark.parametrize("edit", [statement_outside, inserted_statement, appended_call])
def test_an_edit_beside_the_committed_calls_is_accepted(
    name: str, edit: Callable[[ast.Module, ast.Call], None]
) -> None:
    for site, verdict in judged(name, edit):
        assert verdict.accepted, (site, verdict)


def test_a_relocated_call_is_named_where_it_went() -> None:
    moved = [
        found.moved_to
        for name in SOURCES
        for site, verdict in judged(name, relocate_call)
        for found in verdict.counterexamples
        if found.site == site and found.kind == "removed"
    ]
    assert len(moved) > 50
    assert set(moved) == {"relocated/#1"}
