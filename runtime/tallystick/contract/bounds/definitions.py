"""What one definition does to a quantity (contract.md, section 4, R03)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds.effect import (
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
from tallystick.contract.scopes import Block, Definition, Kind, Part, Scope

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds


class Variable:
    """Where one variable of a function is set or changed by the function's own code.

    Attributes:
        at: its definitions and changes, by the block and the index of their statement.
        touched: those statements, and the statements around them.
    """

    __slots__ = ("at", "touched")

    def __init__(self, scope: Scope, name: str) -> None:
        self.at: dict[tuple[Block, int], list[Definition]] = {}
        self.touched: set[tuple[Block, int]] = set()
        for definition in (*scope.definitions.get(name, ()), *scope.changes.get(name, ())):
            place = definition.place
            if place.function is not scope:
                continue
            self.at.setdefault((place.block, place.index), []).append(definition)
            self.touched.add((place.block, place.index))
            self.touched.update((owner.block, owner.index) for _, owner in place.owners())


class Definitions:
    """Effects of definitions and changes."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def effect(self, query: Query, definition: Definition) -> Effect:
        """Return what one definition or change does to the quantity."""
        return as_answer(self._effect(query, definition), query.aspect)

    def _effect(self, query: Query, definition: Definition) -> Effect:
        bounds, value, place, aspect = self._bounds, definition.value, definition.place, query.aspect
        match definition.kind:
            case Kind.ASSIGN | Kind.WALRUS if value is not None:
                return bounds.values.evaluate(value, place, aspect.under(*definition.path), query)
            case Kind.TARGET if value is not None:
                return bounds.values.evaluate(value, place.evaluated_at, aspect.under(*definition.path))
            case Kind.REST if value is not None:
                return self._rest(value, definition, aspect)
            case Kind.AUGMENT if value is not None:
                return self._augment(query, definition, value)
            case Kind.CHANGE:
                return bounds.changes.effect(query, definition)
            case Kind.PARAMETER:
                return constant(bounds.arguments.parameter(query.scope, query.name, aspect))
        return UNBOUNDED

    def _rest(self, value: ast.expr, definition: Definition, aspect: Aspect) -> Effect:
        """Return the bound of a starred target, which gets some of the items of what is unpacked."""
        if aspect == SHORTNESS:
            return constant(0)
        if aspect.path and isinstance(aspect.path[0], int):
            aspect = aspect.inside().under(Part.ANY)
        return self._bounds.values.evaluate(value, definition.place.evaluated_at, aspect.under(*definition.path))

    def _augment(self, query: Query, definition: Definition, value: ast.expr) -> Effect:
        bounds, place, node = self._bounds, definition.place, definition.node
        assert isinstance(node, ast.AugAssign)

        def before(measure: Measure) -> Effect:
            asked = query.aspect.of(measure)
            return NOTHING if asked == query.aspect else constant(bounds.variable(query._replace(aspect=asked), place))

        def added(measure: Measure) -> Effect:
            return bounds.values.evaluate(value, place, query.aspect.of(measure), query)

        return bounds.numbers.operate(node.op, before, added, query.aspect)


def is_certain(definition: Definition) -> bool:
    """Whether a definition or change happens whenever the expressions of its statement are evaluated to the end."""
    place = definition.place
    if definition.kind is not Kind.WALRUS and not isinstance(definition.node, ast.Call):
        return place.outer is None
    statement = place.statement
    if statement is None and place.block.owner is not None:
        statement = place.block.owner.statement  # the test of a while
    waiting: list[ast.AST] = [] if statement is None else [statement]
    while waiting:
        node = waiting.pop()
        if node is definition.node:
            return True
        match node:
            case ast.BoolOp():
                waiting.append(node.values[0])
            case ast.IfExp():
                waiting.append(node.test)
            case ast.Compare():
                waiting += (node.left, node.comparators[0])
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pass
            case ast.expr() | ast.keyword():
                waiting += ast.iter_child_nodes(node)
            case _:
                waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return False
