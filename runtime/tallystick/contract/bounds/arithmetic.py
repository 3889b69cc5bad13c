"""Bounds of numbers: arithmetic, slices, differences (contract.md, section 4, R03)."""

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tallystick.contract.bounds.effect import (
    INF,
    LOWER,
    NEVER,
    NOTHING,
    UNBOUNDED,
    UPPER,
    Aspect,
    Effect,
    Measure,
    Number,
    clamped,
    constant,
    plus,
    times,
)
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import Place

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

Side: TypeAlias = Callable[[Measure], Effect]
"""One operand: gives the bound of any measure of it."""
Range: TypeAlias = tuple[Number, Number]
"""The least and the greatest value that a number may have."""

_MAX_EXPONENT, _MAX_BASE = 64, 1 << 16


class Numbers:
    """Evaluates numeric expressions to bounds."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def evaluate(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        """Return the bound of a number that no operator, call or name gives; see ``Values.evaluate``.

        Fractions are rounded away from what they bound, so that everything here is an integer.
        """
        match node:
            case ast.Constant(value=bool() | int() | float() as value) if math.isfinite(value):
                return constant(clamped(math.ceil(value if aspect == UPPER else -value)))
            case ast.UnaryOp(op=ast.USub()):
                return self._bounds.values.evaluate(node.operand, place, aspect.negated)
            case ast.UnaryOp(op=ast.UAdd()):
                return self._bounds.values.evaluate(node.operand, place, aspect, about)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return constant(1 if aspect == UPPER else 0)
        return UNBOUNDED

    def operate(self, operator: ast.operator, left: Side, right: Side, aspect: Aspect) -> Effect:
        """Return the bound of an aspect of ``left operator right``."""
        measure = aspect.measure
        if aspect.path:
            both = isinstance(operator, ast.Add | ast.BitOr)
            return left(measure).join(right(measure)) if both else left(measure)
        match measure:
            case Measure.UNORDERED:
                algebra = isinstance(operator, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub)
                return left(measure).join(right(measure)) if algebra else UNBOUNDED
            case Measure.SHORTNESS:
                return left(measure).plus(right(measure)) if isinstance(operator, ast.Add) else constant(0)
            case Measure.LENGTH:
                return _length(operator, left, right)
        match operator:
            case ast.Add():
                return left(measure).plus(right(measure))
            case ast.Sub():
                return left(measure).plus(right(aspect.negated.measure))
            case ast.Mult() | ast.FloorDiv() | ast.Div() | ast.Mod() | ast.Pow():
                return constant(_arithmetic(operator, left, right, measure))
        return UNBOUNDED

    def skipped(self, cut: ast.Slice, place: Place) -> Effect:
        """Return what a slice that leaves out the first items does to the length of what is sliced."""
        if cut.lower is None or cut.step is not None:
            return NOTHING
        least = -self._bounds.number(cut.lower, place, LOWER)
        return Effect(-least, 0) if 0 < least < INF else NOTHING

    def slice(self, cut: ast.Slice, place: Place) -> Number:
        """Return how long the result of a slice can be, whatever is sliced."""
        number, lower, upper = self._bounds.number, cut.lower, cut.upper
        if cut.step is not None and number(cut.step, place, LOWER) >= 0:
            return INF  # a step that may be negative counts from the end
        best: Number = INF
        if upper is not None and number(upper, place, LOWER) <= 0:  # never negative
            best = number(upper, place, UPPER)
            skipped = INF if lower is None else number(lower, place, LOWER)
            if skipped <= 0:
                best = max(plus(best, skipped), 0)
        if lower is not None:
            if upper is not None:
                best = min(best, self._distance(lower, upper, place))
            if number(lower, place, UPPER) < 0:  # xs[-5:]
                best = min(best, number(lower, place, LOWER))
        return best

    def _distance(self, lower: ast.expr, upper: ast.expr, place: Place) -> Number:
        """Return an upper bound of ``upper - lower`` where both are built on the same names, as in ``xs[i:i + 5]``.

        Whichever ends are negative, a slice is never longer than this.
        """
        difference = self._linear(upper, place)
        for name, factor in self._linear(lower, place).items():
            difference[name] = plus(difference.get(name, 0), -factor)
        number = difference.pop("", 0)
        return INF if any(difference.values()) or number == NEVER else max(number, 0)

    def _linear(self, node: ast.expr, place: Place) -> dict[str, Number]:
        """Return the factor of each name in a sum, the constant part under ""; an odd part under a name of its own."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub() as op):
                total = self._linear(node.left, place)
                sign = 1 if isinstance(op, ast.Add) else -1
                for name, factor in self._linear(node.right, place).items():
                    total[name] = plus(total.get(name, 0), sign * factor)
                return total
            case ast.BinOp(op=ast.Mult()):
                left, right = self._linear(node.left, place), self._linear(node.right, place)
                for scale, other in ((left, right), (right, left)):
                    if scale.keys() <= {""}:
                        return {name: _product(factor, scale.get("", 0)) for name, factor in other.items()}
        exact = self._bounds.exactly(node, place)
        if exact is not None:
            return {"": exact}
        return {node.id if isinstance(node, ast.Name) else f"?{id(node)}": 1}


def _length(operator: ast.operator, left: Side, right: Side) -> Effect:
    match operator:
        case ast.Add() | ast.BitOr() | ast.BitXor():
            return left(Measure.LENGTH).plus(right(Measure.LENGTH))
        case ast.Sub() | ast.BitAnd():
            return left(Measure.LENGTH)
        case ast.Mult():
            return _repeated(left, right).least(_repeated(right, left))
    return UNBOUNDED


def _repeated(sequence: Side, count: Side) -> Effect:
    return constant(times(sequence(Measure.LENGTH).bound, count(Measure.UPPER).bound))


def _product(left: Number, right: Number) -> Number:
    return 0 if not left or not right else clamped(left * right)


def _arithmetic(operator: ast.operator, left: Side, right: Side, measure: Measure) -> Number:
    """Return the bound of a product, quotient, remainder or power, from the corners of both ranges."""
    first, second = _range(left), _range(right)
    if isinstance(operator, ast.Mod):
        if not 0 < second[0] <= second[1] < INF:
            return INF
        return second[1] - 1 if measure is Measure.UPPER else 0
    if not all(map(math.isfinite, (*first, *second))):
        return _one_sided(operator, first, second, measure)
    if isinstance(operator, ast.Pow) and (
        second[0] < 0 or second[1] > _MAX_EXPONENT or max(map(abs, first)) > _MAX_BASE
    ):
        return INF
    if isinstance(operator, ast.FloorDiv | ast.Div) and second[0] <= 0 <= second[1]:
        return INF
    results = [result for a in first for b in second for result in _results(operator, int(a), int(b))]
    return clamped(max(results) if measure is Measure.UPPER else -min(results))


def _results(operator: ast.operator, left: int, right: int) -> tuple[int, ...]:
    match operator:
        case ast.Mult():
            return (left * right,)
        case ast.Pow():
            return (left**right, 0, 1)
    return (left // right, -(-left // right))


def _range(side: Side) -> Range:
    return -side(Measure.LOWER).bound, side(Measure.UPPER).bound


def _one_sided(operator: ast.operator, first: Range, second: Range, measure: Measure) -> Number:
    """Return what is left to say where a range has no end: what is never negative stays so."""
    if first[0] < 0 or second[0] < 0:
        return INF
    if measure is Measure.LOWER:
        return 0
    divides = isinstance(operator, ast.FloorDiv | ast.Div) and second[0] > 0
    return clamped(first[1]) if divides else INF
