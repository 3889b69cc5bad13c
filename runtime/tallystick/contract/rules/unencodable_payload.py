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

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Definition, Kind, Place

_DEEPEST = 4
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
            yield from _value(payload, standing_at, evidence, 0)


def _value(node: ast.expr, place: Place, evidence: Evidence, depth: int) -> Iterator[Finding]:
    match node:
        case ast.Constant(value=value):
            yield from _constant(node, value)
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                yield from () if key is None else _key(key)
                yield from _value(value, place, evidence, depth)
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            for item in elts:
                yield from _value(item, place, evidence, depth)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _value(body, place, evidence, depth)
            yield from _value(orelse, place, evidence, depth)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _value(value, place, evidence, depth)
        case ast.ListComp(elt=elt):
            yield from _value(elt, evidence.bounds.values.inside(node, place), evidence, depth)
        case ast.DictComp(key=key, value=value):
            yield from _key(key)
            yield from _value(value, evidence.bounds.values.inside(node, place), evidence, depth)
        case ast.UnaryOp(operand=operand):
            yield from _value(operand, place, evidence, depth)
        case ast.Set() | ast.SetComp():
            yield _unplain(node, "a set", "sets have no order: write a list, or sorted(...)")
        case ast.GeneratorExp():
            yield _unplain(node, "a generator", "write a list: [...]")
        case ast.Lambda():
            yield _unplain(node, "a function", "call it, and send its result")
        case ast.Call():
            yield from _call(node, place, evidence)
        case ast.Name(id=name):
            yield from _named(name, node, place, evidence, depth)


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
    if isinstance(key, ast.Constant) and not isinstance(key.value, str):
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


def _named(name: str, node: ast.Name, place: Place, evidence: Evidence, depth: int) -> Iterator[Finding]:
    scope = place.scope.resolve(name)
    if scope is None or depth >= _DEEPEST:
        return
    definitions = scope.definitions[name]
    if any(one.kind is Kind.FUNCTION for one in definitions):
        yield _unplain(node, "a function", f"call it: {name}(...)")
    elif len(definitions) == 1 and _is_written_out(definitions[0]):
        assert definitions[0].value is not None
        yield from _value(definitions[0].value, definitions[0].place, evidence, depth + 1)
        for change in scope.changes.get(name, ()):
            if isinstance(change.node, ast.Subscript) and change.value is not None and not change.path:
                yield from _key(change.node.slice)
                yield from _value(change.value, change.place, evidence, depth + 1)


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
