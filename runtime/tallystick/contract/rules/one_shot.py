"""What can be gone through, or awaited, once only: iterators, coroutines and requests. For R02 and R09."""

import ast

from tallystick.contract.rules.holders import Holder
from tallystick.contract.rules.rule import Evidence
from tallystick.contract.scopes import Kind, Place
from tallystick.contract.survey import CONTEXT, FANOUTS

_ITERATORS = frozenset({"iter", "map", "filter", "zip", "enumerate", "reversed"})
_DEEPEST = 6


def is_one_shot(value: ast.expr | None, place: Place, evidence: Evidence, depth: int = 0) -> bool:
    """Whether an expression gives something that is used up, or a list or dict that holds such things."""
    if depth > _DEEPEST:
        return False

    def any_of(values: list[ast.expr], at: Place = place) -> bool:
        return any(is_one_shot(one, at, evidence, depth + 1) for one in values)

    match value:
        case ast.GeneratorExp():
            return True
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            return any_of([part], evidence.bounds.values.inside(value, place))
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts) | ast.BoolOp(values=parts):
            return any_of(parts)
        case ast.IfExp(body=body, orelse=orelse):
            return any_of([body, orelse])
        case ast.NamedExpr(value=inner) | ast.Starred(value=inner):
            return any_of([inner])
        case ast.Call(func=ast.Name(id=name)):
            if evidence.is_builtin(name, place):
                return name in _ITERATORS
            functions = evidence.bounds.callers.functions_of(name, place.scope)
            return bool(functions) and any(
                function.yields or isinstance(function.node, ast.AsyncFunctionDef) for function in functions or ()
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if name == CONTEXT:
            return method == "run" or method in FANOUTS
        case ast.Name(id=name):
            scope = place.scope.resolve(name)
            return scope is not None and holds_one_shot((scope, name), evidence, depth + 1)
    return False


def holds_one_shot(holder: Holder, evidence: Evidence, depth: int = 0) -> bool:
    """Whether a variable may hold something that is used up, by itself or in a list."""
    scope, name = holder
    definitions = [one for one in scope.definitions.get(name, ()) if one.kind in {Kind.ASSIGN, Kind.WALRUS}]
    changes = [one for one in scope.changes.get(name, ()) if one.value is not None]
    return any(
        not one.path and is_one_shot(one.value, one.place, evidence, depth + 1) for one in (*definitions, *changes)
    )
