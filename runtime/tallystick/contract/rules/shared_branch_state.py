"""R09: shared state that branches write in the order in which they arrive.

What it refuses:
    A branch of a fanout that writes a variable of a function around it, or an object such a variable holds, when a
    branch also reads it, or when it is later used in a way that sees the order of arrival: iterated, joined, indexed
    by position, returned as a list. Afterwards, reading by key, ``len``, ``in`` and ``sorted(...)`` are fine.

Why:
    Which branch comes first differs between a launch, where calls take their time, and a replay, where they are
    instant. What depends on it meets another payload, and diverges.

Refused:
    async def orchestrate(ctx, args):
        board = []

        async def picture(aspect):
            result = await ctx.run("image.generate", {"prompt": aspect})
            board.append(result["images"][0])

        await ctx.parallel([picture(a) for a in args["aspects"][:4]])
        return {"board": board}

Write instead:
    async def orchestrate(ctx, args):
        async def picture(aspect):
            result = await ctx.run("image.generate", {"prompt": aspect})
            return result["images"][0]

        board = await ctx.parallel([picture(a) for a in args["aspects"][:4]])
        return {"board": board}
"""

import ast
from collections.abc import Iterator
from typing import Literal, TypeAlias

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Definition, Kind, Place, Scope

Sort: TypeAlias = Literal["keyed", "counted", "set", "ordered"]
"""How writes of branches combine: by key, by adding whole numbers, as a set, or in the order in which they come."""

_BLIND = frozenset({"sorted", "set", "frozenset", "len", "any", "all", "sum", "min", "max", "bool"})
_VIEWS = frozenset({"items", "values", "keys"})
_SEEING = frozenset({"list", "tuple", "enumerate", "zip", "iter", "next", "map", "filter", "str", "repr", "reversed"})


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    survey, aliases = evidence.survey, evidence.bounds.aliases
    wild = [(root, one) for one in survey.wild_changes if (root := _root(one.node)) is not None]
    above: dict[ast.AST, ast.AST] | None = None
    for scope in (survey.module, *survey.functions()):
        for name in scope.definitions:
            writes = [*aliases.elsewhere(scope, name), *aliases.extended_elsewhere(scope, name)]
            writes += [one for root, one in wild if root.id == name and one.place.scope.resolve(name) is scope]
            shared = [one for one in writes if _is_write(one) and _by_branch(one.place.function, scope, evidence)]
            if shared:
                above = above or _parents(survey.tree)
                yield from _judge(scope, name, shared, above, evidence)


def _is_write(definition: Definition) -> bool:
    return definition.kind not in {Kind.FUNCTION, Kind.PARAMETER}


def _by_branch(function: Scope, owner: Scope, evidence: Evidence, seen: frozenset[Scope] = frozenset()) -> bool:
    """Whether a function may run in a branch of a fanout that was started while ``owner`` was already running."""
    if function is owner or function in seen:
        return False
    for reference in evidence.bounds.callers.references(function):
        if reference.kind != "call":
            if reference.kind != "value":
                return True
        elif reference.place.fanout is not None or _is_left_running(reference.node, function, evidence):
            return True
        if _by_branch(reference.place.function, owner, evidence, seen | {function}):
            return True
    return False


def _is_left_running(call: ast.expr, function: Scope, evidence: Evidence) -> bool:
    return isinstance(function.node, ast.AsyncFunctionDef) and call not in evidence.survey.awaited


