"""What a change does to the list, dict or set it is written on (contract.md, section 4, R03 and R05)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds.definitions import is_certain
from tallystick.contract.bounds.effect import (
    LENGTH,
    NEVER,
    NOTHING,
    SHORTNESS,
    Effect,
    Number,
    constant,
    plus,
    times,
)
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import Definition, Kind, Part, Scope
from tallystick.contract.survey import method_of

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_ADDS_ONE = frozenset({"append", "insert", "add", "setdefault"})
_ADDS_MANY = frozenset({"extend", "update", "symmetric_difference_update"})
_TAKES_ONE = frozenset({"pop", "popitem", "remove"})


class Changes:
    """Effects of changes."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def effect(self, query: Query, change: Definition) -> Effect:
        """Return what a change does to a quantity of the variable that it is written on."""
        if query.aspect.path:
            return NOTHING.join(self._adds(query, change))
        if query.aspect == LENGTH:
            gain = self._gain(query, change)
            if change.place.outer is not None:
                gain = times(gain, self._bounds.loops.within_statement(change.place))
            return Effect(gain, NEVER)
        return self._shrinks(change) if query.aspect == SHORTNESS else NOTHING

    def total_gain(self, change: Definition) -> Number:
        """Return by how much all executions of a change together may lengthen what it is written on."""
        scope = change.place.scope.resolve(change.name) or change.place.scope
        gain = self._gain(Query(scope, change.name, LENGTH), change)
        return times(gain, self._bounds.callers.executions(change.place))

    def keys_by_name(self, scope: Scope, name: str) -> int:
        """Return how many constant keys are ever assigned to a dict, each of which lengthens it once."""
        keys = set()
        for change in scope.changes.get(name, ()):
            if isinstance(change.node, ast.Subscript) and change.value is not None:
                key = change.node.slice
                if isinstance(key, ast.Constant):
                    keys.add(repr(key.value))
        return len(keys) if keys and not self.is_list(scope, name) else 0

    def is_list(self, scope: Scope, name: str) -> bool:
        """Whether a variable never holds anything but a list that is written out where it is assigned."""
        return all(
            one.kind is Kind.AUGMENT
            or (one.kind is Kind.ASSIGN and not one.path and isinstance(one.value, ast.List | ast.ListComp))
            for one in scope.definitions.get(name, ())
        )

    def _gain(self, query: Query, change: Definition) -> Number:
        """Return by how much one execution lengthens the object; negative if it surely shortens it."""
        node, place = change.node, change.place
        if isinstance(node, ast.AugAssign):
            return self._bounds.number(node.value, place, LENGTH)
        if isinstance(node, ast.Call):
            method = method_of(node)
            if method in _ADDS_ONE:
                return 1
            if method in _ADDS_MANY:
                return self._gain_of_many(node, change)
            surely = method in _TAKES_ONE and len(node.args) <= 1  # pop(key, default) may take nothing
            return -1 if surely and is_certain(change) else 0
        if not isinstance(node, ast.Subscript) or change.value is None:
            return 0  # a deletion
        if isinstance(node.slice, ast.Slice):
            return self._bounds.number(change.value, place, LENGTH.under(*change.path))
        constant_key = isinstance(node.slice, ast.Constant)  # counted once, in keys_by_name
        return 0 if constant_key or self.is_list(query.scope, query.name) else 1

    def _gain_of_many(self, node: ast.Call, change: Definition) -> Number:
        gain: Number = sum(keyword.arg is not None for keyword in node.keywords)
        several = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg is None)]
        for argument in several:
            gain = plus(gain, self._bounds.number(argument, change.place, LENGTH))
        return gain

    def _shrinks(self, change: Definition) -> Effect:
        """Return what a change does to the negated length, which is never above 0."""
        node = change.node
        match node:
            case ast.Call():
                method = method_of(node)
                if method in {"append", "insert"} and is_certain(change):
                    return Effect(-1, NEVER)
                if method in _ADDS_ONE or method in {"extend", "update"}:
                    return NOTHING
                taken = method in _TAKES_ONE or method == "discard"
                return Effect(1, NEVER) if taken and change.place.outer is None else constant(0)
            case ast.Subscript(slice=index) if not isinstance(index, ast.Slice):
                return NOTHING if change.value is not None else Effect(1, NEVER)
        return constant(0)

    def _adds(self, query: Query, change: Definition) -> Effect:
        """Return the bound of what a change puts where the query looks; NEVER if it puts nothing there."""
        node, place, value, aspect = change.node, change.place, change.value, query.aspect
        evaluate = self._bounds.values.evaluate
        match node:
            case _ if value is None:
                pass
            case ast.Call():
                method = method_of(node)
                if method in _ADDS_ONE:
                    return evaluate(value, place, aspect.inside())
                if method in _ADDS_MANY:
                    return evaluate(value, place, aspect)
            case ast.Subscript(slice=ast.Slice()):
                return evaluate(value, place, aspect.under(*change.path))
            case ast.Subscript(slice=key):
                effect = evaluate(value, place, aspect.inside().under(*change.path))
                if aspect.path[0] is Part.EACH and not self.is_list(query.scope, query.name):
                    return effect.join(evaluate(key, place, aspect.inside()))
                return effect
        return constant(NEVER)
