"""Bounds of what calls return: builtins, methods, the script's own functions (contract.md, section 4, R03)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds.effect import (
    INF,
    LENGTH,
    LOWER,
    NEVER,
    SHORTNESS,
    UNBOUNDED,
    UNORDERED,
    UPPER,
    Aspect,
    Effect,
    Measure,
    Number,
    constant,
    plus,
)
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import Part, Place
from tallystick.contract.survey import CONTEXT

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_SAME_ITEMS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "aiter"})
_SETS = frozenset({"set", "frozenset"})
_SET_ALGEBRA = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_NOT_LONGER = frozenset({"strip", "lstrip", "rstrip", "intersection", "difference", "removeprefix", "removesuffix"})
_PAIR, _TRIPLE = 2, 3


class Calls:
    """Evaluates calls to bounds."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def evaluate(self, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        """Return the bound of what a call returns; see ``Values.evaluate``."""
        func = node.func
        if isinstance(func, ast.Name):
            if place.scope.resolve(func.id) is None:
                return self._builtin(func.id, node, place, aspect, about)
            functions = self._bounds.callers.functions_of(func.id, place.scope)
            return UNBOUNDED if functions is None else constant(self._bounds.arguments.results(functions, aspect))
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id == CONTEXT:
                return constant(self._bounds.fanouts.evaluate(func.attr, node, place, aspect))
            if aspect == UNORDERED and func.attr not in {"get", "pop", "setdefault"}:
                return self._value(func.value, place, aspect) if func.attr in _SET_ALGEBRA else UNBOUNDED
            return self._method(func, node, place, aspect, about)
        return UNBOUNDED

    def _value(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None = None) -> Effect:
        return self._bounds.values.evaluate(node, place, aspect, about)

    # Builtins

    def _builtin(self, name: str, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        arguments = node.args
        first = arguments[0] if arguments and not isinstance(arguments[0], ast.Starred) else None
        if aspect == UNORDERED:
            return constant(1) if name in _SETS else UNBOUNDED
        match name:
            case "range" if first is not None:
                return constant(self._range(node, place, aspect))
            case "len" if first is not None and aspect in {UPPER, LOWER}:
                return self._value(first, place, LENGTH if aspect == UPPER else SHORTNESS)
            case "min" | "max":
                return self._extreme(name, node, place, aspect, about)
            case "int" | "round" if first is not None and not aspect.path:
                return self._value(first, place, aspect, about)
            case "abs" if first is not None and aspect in {UPPER, LOWER}:
                upper, lower = self._value(first, place, UPPER), self._value(first, place, LOWER)
                return upper.join(lower) if aspect == UPPER else constant(0)
            case "dict":
                return self._dict(node, place, aspect, about)
            case "zip" | "map":
                return self._side_by_side(name, node, place, aspect, about)
            case "enumerate" if first is not None:
                return self._enumerate(first, node, place, aspect, about)
            case "filter" if len(arguments) == _PAIR:
                return self._value(arguments[1], place, aspect, about)
            case "next" | "anext" if first is not None:
                return self._value(first, place, aspect.under(Part.EACH))
            case "divmod" if aspect == LENGTH:
                return constant(_PAIR)
            case _ if name in _SAME_ITEMS and first is not None:
                if aspect == SHORTNESS and name in _SETS:
                    return constant(0)
                return self._value(first, place, aspect.inside().under(Part.EACH) if aspect.path else aspect, about)
            case _ if name in _SAME_ITEMS and not arguments:
                return constant(0) if aspect in {LENGTH, SHORTNESS} else constant(NEVER)
        return UNBOUNDED

    def _range(self, node: ast.Call, place: Place, aspect: Aspect) -> Number:
        number, arguments = self._bounds.number, node.args
        if any(isinstance(argument, ast.Starred) for argument in arguments):
            return INF
        start = arguments[0] if len(arguments) > 1 else None
        stop = arguments[min(len(arguments), _PAIR) - 1]
        step = arguments[2] if len(arguments) == _TRIPLE else None
        exact = 1 if step is None else self._bounds.exactly(step, place)
        low, high = (stop, start) if exact is not None and exact < 0 else (start, stop)
        least = 0 if low is None else number(low, place, LOWER)  # negated
        most = 0 if high is None else number(high, place, UPPER)
        if aspect.path:
            return _within_range(aspect, least, most, exact)
        if aspect != LENGTH:
            return 0 if aspect == SHORTNESS else INF
        distance = plus(most, least)
        if exact is None or distance in {INF, NEVER}:
            return max(distance, 0) if exact is not None or number(step or stop, place, LOWER) < 0 else INF
        return max(-(-distance // abs(exact)), 0) if exact else 0

    def _extreme(self, name: str, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or not node.args:
            return UNBOUNDED
        if len(node.args) == 1:
            effect = self._value(node.args[0], place, aspect.under(Part.EACH))
            for keyword in node.keywords:
                if keyword.arg == "default":
                    effect = effect.join(self._value(keyword.value, place, aspect))
            return effect
        first, *others = (self._value(argument, place, aspect, about) for argument in node.args)
        smallest = not node.keywords and aspect == (UPPER if name == "min" else LOWER)
        for effect in others:
            first = first.least(effect) if smallest else first.join(effect)
        return first

    def _dict(self, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        if aspect == SHORTNESS or any(isinstance(argument, ast.Starred) for argument in node.args):
            return constant(0) if aspect == SHORTNESS else UNBOUNDED
        parts = [self._value(argument, place, aspect, about) for argument in node.args]
        if aspect.path and aspect.path[0] is not Part.EACH:  # dict(pairs) holds what is second in each pair
            pairs = aspect.inside().under(Part.EACH, 1)
            parts += [self._value(argument, place, pairs, about) for argument in node.args]
        for keyword in node.keywords:
            if keyword.arg is None:
                parts.append(self._value(keyword.value, place, aspect))
            else:
                parts.append(self._value(keyword.value, place, aspect.inside()) if aspect.path else constant(1))
        return _together(parts, aspect)

    def _side_by_side(self, name: str, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        """Return the bound of a ``zip`` or ``map``, which is as short as the shortest of its arguments."""
        items = node.args[1:] if name == "map" else node.args
        if aspect == LENGTH:
            shortest = UNBOUNDED if items else constant(0)
            for item in items:
                if not isinstance(item, ast.Starred):
                    shortest = self._value(item, place, LENGTH, about).least(shortest)
            return shortest
        if aspect == SHORTNESS:
            return constant(0)
        starred = any(isinstance(item, ast.Starred) for item in items)
        match aspect.path:
            case (Part.EACH, *_) if name == "map" and node.args:
                return constant(self._bounds.fanouts.applied(node.args[0], place, aspect.inside()))
            case (Part.EACH,) if aspect.measure is Measure.LENGTH and not starred:
                return constant(len(items))
            case (Part.EACH, int() as index, *_) if index < len(items) and not starred:
                return self._value(items[index], place, aspect.inside(2).under(Part.EACH))
        return UNBOUNDED

    def _enumerate(self, first: ast.expr, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        match aspect.path:
            case ():
                return self._value(first, place, aspect, about)
            case (Part.EACH, 1, *_):
                return self._value(first, place, aspect.inside(2).under(Part.EACH))
            case (Part.EACH, 0):
                start = node.args[1] if len(node.args) > 1 else None
                start = next((keyword.value for keyword in node.keywords if keyword.arg == "start"), start)
                begins = constant(0) if start is None else self._value(start, place, aspect.inside(2))
                if aspect.measure is Measure.LOWER:
                    return begins
                return begins.plus(self._value(first, place, LENGTH)).plus(constant(-1))
        return UNBOUNDED

    # Methods

    def _method(self, func: ast.Attribute, node: ast.Call, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        receiver = func.value
        match func.attr:
            case "get" | "pop" | "setdefault" if node.args:
                return self._looked_up(receiver, node, place, aspect)
            case "items" | "values" | "keys" if not aspect.path:
                return self._value(receiver, place, aspect, about)
            case "items" | "values" | "keys" as view:
                return self._of_view(view, receiver, place, aspect)
            case "copy":
                return self._value(receiver, place, aspect, about)
            case "fromkeys" if node.args and aspect == LENGTH:
                return self._value(node.args[0], place, aspect)
            case "union":
                parts = [self._value(one, place, aspect, about) for one in (receiver, *node.args)]
                return _together(parts, aspect)
            case "split" | "rsplit" if len(node.args) == _PAIR and aspect == LENGTH:
                return constant(self._split(node.args[1], place))
            case "partition" | "rpartition" if aspect == LENGTH:
                return constant(_TRIPLE)
            case method if method in _NOT_LONGER and aspect == LENGTH:
                return self._value(receiver, place, aspect, about)
        return UNBOUNDED

    def _looked_up(self, receiver: ast.expr, node: ast.Call, place: Place, aspect: Aspect) -> Effect:
        key, *defaults = node.args
        step = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else Part.ANY
        found = self._value(receiver, place, aspect.under(step))
        for default in defaults:
            found = found.join(self._value(default, place, aspect))
        return found

    def _split(self, most: ast.expr, place: Place) -> Number:
        """Return how many pieces a split gives; a negative number of splits means as many as there are."""
        if self._bounds.number(most, place, LOWER) > 0:
            return INF
        return plus(self._bounds.number(most, place, UPPER), 1)

    def _of_view(self, view: str, receiver: ast.expr, place: Place, aspect: Aspect) -> Effect:
        match view, aspect.path:
            case "keys", _:
                return self._value(receiver, place, aspect)
            case "values", (_, *_):
                return self._value(receiver, place, aspect.inside().under(Part.ANY))
            case "items", (_, 0, *_):
                return self._value(receiver, place, aspect.inside(2).under(Part.EACH))
            case "items", (_, 1, *_):
                return self._value(receiver, place, aspect.inside(2).under(Part.ANY))
            case "items", (_,) if aspect.measure is Measure.LENGTH:
                return constant(_PAIR)
        return UNBOUNDED


def _within_range(aspect: Aspect, least: Number, most: Number, step: int | None) -> Number:
    """Return the bound of the numbers that a ``range`` gives; ``least`` is negated."""
    if len(aspect.path) > 1 or not step or aspect.measure not in {Measure.UPPER, Measure.LOWER}:
        return INF
    if aspect.measure is Measure.UPPER:
        return plus(most, -1) if step > 0 else most
    return least if step > 0 else plus(least, -1)


def _together(parts: list[Effect], aspect: Aspect) -> Effect:
    """Return the bound of what is put together from parts: lengths add up, what lies inside is of one of them."""
    total = constant(0 if aspect == LENGTH else NEVER)
    for part in parts:
        total = total.plus(part) if aspect == LENGTH else total.join(part)
    return total
