"""What a condition says about a variable once it is known to hold, or not to (contract.md, section 4, R03).

``len(xs) < 10``, ``tries >= MAX``, ``not queue``, ``0 < n <= k``, and their combinations with and, or, not.
"""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds_effect import INF, LOWER, UPPER, Measure, Number, plus
from tallystick.contract.bounds_outcome import Query
from tallystick.contract.scopes import Place

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds

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

    def limit(self, test: ast.expr, query: Query, place: Place, *, holds: bool) -> Number:
        """Return a bound of the query from a condition that holds at ``place``, or does not; INF if it says none."""
        if query.aspect.path or query.aspect.measure is Measure.UNORDERED:
            return INF
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.limit(test.operand, query, place, holds=not holds)
            case ast.BoolOp():
                every = isinstance(test.op, ast.And) is holds  # all operands are known, else one of them
                limits = [self.limit(value, query, place, holds=holds) for value in test.values]
                return min(limits) if every else max(limits)
            case ast.Compare():
                sides = [test.left, *test.comparators]
                if not holds and len(test.ops) > 1:
                    return INF
                return min(
                    self._compared(left, type(op) if holds else _INVERTED.get(type(op), ast.Is), right, query, place)
                    for left, op, right in zip(sides, test.ops, sides[1:], strict=False)
                )
        if self._is_subject(test, query) or _is_name(test, query):
            return self._truth(query, holds=holds)
        return INF

    def _truth(self, query: Query, *, holds: bool) -> Number:
        """Return what truth says: a list that is true has an item, one that is not has none."""
        match query.aspect.measure:
            case Measure.SHORTNESS:
                return -1 if holds else 0
            case Measure.LENGTH:
                return INF if holds else 0
        return -1 if holds and self._bounds.single_steps.get(query, INF) <= 0 else INF

    def _compared(
        self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr, query: Query, place: Place
    ) -> Number:
        limit: Number = INF
        for subject, compared, other in ((left, operator, right), (right, _MIRRORED.get(operator), left)):
            if compared is not None and self._is_subject(subject, query):
                limit = min(limit, self._bound_by(compared, other, query, place))
        return limit

    def _bound_by(self, operator: type[ast.cmpop], other: ast.expr, query: Query, place: Place) -> Number:
        """Return a bound of the measure where ``subject operator other`` holds."""
        upward = query.aspect.measure in {Measure.LENGTH, Measure.UPPER}
        strict, loose = (ast.Lt, ast.LtE) if upward else (ast.Gt, ast.GtE)
        aspect = UPPER if upward else LOWER
        if operator is ast.NotEq and query in self._bounds.single_steps:
            exact = self._bounds.exactly(other, place)
            if exact is not None and self._bounds.single_steps[query] <= (exact if upward else -exact):
                operator = strict
        if operator is strict:
            return plus(self._bounds.number(other, place, aspect), -1)
        if operator in {loose, ast.Eq}:
            return self._bounds.number(other, place, aspect)
        return INF

    def _is_subject(self, expression: ast.expr, query: Query) -> bool:
        """Whether an expression is the query's quantity itself: the name, or the ``len`` of it."""
        if query.aspect.measure in {Measure.UPPER, Measure.LOWER}:
            return _is_name(expression, query)
        match expression:
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                return _is_name(argument, query) and query.scope.resolve("len") is None
        return False


def _is_name(expression: ast.expr, query: Query) -> bool:
    if isinstance(expression, ast.NamedExpr):
        expression = expression.target
    return isinstance(expression, ast.Name) and expression.id == query.name


def _names(expression: ast.expr, query: Query) -> bool:
    match expression:
        case ast.Call(args=[argument]):
            return _is_name(argument, query)
    return _is_name(expression, query)
