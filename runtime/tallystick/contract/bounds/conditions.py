"""What a condition says about a variable once it is known to hold, or not to (contract.md, section 4, R03).

``len(xs) < 10``, ``tries >= MAX``, ``not queue``, ``0 < n <= k``, and their combinations with and, or, not.
"""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tallystick.contract.bounds.effect import INF, LOWER, UPPER, Measure, Number, plus
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import Place

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_INVERTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
_UPWARD = frozenset({Measure.LENGTH, Measure.UPPER})


class Asked(NamedTuple):
    """What is asked of a condition.

    Attributes:
        query: the quantity.
        place: where the condition is evaluated.
        starts_at: for a quantity that moves by exactly one between two looks at it, and whose loop is left if the
            condition is otherwise: where it starts at most. For such a one ``!=`` says as much as ``<``.
    """

    query: Query
    place: Place
    starts_at: Number | None = None


class Limits:
    """Reads upper bounds of a query off conditions."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def mentions(self, test: ast.expr, query: Query) -> bool:
        """Whether a condition compares or tests the query's variable."""
        if query.aspect.path or query.aspect.measure is Measure.UNORDERED:
            return False
        match test:
            case ast.BoolOp():
                return any(self.mentions(value, query) for value in test.values)
            case ast.UnaryOp(op=ast.Not()):
                return self.mentions(test.operand, query)
            case ast.Compare():
                return any(_names(side, query) for side in (test.left, *test.comparators))
        return _names(test, query)

    def limit(self, test: ast.expr, asked: Asked, *, holds: bool) -> Number:
        """Return a bound of the query from a condition that holds, or does not; INF if it says none."""
        if asked.query.aspect.path or asked.query.aspect.measure is Measure.UNORDERED:
            return INF
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.limit(test.operand, asked, holds=not holds)
            case ast.BoolOp():
                every = isinstance(test.op, ast.And) is holds  # all operands are known, else one of them
                limits = [self.limit(value, asked, holds=holds) for value in test.values]
                return min(limits) if every else max(limits)
            case ast.Compare() if holds or len(test.ops) == 1:
                known = _comparisons(test, holds=holds)
                return min((self._compared(*comparison, asked) for comparison in known), default=INF)
        if self._is_subject(test, asked.query) or _is_name(test, asked.query):
            return _truth(asked, holds=holds)
        return INF

    def _compared(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr, asked: Asked) -> Number:
        limit: Number = INF
        for subject, compared, other in ((left, operator, right), (right, _MIRRORED.get(operator), left)):
            if compared is not None and self._is_subject(subject, asked.query):
                limit = min(limit, self._bound_by(compared, other, asked))
        return limit

    def _bound_by(self, operator: type[ast.cmpop], other: ast.expr, asked: Asked) -> Number:
        """Return a bound of the measure where ``subject operator other`` holds."""
        upward = asked.query.aspect.measure in _UPWARD
        strict, loose = (ast.Lt, ast.LtE) if upward else (ast.Gt, ast.GtE)
        aspect = UPPER if upward else LOWER
        if operator is ast.NotEq and asked.starts_at is not None:
            exact = self._bounds.exactly(other, asked.place)
            if exact is not None and asked.starts_at <= (exact if upward else -exact):
                operator = strict
        if operator is strict:
            return plus(self._bounds.number(other, asked.place, aspect), -1)
        if operator in {loose, ast.Eq}:
            return self._bounds.number(other, asked.place, aspect)
        return INF

    def _is_subject(self, expression: ast.expr, query: Query) -> bool:
        """Whether an expression is the query's quantity itself: the name, or the ``len`` of it."""
        if query.aspect.measure in {Measure.UPPER, Measure.LOWER}:
            return _is_name(expression, query)
        match expression:
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                return _is_name(argument, query) and query.scope.resolve("len") is None
        return False


def _comparisons(test: ast.Compare, *, holds: bool) -> Iterator[tuple[ast.expr, type[ast.cmpop], ast.expr]]:
    """Yield what is known to be so, two sides at a time."""
    sides = [test.left, *test.comparators]
    for left, op, right in zip(sides, test.ops, sides[1:], strict=False):
        operator = type(op) if holds else _INVERTED.get(type(op))
        if operator is not None:
            yield left, operator, right


def _truth(asked: Asked, *, holds: bool) -> Number:
    """Return what truth says: a list that is true has an item, one that is not has none."""
    match asked.query.aspect.measure:
        case Measure.SHORTNESS:
            return -1 if holds else 0
        case Measure.LENGTH:
            return INF if holds else 0
    return -1 if holds and asked.starts_at is not None and asked.starts_at <= 0 else INF


def _is_name(expression: ast.expr, query: Query) -> bool:
    if isinstance(expression, ast.NamedExpr):
        expression = expression.target
    return isinstance(expression, ast.Name) and expression.id == query.name


def _names(expression: ast.expr, query: Query) -> bool:
    match expression:
        case ast.Call(args=[argument]):
            return _is_name(argument, query)
    return _is_name(expression, query)
