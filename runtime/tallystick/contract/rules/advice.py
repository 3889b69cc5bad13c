"""What to write so that a loop or a fanout is bounded: shared by R03 and R05."""

import ast

from tallystick.contract.bounds.effect import INF, LENGTH, UPPER
from tallystick.contract.rules.rule import Evidence
from tallystick.contract.scopes import Kind, Place

_PASSING_ON = frozenset({"list", "tuple", "sorted", "reversed", "enumerate", "set", "iter", "filter"})
_DEEPEST = 8


def how_to_bound(items: ast.expr, place: Place, evidence: Evidence) -> str:
    """Return a hint that names the expression which has no bound, and writes it with one."""
    culprit, place = _culprit(items, place, evidence, 0)
    text = evidence.text(culprit)
    match culprit:
        case ast.Subscript(slice=ast.Slice(upper=upper)) if upper is not None:
            if evidence.bounds.number(upper, place, UPPER) < INF:
                return (
                    f"{evidence.text(upper)} may be negative, and then the slice keeps nearly everything: "
                    f"write [:max(0, {evidence.text(upper)})]"
                )
            return f"give the slice a constant stop: {evidence.text(culprit.value)}[:20], or [:min(20, ...)]"
        case ast.Call(func=ast.Name(id="range"), args=arguments) if arguments:
            stop = arguments[min(len(arguments), 2) - 1]
            return f"cap the range: range(min({evidence.text(stop)}, 20))"
        case ast.Name() if _is_changed(culprit, place):
            return f"cap what {text} collects: append to it in bounded loops only, or take {text}[:20] here"
        case ast.Call(func=ast.Attribute(attr="items" | "values" | "keys")):
            return f"take a bounded part: list({text})[:20]"
        case ast.Call(func=ast.Name(id="zip" | "map")) | ast.GeneratorExp():
            return "slice one of its arguments: [:20]"
        case ast.BinOp() | ast.IfExp() | ast.BoolOp() | ast.Await():
            return f"slice it: ({text})[:20], or with a module constant"
    return f"slice it: {text}[:20], or with a module constant"


def _culprit(items: ast.expr, place: Place, evidence: Evidence, depth: int) -> tuple[ast.expr, Place]:
    """Return the innermost expression that is the reason for the missing bound, and where it is evaluated."""
    bounds = evidence.bounds
    if depth > _DEEPEST:
        return items, place
    match items:
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            inside = bounds.values.inside(items, place)
            for number, generator in enumerate(items.generators):
                iterated_at = inside if number else place
                if bounds.number(generator.iter, iterated_at, LENGTH) == INF:
                    return _culprit(generator.iter, iterated_at, evidence, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _PASSING_ON:
            return _culprit(first, place, evidence, depth + 1)
        case ast.Name(id=name):
            scope = place.scope.resolve(name)
            if scope is not None and not scope.changes.get(name) and len(scope.definitions[name]) == 1:
                definition = scope.definitions[name][0]
                if definition.kind is Kind.ASSIGN and not definition.path and _is_built(definition.value):
                    assert definition.value is not None
                    return _culprit(definition.value, definition.place, evidence, depth + 1)
    return items, place


def _is_built(value: ast.expr | None) -> bool:
    return isinstance(value, ast.ListComp | ast.GeneratorExp | ast.Call | ast.Subscript)


def _is_changed(name: ast.Name, place: Place) -> bool:
    scope = place.scope.resolve(name.id)
    return scope is not None and bool(scope.changes.get(name.id))
