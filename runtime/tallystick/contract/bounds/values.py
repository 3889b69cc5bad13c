"""The bound of an expression: its length, its value, or the same of something inside it (contract.md, section 4, R03).

``evaluate`` answers with an effect on the variable that the statement is about to set, if it is asked for one, so
that ``xs = [*xs, item]`` is a gain of one; of every other variable it takes the bound.
"""

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tallystick.contract.bounds.conditions import Asked
from tallystick.contract.bounds.effect import (
    INF,
    LENGTH,
    NEVER,
    NOTHING,
    SHORTNESS,
    UNBOUNDED,
    Aspect,
    Effect,
    Measure,
    as_answer,
    constant,
)
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import Comprehension, Part, Place, Step

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_MOST_STEPS = 6


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
            ast.BinOp: self._operation,
        }

    def evaluate(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None = None) -> Effect:
        """Return the bound of an aspect of the value of ``node``.

        Args:
            node: the expression.
            place: where it is evaluated.
            aspect: what is asked.
            about: the quantity on which the result may be an effect; any other yields a constant.
        """
        bounds = self._bounds
        if not bounds.may_go_on():
            return UNBOUNDED
        bounds.depth += 1
        handler = self._handlers.get(node.__class__)
        if handler is not None:
            effect = handler(node, place, aspect, about)
        elif aspect.path:
            effect = self._part(node, place, aspect, about)
        elif aspect.measure is Measure.LENGTH or aspect.measure is Measure.SHORTNESS:
            effect = self._length(node, place, aspect, about)
        elif aspect.measure is Measure.UNORDERED:
            effect = constant(1) if isinstance(node, ast.Set | ast.SetComp) else UNBOUNDED
        else:
            effect = bounds.numbers.evaluate(node, place, aspect, about)
        bounds.depth -= 1
        return as_answer(effect, aspect)

    def inside(self, node: Comprehension, place: Place) -> Place:
        """Return the place in which a comprehension at ``place`` evaluates its items."""
        return Place(self._bounds.survey.scopes[node], place.block, place.index, place)

    # Whatever is asked

    def _same(self, node: ast.Await | ast.NamedExpr, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        return self.evaluate(node.value, place, aspect, about)

    def _name(self, node: ast.Name, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        scope = place.scope.resolve(node.id)
        if scope is None or len(aspect.path) > _MOST_STEPS:
            return UNBOUNDED
        query = Query(scope, node.id, aspect)
        return NOTHING if query == about else constant(self._bounds.variable(query, place))

    def _choice(self, node: ast.IfExp, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        joined = constant(NEVER)
        for branch, holds in ((node.body, True), (node.orelse, False)):
            effect = self.evaluate(branch, place, aspect, about)
            scope = place.scope.resolve(branch.id) if isinstance(branch, ast.Name) else None
            if effect.base == INF and isinstance(branch, ast.Name) and scope is not None:
                query = Query(scope, branch.id, aspect)
                effect = constant(self._bounds.flow.limits.limit(node.test, Asked(query, place), holds=holds))
            joined = joined.join(effect)
        return joined

    def _any_of(self, node: ast.BoolOp, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        return self._join(node.values, place, aspect, about)

    def _join(self, nodes: Iterable[ast.expr], place: Place, aspect: Aspect, about: Query | None) -> Effect:
        joined = constant(NEVER)
        for node in nodes:
            joined = joined.join(self.evaluate(node, place, aspect, about))
        return joined

    def _subscript(self, node: ast.Subscript, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        index = node.slice
        if not isinstance(index, ast.Slice):
            return self.evaluate(node.value, place, aspect.under(_key(index)), about)
        if aspect.path:
            step = aspect.path[0] if aspect.path[0] is Part.EACH else Part.ANY
            return self.evaluate(node.value, place, aspect.inside().under(step), about)
        if aspect == LENGTH:
            whole = self.evaluate(node.value, place, aspect, about).then(self._bounds.numbers.skipped(index, place))
            return whole.least(constant(self._bounds.numbers.slice(index, place)))
        return constant(0) if aspect == SHORTNESS else UNBOUNDED  # a slice is never a set

    def _operation(self, node: ast.BinOp, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        if aspect.path and not isinstance(aspect.path[0], Part | str):  # which side an index means is not known
            aspect = aspect.inside().under(Part.ANY)

        def side(operand: ast.expr) -> Callable[[Measure], Effect]:
            def bound(measure: Measure) -> Effect:
                return self.evaluate(operand, place, aspect.of(measure), about if measure is aspect.measure else None)

            return bound

        return self._bounds.numbers.operate(node.op, side(node.left), side(node.right), aspect)

    # Lengths

    def _length(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return self._display(node, place, aspect, about)
            case ast.Constant(value=str() | bytes() as text):
                return constant(len(text) if aspect == LENGTH else -len(text))
            case ast.Constant(value=None):
                return constant(0)
        if aspect == SHORTNESS:
            return constant(0)
        match node:
            case ast.Dict():
                total = constant(sum(key is not None for key in node.keys))
                for key, value in zip(node.keys, node.values, strict=True):
                    if key is None:
                        total = total.plus(self.evaluate(value, place, aspect, about))
                return total
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = self.evaluate(node.generators[0].iter, place, LENGTH, about)
                return first if len(node.generators) == 1 else constant(self._bounds.loops.comprehension(node, place))
        return UNBOUNDED

    def _display(
        self, node: ast.List | ast.Tuple | ast.Set, place: Place, aspect: Aspect, about: Query | None
    ) -> Effect:
        one = constant(1 if aspect == LENGTH else -1)
        total = constant(0)
        for item in node.elts:
            if isinstance(item, ast.Starred):
                total = total.plus(self.evaluate(item.value, place, aspect, about))
            elif aspect == LENGTH or not isinstance(node, ast.Set):  # equal items of a set are one
                total = total.plus(one)
        return total

    # What lies inside a value

    def _part(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        step = aspect.path[0]
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return self._item(node, place, aspect, about)
            case ast.Dict():
                return self._entry(node, place, aspect, about)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.evaluate(node.elt, self.inside(node, place), aspect.inside())
            case ast.DictComp():
                inner = node.key if step is Part.EACH else node.value
                return self.evaluate(inner, self.inside(node, place), aspect.inside())
            case ast.Constant(value=str() | bytes()) if aspect.inside() in {LENGTH, SHORTNESS}:
                return constant(1 if aspect.measure is Measure.LENGTH else 0)  # a character
        return UNBOUNDED

    def _item(self, node: ast.List | ast.Tuple | ast.Set, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        step = aspect.path[0]
        plain = not any(isinstance(item, ast.Starred) for item in node.elts)
        if plain and isinstance(step, int) and step < len(node.elts):
            return self._held(node.elts[step], place, aspect.inside(), about)
        joined = constant(NEVER)
        for item in node.elts:
            if isinstance(item, ast.Starred):
                effect = self.evaluate(item.value, place, aspect.inside().under(Part.EACH), about)
            else:
                effect = self._held(item, place, aspect.inside(), about)
            joined = joined.join(effect)
        return joined

    def _entry(self, node: ast.Dict, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        step = aspect.path[0]
        joined = constant(NEVER)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                joined = joined.join(self.evaluate(value, place, aspect, about))
            elif step is Part.EACH:
                joined = joined.join(self.evaluate(key, place, aspect.inside(), about))
            elif _may_be(key, step):
                joined = joined.join(self._held(value, place, aspect.inside(), about))
        return joined

    def _held(self, node: ast.expr, place: Place, aspect: Aspect, about: Query | None) -> Effect:
        """Return the bound of a value that a container holds, which may have grown since it was put there."""
        effect = self.evaluate(node, place, aspect, about)
        if aspect == LENGTH:
            return effect.plus(constant(self._bounds.aliases.growth_inside_containers()))
        return effect


def _key(index: ast.expr) -> Step:
    match index:
        case ast.Constant(value=int() | str() as key):
            return key
    return Part.ANY


def _may_be(key: ast.expr, step: Step) -> bool:
    return not (isinstance(key, ast.Constant) and isinstance(step, int | str)) or key.value == step
