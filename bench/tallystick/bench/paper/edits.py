"""Table VII: seven edits of scripts whose calls are committed, and what the gate says of each."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tallystick.bench.paper import cases
from tallystick.bench.paper.desk import desk
from tallystick.bench.paper.line import Line
from tallystick.bench.repair.corpus import Task, World
from tallystick.contract.gate import FrozenSite, gate
from tallystick.contract.prefix import frozen_sites
from tallystick.contract.script import read_script

SCRIPTS = 20
NOT_APPLICABLE = "not applicable"
#: Edits that the paper's script has no place for.
OUTSIDE_THE_PAPER = {("a425", edit) for edit in ("literal in the payload", "computed payload", "statement outside")}
_NO_LITERAL = "the payload of the rebuilt script holds no literal: its values are names"
_MORE = "the rebuilt script has a place for it"
APPENDED = 'await ctx.run("text.generate", {"prompt": "appended"})'


class Place(NamedTuple):
    """A committed call of a parsed script: its node, the body that holds its statement, and where in that."""

    tree: ast.Module
    call: ast.Call
    body: list[ast.stmt]
    at: int


#: Changes the tree in place, and says whether it had a place for the edit.
Edit: TypeAlias = Callable[[Place], bool]


def _literal(place: Place) -> bool:
    for node in ast.walk(place.call.args[1]):
        if isinstance(node, ast.Dict):
            for at, value in enumerate(node.values):
                if isinstance(value, ast.Constant):
                    node.values[at] = ast.Constant("another")
                    return True
        if isinstance(node, ast.JoinedStr) and any(isinstance(part, ast.Constant) for part in node.values):
            node.values.append(ast.Constant(" another"))
            return True
    return False


def _computed(place: Place) -> bool:
    payload = place.call.args[1]
    if isinstance(payload, ast.Dict) and payload.values:
        payload.values[0] = ast.Call(ast.Name("str"), [payload.values[0]], [])
    else:
        place.call.args[1] = ast.Call(ast.Name("dict"), [payload], [])
    return True


def _outside(place: Place) -> bool:
    body = _entry(place.tree).body
    last = body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    body[-1:] = [ast.Assign([ast.Name("outcome")], last.value), *ast.parse("return (outcome)").body]
    return True


def _inserted(place: Place) -> bool:
    place.body.insert(place.at, ast.parse('note = "checked"').body[0])
    return True


def _wrapped(place: Place) -> bool:
    place.body[place.at] = ast.If(ast.Constant(value=True), [place.body[place.at]], [])
    return True


def _deleted(place: Place) -> bool:
    place.body[place.at] = ast.Pass()
    return True


def _appended(place: Place) -> bool:
    added = ast.parse(f"async def f():\n    {APPENDED}").body[0]
    assert isinstance(added, ast.AsyncFunctionDef)
    body = _entry(place.tree).body
    if _outside(place):
        body[-1:-1] = added.body
    else:
        body += added.body
    return True


EDITS: Mapping[str, tuple[Edit, str]] = {
    "literal in the payload": (_literal, "call_changed"),
    "computed payload": (_computed, "call_changed"),
    "statement outside": (_outside, "accepted"),
    "non-call statement inserted": (_inserted, "accepted"),
    "wrapped in a new block": (_wrapped, "removed"),
    "call deleted": (_deleted, "removed"),
    "new call appended": (_appended, "accepted"),
}


def verdict(frozen: Mapping[str, FrozenSite], source: str, edit: Edit) -> str | None:
    """Say what the gate says of an edit at the last committed call; None where it has no place in the script."""
    script = read_script(source)
    calls = [
        found.node
        for found, fact in zip(script.nodes, script.sites, strict=True)
        if fact.kind == "call" and fact.site in frozen
    ]
    place = _place(script.tree, calls[-1])
    if place is None or not edit(place):
        return None
    said = gate(frozen, read_script(ast.unparse(ast.fix_missing_locations(script.tree))))
    return "accepted" if said.accepted else ", ".join(sorted({each.kind for each in said.counterexamples}))


async def table_vii(corpus: Sequence[Task]) -> list[Line]:
    """Return Table VII for its three scripts, and for twenty of a corpus where there is one."""
    lines = []
    for name, script, args in (
        ("e388", cases.SCOUT, cases.SHOTS),
        ("a425", cases.SCOUT_MOVED_TO_HELPER, cases.SHOTS),
        ("5698", cases.LOOP, cases.LOOP_ARGS),
    ):
        async with desk() as at:
            frozen = frozen_sites(await at.engine.history((await at.run(script, args)).run))
        found = {edit: verdict(frozen, script, change) for edit, (change, _) in EDITS.items()}
        for edit, (_, theirs) in EDITS.items():
            paper = NOT_APPLICABLE if (name, edit) in OUTSIDE_THE_PAPER else theirs
            ours = found[edit] or NOT_APPLICABLE
            reason = "" if paper == ours else _NO_LITERAL if ours == NOT_APPLICABLE else _MORE
            lines.append(Line("Table VII", f"{name}: {edit}", paper, ours, reason))
    return [*lines, *(await _twenty(corpus) if corpus else [])]


async def _twenty(corpus: Sequence[Task]) -> list[Line]:
    found: list[tuple[str, str | None]] = []
    world = World()
    async with desk(provider=world) as at:
        scripts = 0
        for task in corpus:
            if task.refused or scripts == SCRIPTS:
                continue
            world.become(task)
            world.calm()
            report = await at.engine.run(task.script, task.args, grants=task.grants)
            frozen = frozen_sites(await at.engine.history(report.run))
            if report.status == "completed" and frozen:
                scripts += 1
                found += [(edit, verdict(frozen, task.script, change)) for edit, (change, _) in EDITS.items()]
    applied = [(edit, said) for edit, said in found if said is not None]
    counts = Counter(said for _, said in applied)
    as_predicted = sum(EDITS[edit][1] == said for edit, said in applied)
    other = "the same edits on other scripts: how many apply depends on their payloads and returns"
    in_lambda = (
        "a lambda is a function: where its call is the last one, wrapping the statement around the lambda moves no site"
    )
    return [
        Line("Table VII, VI.C.d", "edits that apply", "136 of 140", f"{len(applied)} of {len(found)}", other),
        Line(
            "Table VII, VI.C.d",
            "accepted, call_changed, removed",
            "60, 36, 40",
            ", ".join(str(counts[kind]) for kind in ("accepted", "call_changed", "removed")),
            in_lambda,
        ),
        Line(
            "Table VII, VI.C.d",
            "verdicts that are those of the edit's class",
            "all",
            "all" if as_predicted == len(applied) else f"{as_predicted} of {len(applied)}",
            in_lambda,
        ),
    ]


def _entry(tree: ast.Module) -> ast.AsyncFunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == "orchestrate")


def _place(tree: ast.Module, call: ast.Call) -> Place | None:
    """Find the innermost statement that holds a call."""
    found: Place | None = None
    for node in ast.walk(tree):  # outer bodies come before inner ones
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                for at, statement in enumerate(value):
                    if any(inner is call for inner in ast.walk(statement)):
                        found = Place(tree, call, value, at)
    return found
