"""What functions are given and what they return (contract.md, section 4, R03 and R05).

A parameter is bounded when every call passes something bounded. The result of a function is bounded over all its
calls, not for each: scripts are short, and their helpers have few uses.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tallystick.contract.bounds.callers import Reference
from tallystick.contract.bounds.effect import INF, LENGTH, LOWER, NEVER, UPPER, Aspect, Number, plus, times
from tallystick.contract.scopes import FUNCTIONS, Part, Place, Scope

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds


class Arguments:
    """Evaluates parameters and results to bounds."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def given(self, function: Scope, name: str) -> Iterator[tuple[ast.expr, Place]]:
        """Yield the expressions whose value a parameter may get, as far as calls name them, and their places."""
        for reference in self._bounds.callers.references(function):
            if reference.kind == "call":
                assert isinstance(reference.node, ast.Call)
                argument = self.argument(reference.node, function, name)
                if argument is not None:
                    yield argument, reference.place

    def argument(self, call: ast.Call, function: Scope, name: str) -> ast.expr | None:
        """Return the argument that a call gives to a parameter, None if it gives none or not openly."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        position = _position(function, name)
        if position is None or any(isinstance(given, ast.Starred) for given in call.args[: position + 1]):
            return None
        return call.args[position] if position < len(call.args) else None

    # Parameters

    def parameter(self, function: Scope, name: str, aspect: Aspect) -> Number:
        """Return the bound of a parameter over every call of its function; INF if some call is not known."""
        references = self._bounds.callers.references(function)
        if not references or self._bounds.callers.is_entry(function):
            return INF
        bound: Number = NEVER
        for reference in references:
            bound = max(bound, self._passed(reference, function, name, aspect))
            if bound == INF:
                break
        return bound

    def _passed(self, reference: Reference, function: Scope, name: str, aspect: Aspect) -> Number:
        match reference:
            case Reference("call", ast.Call() as call, place):
                return self._passed_by_call(call, place, function, name, aspect)
            case Reference("stage" | "node", _, place) if _position(function, name) == 0:
                assert place.fanout is not None
                return self._bounds.fanouts.handed_to_branch(place.fanout, reference, aspect)
            case Reference("stage" | "node"):
                return self._default(function, name, aspect)
        return INF

    def _passed_by_call(self, call: ast.Call, place: Place, function: Scope, name: str, aspect: Aspect) -> Number:
        bounds, arguments = self._bounds, _arguments_of(function)
        given = self.argument(call, function, name)
        if given is not None:
            bound = bounds.number(given, place, aspect)
            if aspect == LENGTH and call not in bounds.survey.awaited and isinstance(given, ast.Name):
                bound = plus(bound, bounds.aliases.gain_after(given, place))
            return bound
        if arguments.vararg is not None and arguments.vararg.arg == name:
            rest = call.args
            position = len(arguments.posonlyargs) + len(arguments.args)
            if not any(isinstance(argument, ast.Starred) for argument in rest[:position]):
                rest = rest[position:]
            return bounds.number(ast.Tuple(rest, ast.Load()), place, aspect)
        if any(keyword.arg is None for keyword in call.keywords):
            return INF
        bound = self._default(function, name, aspect)
        for argument in call.args:
            if isinstance(argument, ast.Starred):
                bound = max(bound, bounds.number(argument.value, place, aspect.under(Part.EACH)))
        return bound

    def _default(self, function: Scope, name: str, aspect: Aspect) -> Number:
        arguments, place = _arguments_of(function), function.defined_at
        if arguments.kwarg is not None and arguments.kwarg.arg == name:
            return INF
        for argument, default in defaults_of(arguments):
            if argument.arg == name and place is not None:
                return self._bounds.number(default, place, aspect)
        return NEVER  # such a call raises a TypeError

    # Results

    def results(self, functions: Sequence[Scope], aspect: Aspect) -> Number:
        """Return the bound of what a call of one of the functions gives, once it is awaited if need be."""
        return max((self._result(function, aspect) for function in functions), default=INF)

    def _result(self, function: Scope, aspect: Aspect) -> Number:
        return self._bounds.remembered((function, aspect), lambda: self._returned(function, aspect))

    def _returned(self, function: Scope, aspect: Aspect) -> Number:
        if function.yields:
            return self._yielded(function, aspect)
        if aspect in {UPPER, LOWER} and self._may_return_none(function):
            return INF
        return max((self._bounds.number(value, place, aspect) for value, place in function.returns), default=NEVER)

    def _may_return_none(self, function: Scope) -> bool:
        if isinstance(function.node, ast.Lambda):
            return False
        body = self._bounds.survey.block(function.node)
        return self._bounds.flow.block(None, body).normal is not None

    def _yielded(self, function: Scope, aspect: Aspect) -> Number:
        bounds = self._bounds
        if aspect == LENGTH:
            total: Number = 0
            for node, place in function.yields:
                count = bounds.number(node.value, place, LENGTH) if isinstance(node, ast.YieldFrom) else 1
                total = plus(total, times(count, bounds.loops.repetitions(place)))
            return total
        if not aspect.path or aspect.path[0] is not Part.EACH:
            return INF
        bound: Number = NEVER
        for node, place in function.yields:
            asked = aspect if isinstance(node, ast.YieldFrom) else aspect.inside()
            bound = max(bound, INF if node.value is None else bounds.number(node.value, place, asked))
        return bound


def defaults_of(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Yield every parameter that has a default, with it."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(ordered), reversed(arguments.defaults), strict=False)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument, default


def _arguments_of(function: Scope) -> ast.arguments:
    assert isinstance(function.node, FUNCTIONS)
    return function.node.args


def _position(function: Scope, name: str) -> int | None:
    arguments = _arguments_of(function)
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    return names.index(name) if name in names else None
