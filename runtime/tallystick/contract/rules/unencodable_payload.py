"""R08: a payload that has no canonical form.

What it refuses:
    Sets, bytes, lambdas and functions, generators and views, keys that are not strings, NaN and infinities, integers
    beyond 64 bits, in what is written out as a payload: in the call, in the variable or in the constant it names.

Why:
    A payload is hashed, stored and compared on replay. What has no order, no JSON form or no equal twin cannot be.

Refused:
    async def orchestrate(ctx, args):
        return await ctx.run("text.generate", {
            "prompt": args["prompt"],
            "schema": {"type": "object", "required": {"score", "reason"}},
        })

Write instead:
    async def orchestrate(ctx, args):
        return await ctx.run("text.generate", {
            "prompt": args["prompt"],
            "schema": {"type": "object", "required": ["reason", "score"]},
        })
"""

import ast
import math
from collections.abc import Iterator
from typing import TypeAlias

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Definition, Kind, Place

_Part: TypeAlias = tuple[ast.expr, Place, int]
"""A part of a payload, where it is evaluated, and how many variables lead to it."""

_DEEPEST = 4
_UNPLAIN: dict[type[ast.expr], tuple[str, str]] = {
    ast.Set: ("a set", "sets have no order: write a list, or sorted(...)"),
    ast.SetComp: ("a set", "sets have no order: write a list, or sorted(...)"),
    ast.GeneratorExp: ("a generator", "write a list: [...]"),
    ast.Lambda: ("a function", "call it, and send its result"),
}
_INSIDE: dict[type[ast.expr], tuple[str, ...]] = {
    ast.BoolOp: ("values",),
    ast.Dict: ("values",),
    ast.DictComp: ("value",),
    ast.IfExp: ("body", "orelse"),
    ast.List: ("elts",),
    ast.ListComp: ("elt",),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
}
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_UNPLAIN_CALLS: dict[str, str] = {
    "set": "sorted(...)",
    "frozenset": "sorted(...)",
    "bytes": "text, or an artifact",
    "bytearray": "text, or an artifact",
    "complex": "two numbers",
    "object": "None",
    **dict.fromkeys(("range", "zip", "map", "filter", "enumerate", "reversed", "iter"), "list(...) of it"),
}
_VIEWS = frozenset({"keys", "values", "items"})


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    for call, standing_at in evidence.survey.context_calls:
        if call.func.attr != "run":
            continue
        payload = call.args[1] if len(call.args) > 1 else None
        payload = next((keyword.value for keyword in call.keywords if keyword.arg == "payload"), payload)
        if payload is not None:
            yield from _value(payload, standing_at, evidence)


def _value(payload: ast.expr, payload_place: Place, evidence: Evidence) -> Iterator[Finding]:
    """Find what has no canonical form in the parts of a payload that are written out."""
    waiting: list[_Part] = [(payload, payload_place, 0)]
    while waiting:
        node, place, depth = waiting.pop()
        kind = node.__class__
        if kind in _UNPLAIN:
            yield _unplain(node, *_UNPLAIN[kind])
        elif kind in _INSIDE:
            inner = place
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    yield from () if key is None else _key(key)
            elif isinstance(node, ast.ListComp | ast.DictComp):
                inner = evidence.bounds.values.inside(node, place)
                yield from _key(node.key) if isinstance(node, ast.DictComp) else ()
            for field in _INSIDE[kind]:
                value = getattr(node, field)
                several = value if isinstance(value, list) else (value,)
                waiting += [(one, inner, depth) for one in several]
        elif isinstance(node, ast.Constant):
            yield from _constant(node, node.value)
        elif isinstance(node, ast.Call):
            yield from _call(node, place, evidence)
        elif isinstance(node, ast.Name) and depth < _DEEPEST:
            yield from _named(node, place)
            for value, at in _written_out(node, place):
                waiting.append((value, at, depth + 1))


def _constant(node: ast.Constant, value: object) -> Iterator[Finding]:
    match value:
        case bytes():
            yield _unplain(node, "bytes", "send text, or pass the artifact")
        case complex():
            yield _unplain(node, "a complex number", "send two numbers")
        case float() if not math.isfinite(value):
            yield _unplain(
                node, "an infinite number", "only finite numbers can be sent: write None where there is none"
            )
        case int() if not _LEAST <= value <= _MOST:
            yield _unplain(node, "an integer beyond 64 bits", "send it as text")
        case str() if not _is_text(value):
            yield _unplain(node, "half a surrogate pair", "write the character itself")
        case _ if value is ...:
            yield _unplain(node, "an ellipsis", "write None")


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _key(key: ast.expr) -> Iterator[Finding]:
    if isinstance(key, ast.Constant):
        if isinstance(key.value, str):
            return
        yield Finding(
            key,
            f"the key {key.value!r} in a payload is not a string",
            f'write it as text, as in "{key.value!r}"; computed keys with str(...)',
        )
    elif isinstance(key, ast.Tuple | ast.Lambda):
        yield Finding(key, "a key in a payload is not a string", "join its parts to one text")


def _call(node: ast.Call, place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node.func:
        case ast.Name(id="float") if evidence.is_builtin("float", place):
            text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if isinstance(text, str) and text.strip().lower().lstrip("+-") in {"nan", "inf", "infinity"}:
                yield _unplain(node, "a number that is not finite", "write None where there is none")
        case ast.Name(id=name) if name in _UNPLAIN_CALLS and evidence.is_builtin(name, place):
            yield _unplain(node, f"what {name}(...) gives", f"send {_UNPLAIN_CALLS[name]}")
        case ast.Attribute(attr=method) if method in _VIEWS and not node.args:
            yield _unplain(node, f"a view of {method}", "send list(...) of it")


def _named(node: ast.Name, place: Place) -> Iterator[Finding]:
    """Find a function that is sent instead of its result, and keys that are added and are no strings."""
    scope = place.scope.resolve(node.id)
    if scope is None:
        return
    if any(one.kind is Kind.FUNCTION for one in scope.definitions[node.id]):
        yield _unplain(node, "a function", f"call it: {node.id}(...)")
    for change in scope.changes.get(node.id, ()):
        if isinstance(change.node, ast.Subscript) and change.value is not None:
            yield from _key(change.node.slice)


def _written_out(node: ast.Name, place: Place) -> Iterator[tuple[ast.expr, Place]]:
    """Yield what a variable holds, where that is written out in one place, and what is added to it by key."""
    scope = place.scope.resolve(node.id)
    definitions = scope.definitions[node.id] if scope is not None else []
    if scope is None or len(definitions) != 1 or not _is_written_out(definitions[0]):
        return
    for one in (*definitions, *scope.changes.get(node.id, ())):
        if one.value is not None and not one.path and not isinstance(one.node, ast.Call):
            yield one.value, one.place


def _is_written_out(definition: Definition) -> bool:
    written = (
        ast.Dict,
        ast.List,
        ast.Tuple,
        ast.Set,
        ast.SetComp,
        ast.Constant,
        ast.DictComp,
        ast.ListComp,
        ast.Lambda,
    )
    return definition.kind is Kind.ASSIGN and not definition.path and isinstance(definition.value, written)


def _unplain(node: ast.expr, what: str, hint: str) -> Finding:
    return Finding(node, f"{what} cannot be part of a payload", hint)


RULE = Rule(
    code="R08",
    slug="unencodable-payload",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
