"""The bound of an expression: its length, its value, or the same of something inside it (contract.md, section 4, R03).

``evaluate`` answers with an effect on the variable that the statement is about to set, if it is asked for one, so
that ``xs = [*xs, item]`` is a gain of one; of every other variable it takes the bound.
"""

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tallystick.contract.bounds_effect import (
    INF,
    NEVER,
    NOTHING,
    UNBOUNDED,
    Effect,
    Measure,
    Number,
    clamped,
    constant,
    known,
    plus,
    times,
)
from tallystick.contract.scopes import Comprehension, Part, Place, Steps

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds
    from tallystick.contract.bounds_flow import Query

_MAX_STEPS = 6
_LENGTHS = frozenset({Measure.LENGTH, Measure.SHORTNESS})


class Values:
    """Evaluates expressions to bounds, without executing anything."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._handlers: dict[type[ast.expr], Callable[..., Effect]] = {
            ast.Name: self._name,
            ast.Await: self._same,
            ast.NamedExpr: self._same,
            ast.IfExp: self._choice,
            ast.BoolOp: self._any_of,
            ast.Call: bounds.calls.evaluate,
            ast.Subscript: self._subscript,
        }

    def evaluate(
        self, node: ast.expr, place: Place, measure: Measure, path: Steps = (), about: "Query | None" = None
    ) -> Effect:
        """Return the bound of ``measure`` of what lies at ``path`` inside the value of ``node``.

        Args:
            node: the expression.
            place: where it is evaluated.
            measure: the quantity.
            path: steps into the value.
            about: the quantity on which the result may be an effect; any other yields a constant.
        """
        bounds = self._bounds
        if not bounds.may_go_on():
            return UNBOUNDED
        bounds.depth += 1
        handler = self._handlers.get(node.__class__)
        if handler is not None:
            effect = handler(node, place, measure, path, about)
        elif path:
            effect = self._part(node, place, measure, path, about)
        elif measure is Measure.LENGTH or measure is Measure.SHORTNESS:
            effect = self._length(node, place, measure, about)
        elif measure is Measure.UNORDERED:
            effect = self._unordered(node, place, about)
        else:
            effect = self._number(node, place, measure, about)
        bounds.depth -= 1
        return known(effect, measure)

    def _same(
        self, node: ast.Await | ast.NamedExpr, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        return self.evaluate(node.value, place, measure, path, about)

    def _choice(self, node: ast.IfExp, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        joined = constant(NEVER)
        for branch, holds in ((node.body, True), (node.orelse, False)):
            effect = self.evaluate(branch, place, measure, path, about)
            if isinstance(branch, ast.Name) and effect.base == INF:
                scope = place.scope.resolve(branch.id)
                if scope is not None:
                    query = self._bounds.query(scope, branch.id, measure, path)
                    effect = constant(self._bounds.flow.limits.limit(node.test, query, place, holds=holds))
            joined = joined.join(effect)
        return joined

    def _any_of(self, node: ast.BoolOp, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        joined = constant(NEVER)
        for value in node.values:
            joined = joined.join(self.evaluate(value, place, measure, path, about))
        return joined

    def _subscript(
        self, node: ast.Subscript, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        index = node.slice
        if not isinstance(index, ast.Slice):
            step = index.value if isinstance(index, ast.Constant) and _is_key(index.value) else Part.ANY
            return self.evaluate(node.value, place, measure, (step, *path), about)
        if path:
            outer = (path[0] if path[0] is Part.EACH else Part.ANY, *path[1:])
            return self.evaluate(node.value, place, measure, outer, about)
        if measure is Measure.LENGTH:
            whole = self.evaluate(node.value, place, measure, (), about)
            return whole.least(constant(self._slice(index, place)))
        return constant(0) if measure is Measure.SHORTNESS else UNBOUNDED  # a slice is never a set

    def _name(self, node: ast.Name, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        scope = place.scope.resolve(node.id)
        if scope is None or len(path) > _MAX_STEPS:
            return UNBOUNDED
        query = self._bounds.query(scope, node.id, measure, path)
        return NOTHING if query == about else constant(self._bounds.variable(query, place))

    # Lengths

    def _length(self, node: ast.expr, place: Place, measure: Measure, about: "Query | None") -> Effect:
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                exact = measure is Measure.LENGTH or not isinstance(node, ast.Set)
                total = constant(0)
                for item in node.elts:
                    if isinstance(item, ast.Starred):
                        total = total.plus(self.evaluate(item.value, place, measure, (), about))
                    elif exact:
                        total = total.plus(_one(measure))
                return total
            case ast.Constant(value=str() | bytes() as text):
                return constant(len(text) if measure is Measure.LENGTH else -len(text))
            case ast.BinOp(op=ast.Add()):
                left = self.evaluate(node.left, place, measure, (), about)
                return left.plus(self.evaluate(node.right, place, measure, (), about))
            case ast.Constant(value=None):
                return constant(0)
        if measure is Measure.SHORTNESS:
            return constant(0)
        match node:
            case ast.Dict():
                total = constant(sum(key is not None for key in node.keys))
                for key, value in zip(node.keys, node.values, strict=True):
                    if key is None:
                        total = total.plus(self.evaluate(value, place, measure, (), about))
                return total
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, place, about)
            case ast.BinOp():
                return self.operate(
                    node.op,
                    lambda asked: self.evaluate(node.left, place, asked, (), about),
                    lambda asked: self.evaluate(node.right, place, asked, (), about),
                    measure,
                    (),
                )
        return UNBOUNDED

    def _comprehension(self, node: Comprehension, place: Place, about: "Query | None") -> Effect:
        first = self.evaluate(node.generators[0].iter, place, Measure.LENGTH, (), about)
        if len(node.generators) == 1:
            return first
        return constant(self._bounds.loops.comprehension(node, place))

    def inside(self, node: Comprehension, place: Place) -> Place:
        """Return the place in which a comprehension at ``place`` evaluates its items."""
        return Place(self._bounds.survey.scopes[node], place.block, place.index, place)

    def _slice(self, cut: ast.Slice, place: Place) -> Number:
        """Return how long the result of a slice can be, whatever is sliced."""
        if cut.step is not None and not self._is_positive(cut.step, place):
            return INF
        lower, upper = cut.lower, cut.upper
        best: Number = INF
        if upper is not None and self._bounds.number(upper, place, Measure.LOWER) <= 0:  # never negative
            best = self._bounds.number(upper, place, Measure.UPPER)
            if lower is not None and (skipped := self._bounds.number(lower, place, Measure.LOWER)) <= 0:
                best = max(plus(best, skipped), 0)
        if lower is not None:
            if upper is not None:
                best = min(best, self._distance(lower, upper, place))
            if self._bounds.number(lower, place, Measure.UPPER) < 0:  # xs[-5:]
                best = min(best, self._bounds.number(lower, place, Measure.LOWER))
        return best

    def _is_positive(self, step: ast.expr, place: Place) -> bool:
        return self._bounds.number(step, place, Measure.LOWER) < 0

    def _distance(self, lower: ast.expr, upper: ast.expr, place: Place) -> Number:
        """Return an upper bound of ``upper - lower`` where both are built on the same names, as in ``xs[i:i + 5]``.

        Whichever ends are negative, a slice is never longer than this.
        """
        difference = self._linear(upper, place)
        for name, factor in self._linear(lower, place).items():
            difference[name] = plus(difference.get(name, 0), -factor)
        number = difference.pop("", 0)
        return max(number, 0) if not any(difference.values()) and number != NEVER else INF

    def _linear(self, node: ast.expr, place: Place) -> dict[str, Number]:
        """Return the factor of each name in a sum, the constant part under ""; an odd part under its own text."""
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

    def _unordered(self, node: ast.expr, place: Place, about: "Query | None") -> Effect:
        """Return whether the value may be a set."""
        if isinstance(node, ast.Set | ast.SetComp):
            return constant(1)
        if isinstance(node, ast.BinOp):
            return self.operate(
                node.op,
                lambda asked: self.evaluate(node.left, place, asked, (), about),
                lambda asked: self.evaluate(node.right, place, asked, (), about),
                Measure.UNORDERED,
                (),
            )
        return UNBOUNDED

    # Numbers

    def _number(self, node: ast.expr, place: Place, measure: Measure, about: "Query | None") -> Effect:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                signed = value if measure is Measure.UPPER else -value
                return constant(clamped(math.ceil(signed))) if math.isfinite(signed) else UNBOUNDED
            case ast.UnaryOp(op=ast.USub()):
                return self.evaluate(node.operand, place, measure.negated)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.evaluate(node.operand, place, measure, (), about)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return constant(1 if measure is Measure.UPPER else 0)
            case ast.BinOp():
                return self.operate(
                    node.op,
                    lambda asked: self.evaluate(node.left, place, asked, (), about if asked is measure else None),
                    lambda asked: self.evaluate(node.right, place, asked, (), about if asked is measure else None),
                    measure,
                    (),
                )
        return UNBOUNDED

    def operate(
        self,
        operator: ast.operator,
        left: Callable[[Measure], Effect],
        right: Callable[[Measure], Effect],
        measure: Measure,
        path: Steps,
    ) -> Effect:
        """Return the bound of ``left operator right``, from functions that give the bound of either side."""
        if path:
            return left(measure).join(right(measure)) if isinstance(operator, ast.Add | ast.BitOr) else left(measure)
        if measure is Measure.UNORDERED:
            algebra = isinstance(operator, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub)
            return left(measure).join(right(measure)) if algebra else UNBOUNDED
        if measure is Measure.SHORTNESS:
            return left(measure).plus(right(measure)) if isinstance(operator, ast.Add) else constant(0)
        if measure is Measure.LENGTH:
            match operator:
                case ast.Add() | ast.BitOr() | ast.BitXor():
                    return left(measure).plus(right(measure))
                case ast.Sub() | ast.BitAnd():
                    return left(measure)
                case ast.Mult():
                    return _repeated(left, right).least(_repeated(right, left))
            return UNBOUNDED
        match operator:
            case ast.Add():
                return left(measure).plus(right(measure))
            case ast.Sub():
                return left(measure).plus(right(measure.negated))
            case ast.Mult() | ast.FloorDiv() | ast.Div() | ast.Mod() | ast.Pow():
                return constant(_arithmetic(operator, left, right, measure))
        return UNBOUNDED

    # What lies inside a value

    def _part(self, node: ast.expr, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        step, rest = path[0], path[1:]
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return self._item(node, place, measure, path, about)
            case ast.Dict():
                return self._entry(node, place, measure, path, about)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.evaluate(node.elt, self.inside(node, place), measure, rest)
            case ast.DictComp():
                inner = node.key if step is Part.EACH else node.value
                return self.evaluate(inner, self.inside(node, place), measure, rest)
            case ast.BinOp():
                outer = (step if isinstance(step, Part | str) else Part.ANY, *rest)
                return self.operate(
                    node.op,
                    lambda asked: self.evaluate(node.left, place, asked, outer, about),
                    lambda asked: self.evaluate(node.right, place, asked, outer, about),
                    measure,
                    outer,
                )
            case ast.Constant(value=str() | bytes()) if not rest and measure in _LENGTHS:
                return constant(1 if measure is Measure.LENGTH else 0)  # a character
        return UNBOUNDED

    def _item(
        self, node: ast.List | ast.Tuple | ast.Set, place: Place, measure: Measure, path: Steps, about: "Query | None"
    ) -> Effect:
        step, rest = path[0], path[1:]
        plain = not any(isinstance(item, ast.Starred) for item in node.elts)
        if plain and isinstance(step, int) and -len(node.elts) <= step < len(node.elts):
            return self._held(node.elts[step], place, measure, rest, about)
        joined = constant(NEVER)
        for item in node.elts:
            if isinstance(item, ast.Starred):
                joined = joined.join(self.evaluate(item.value, place, measure, (Part.EACH, *rest), about))
            else:
                joined = joined.join(self._held(item, place, measure, rest, about))
        return joined

    def _entry(self, node: ast.Dict, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        step, rest = path[0], path[1:]
        found = [value for key, value in zip(node.keys, node.values, strict=True) if _may_be(key, step)]
        if step is Part.EACH:
            found = [key for key in node.keys if key is not None]
        joined = constant(NEVER)
        for value in found:
            joined = joined.join(self._held(value, place, measure, rest, about))
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                joined = joined.join(self.evaluate(value, place, measure, path, about))
        return joined

    def _held(self, node: ast.expr, place: Place, measure: Measure, path: Steps, about: "Query | None") -> Effect:
        """Return the bound of a value that a container holds, which may have grown since it was put there."""
        effect = self.evaluate(node, place, measure, path, about)
        if measure is Measure.LENGTH and not path:
            return effect.plus(constant(self._bounds.changes.growth_inside_containers()))
        return effect


def _product(left: Number, right: Number) -> Number:
    return 0 if not left or not right else clamped(left * right)


def _is_key(value: object) -> bool:
    return isinstance(value, int | str)


def _may_be(key: ast.expr | None, step: object) -> bool:
    if key is None:
        return False
    return not (isinstance(key, ast.Constant) and isinstance(step, int | str)) or key.value == step


def _one(measure: Measure) -> Effect:
    return constant(1 if measure is Measure.LENGTH else -1)


def _repeated(sequence: Callable[[Measure], Effect], count: Callable[[Measure], Effect]) -> Effect:
    length, factor = sequence(Measure.LENGTH), count(Measure.UPPER)
    return constant(times(length.base, factor.base)) if length.is_constant and factor.is_constant else UNBOUNDED


def _arithmetic(
    operator: ast.operator, left: Callable[[Measure], Effect], right: Callable[[Measure], Effect], measure: Measure
) -> Number:
    """Return the bound of a product, quotient, remainder or power, from the corners of both ranges."""
    corners: list[Number] = []
    for side in (left, right):
        low, high = side(Measure.LOWER), side(Measure.UPPER)
        if not (low.is_constant and high.is_constant):
            return INF
        corners += (-low.base, high.base)
    first, second, third, fourth = corners
    if isinstance(operator, ast.Mod):
        if third > 0 and fourth < INF:
            return fourth - 1 if measure is Measure.UPPER else 0
        return INF
    if not all(map(math.isfinite, corners)):
        return _one_sided(operator, first, second, third, fourth, measure)
    if isinstance(operator, ast.Pow) and (third < 0 or fourth > _MAX_EXPONENT or abs(first) > _MAX_BASE):
        return INF
    if isinstance(operator, ast.FloorDiv | ast.Div) and third <= 0 <= fourth:
        return INF
    results: list[Number] = []
    for one in (first, second):
        for other in (third, fourth):
            a, b = int(one), int(other)
            match operator:
                case ast.Mult():
                    results.append(a * b)
                case ast.Pow():
                    results += (a**b, 0, 1)
                case _:
                    results += (a // b, -(-a // b))
    return clamped(max(results) if measure is Measure.UPPER else -min(results))


_MAX_EXPONENT, _MAX_BASE = 64, 1 << 16


def _one_sided(
    operator: ast.operator, low: Number, high: Number, least: Number, most: Number, measure: Measure
) -> Number:
    """Return what is left to say where a range has no end: a non-negative number stays one."""
    if low < 0 or least < 0:
        return INF
    if measure is Measure.LOWER:
        return 0
    if isinstance(operator, ast.FloorDiv | ast.Div) and least > 0:
        return clamped(high)
    return INF