def _judge(
    scope: Scope, name: str, shared: list[Definition], above: dict[ast.AST, ast.AST], evidence: Evidence
) -> Iterator[Finding]:
    sorts = {_sort(one) for one in shared}
    sort: Sort = "ordered" if "ordered" in sorts or len(sorts) > 1 else next(iter(sorts))
    uses = [(use, at) for use, at in evidence.survey.uses.get(name, ()) if at.scope.resolve(name) is scope]
    is_sorted = any(_is_sorted_in_place(use, above) for use, _ in uses)
    for use, at in uses:
        if _by_branch(at.function, scope, evidence):
            if _is_only_written(use, above):
                continue
            problem = f"and a branch reads it (line {use.lineno})"
        elif sort in {"counted", "set"} or is_sorted or not _sees_order(use, sort, above):
            continue
        else:
            problem = f"and line {use.lineno} sees that order"
        first = min(shared, key=lambda one: _position(one.node))
        assert isinstance(first.node, ast.stmt | ast.expr)
        yield Finding(
            first.node,
            f"branches write {name} in the order in which they arrive, {problem}",
            "return the value from the branch: 'results = await ctx.parallel([...])' keeps the order of the branches; "
            "or write it under a key of its own and read it by key",
        )
        return


def _sort(definition: Definition) -> Sort:
    node = definition.node
    match node:
        case ast.Subscript(slice=ast.Slice()):
            return "ordered"
        case ast.Subscript():
            return "keyed" if definition.value is not None else "ordered"
        case ast.Call(func=ast.Attribute(attr="add" | "discard")):
            return "set"
        case ast.Call(func=ast.Attribute(attr="update" | "setdefault", value=ast.Name())):
            return "keyed"
        case ast.AugAssign(op=ast.Add() | ast.Sub(), target=ast.Name(), value=ast.Constant(value=int())):
            return "counted"
    return "ordered"


def _sees_order(use: ast.expr, sort: Sort, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a use outside the branches depends on the order of what was written."""
    outer: ast.AST = above[use]
    inner: ast.AST = use
    if isinstance(outer, ast.Attribute) and isinstance(above.get(outer), ast.Call):
        if outer.attr in _VIEWS:
            inner, outer = above[outer], above[above[outer]]
        elif outer.attr in {"get", "copy", "sort", "count"}:
            return False
    match outer:
        case ast.Compare() | ast.UnaryOp() | ast.If() | ast.While() | ast.IfExp() | ast.BoolOp():
            return not (isinstance(outer, ast.Compare | ast.UnaryOp) or _is_test(outer, inner))
        case ast.Call(func=ast.Name(id=called)) if called in _BLIND:
            return False
        case ast.Subscript(value=value) if value is inner:
            return sort != "keyed" or isinstance(outer.slice, ast.Slice)
        case ast.comprehension() if isinstance(above[outer], ast.GeneratorExp | ast.ListComp | ast.SetComp):
            return not _is_blind_call(above.get(above[outer]))
    if sort != "keyed":
        return True
    match outer:
        case ast.For() | ast.AsyncFor() | ast.comprehension() | ast.Starred() | ast.FormattedValue() | ast.YieldFrom():
            return True
        case ast.Call(func=ast.Name(id=called)):
            return called in _SEEING
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in {"join", "extend", "fromkeys"}
    return False


def _is_test(outer: ast.AST, inner: ast.AST) -> bool:
    return isinstance(outer, ast.If | ast.While | ast.IfExp) and outer.test is inner


def _is_blind_call(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BLIND


def _is_sorted_in_place(use: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    outer = above.get(use)
    return isinstance(outer, ast.Attribute) and outer.attr == "sort"


def _is_only_written(use: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a use in a branch only leads to what is written there, as ``groups`` in ``groups[k].append(x)``."""
    inner, outer = use, above.get(use)
    while isinstance(outer, ast.Subscript | ast.Attribute | ast.Call):
        if inner is not (outer.func if isinstance(outer, ast.Call) else outer.value):
            return False
        inner, outer = outer, above.get(outer)
    if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store | ast.Del):
        return True
    return isinstance(inner, ast.Call) and isinstance(outer, ast.Expr)


def _root(node: ast.AST) -> ast.Name | None:
    target: ast.AST = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.AugAssign):
        target = target.target
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
        target = target.func if isinstance(target, ast.Call) else target.value
    return target if isinstance(target, ast.Name) else None


def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _position(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, ast.stmt | ast.expr)
    return node.lineno, node.col_offset


RULE = Rule(
    code="R09",
    slug="shared-branch-state",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
