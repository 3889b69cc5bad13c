"""What caps the rounds of a loop (contract.md, section 4, R03).

A ``for`` goes round once per item. Beyond that, any loop is capped by a quantity that moves one way in every round
and is stopped by a condition: a counter, the length of a list that grows, a queue that shrinks, wherever in the
round it is tested.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tallystick.contract.bounds.effect import (
    INF,
    LENGTH,
    LOWER,
    NEVER,
    SHORTNESS,
    UPPER,
    Effect,
    Number,
    plus,
)
from tallystick.contract.bounds.flow import Condition
from tallystick.contract.bounds.outcome import Query, sequence
from tallystick.contract.scopes import Block, Kind, Loop, Place

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_GROWS = Effect(1, NEVER)


class Cap(NamedTuple):
    """A bound on rounds: of the statements of the body behind number ``behind``, -1 for all of them."""

    behind: int
    rounds: Number


class Caps:
    """Finds what caps a loop."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds

    def of(self, loop: Loop) -> Iterator[Cap]:
        """Yield the caps of a loop that can be proved."""
        body = self._bounds.survey.block(loop)
        place = body.owner
        assert place is not None
        leaves = loop in self._bounds.survey.leaving
        if leaves:
            ends = self._bounds.flow.block(None, body)
            if ends.leaves:
                yield Cap(-1, 1)  # there is no second round
                return
        if isinstance(loop, ast.For | ast.AsyncFor):
            items = self._bounds.number(loop.iter, place, LENGTH)
            if items < INF and not self._bounds.loops.extends_itself(loop, place):
                yield Cap(-1, items)
                if not leaves:
                    return
            yield from self._by_index(loop, body, place)
        conditions = list(self._conditions(loop, body))
        for query in self._tested_quantities(loop, body, conditions):
            yield from self._by_quantity(loop, body, query, conditions)

    def _by_index(self, loop: ast.For | ast.AsyncFor, body: Block, place: Place) -> Iterator[Cap]:
        """Yield the caps that follow from a test of the index that a ``range`` or ``enumerate`` counts up."""
        name, scope, flow = _index(loop), body.scope, self._bounds.flow
        if name is None or scope.resolve(name) is not scope or not self._is_builtin_call(loop.iter, place):
            return
        if any(loop in set(one.place.loops()) and one.place.index >= 0 for one in scope.definitions[name]):
            return  # it is set to something else in the loop
        query = Query(scope, name, UPPER)
        least = flow.entry(query._replace(aspect=LOWER), body).base
        if least in {INF, NEVER}:
            return
        with flow.assuming_single_steps(query, -least):
            for index, statement in enumerate(body.statements):
                if isinstance(statement, ast.If | ast.Assert):
                    after = flow.statement(query, body, index).normal
                    if after is not None and after.bound < INF:
                        rounds = _count(plus(after.base, least), 1)
                        yield Cap(index, rounds)
                        yield Cap(-1, plus(rounds, 1))

    def _is_builtin_call(self, node: ast.expr, place: Place) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return place.scope.resolve(name) is None
        return False

    def _conditions(self, loop: Loop, body: Block) -> Iterator[Condition]:
        """Yield the assignments in a ``while`` whose value decides, as its test does, whether there is another round.

        That is so for a variable which the loop sets in one place only, or only to constants that end it.
        """
        for name, holds in _flags(loop.test) if isinstance(loop, ast.While) else ():
            scope = body.scope
            inside = [one for one in scope.definitions.get(name, ()) if loop in set(one.place.loops())]
            values = [one.value for one in inside if one.value is not None]
            ending = all(isinstance(value, ast.Constant) and bool(value.value) is not holds for value in values)
            plain = all(one.kind is Kind.ASSIGN and not one.path and one.place.statement is one.node for one in inside)
            direct = all(next(one.place.loops()) is loop for one in inside)
            known = not self._bounds.aliases.elsewhere(scope, name)
            if plain and direct and known and (ending or len(inside) == 1):
                yield from (Condition(one.place, value, holds) for one, value in zip(inside, values, strict=True))

    def _tested_quantities(self, loop: Loop, body: Block, conditions: Sequence[Condition]) -> Iterator[Query]:
        """Yield the quantities that the loop's own conditions test: variables of the function, and their lengths."""
        aliases, scope, seen = self._bounds.aliases, body.scope, set()
        for test in (*_tests(loop), *(condition.value for condition in conditions)):
            for name in _names(test):
                if name in seen or scope.resolve(name) is not scope:
                    continue
                seen.add(name)
                if aliases.elsewhere(scope, name):
                    continue  # others may set it back
                aspects = (
                    (UPPER, LOWER) if aliases.extended_elsewhere(scope, name) else (UPPER, LOWER, LENGTH, SHORTNESS)
                )
                yield from (Query(scope, name, aspect) for aspect in aspects)

    def _by_quantity(self, loop: Loop, body: Block, query: Query, conditions: Sequence[Condition]) -> Iterator[Cap]:
        """Yield the caps that follow if the quantity surely grows in each round and is stopped at a limit."""
        flow = self._bounds.flow
        opposite = query._replace(aspect=query.aspect.negated)
        with flow.ignoring_limits():
            step = flow.round(opposite, loop, conditions)
        if step is None or not NEVER < step.gain <= -1:
            return
        least = self._start(opposite, body)
        if least in {INF, NEVER}:
            return
        gain = -step.gain
        start = self._single_step_from(query, loop, body) if gain == 1 else None
        with flow.assuming_single_steps(query, start):
            head, tested = flow.head(query, loop), flow.test(opposite, loop)
        ends = step.base == NEVER or -step.base > head.bound  # what is not a step up leads beyond the limit
        if head.bound < INF and tested.base == NEVER and ends:
            yield Cap(-1, _count(plus(plus(head.base, least), tested.gain), gain))
        if step.base != NEVER:
            return
        with flow.assuming_single_steps(query, None if start is None else plus(start, 1)):
            whole = flow.round(query, loop, conditions)
            if whole is not None and whole.bound < INF:
                yield Cap(-1, max(_count(plus(whole.base, least), gain), 1))  # the last one need not be finished
            yield from self._by_checks(loop, body, query, least, gain)

    def _by_checks(self, loop: Loop, body: Block, query: Query, least: Number, gain: Number) -> Iterator[Cap]:
        """Yield the caps from conditions at the top of the body, which hold for all that stands behind them."""
        for index, before in enumerate(self._gains(loop, body, query._replace(aspect=query.aspect.negated))):
            if isinstance(body.statements[index], ast.If | ast.Assert) and before.base == NEVER:
                after = self._bounds.flow.statement(query, body, index).normal
                if after is not None and after.bound < INF:
                    rounds = _count(plus(plus(after.base, least), before.gain), gain)
                    yield Cap(index, rounds)
                    yield Cap(-1, plus(rounds, 1))

    def _gains(self, loop: Loop, body: Block, opposite: Query) -> list[Effect]:
        """Return the effect of a round before each statement of the body, as far as they can be reached."""
        effects: list[Effect] = []
        with self._bounds.flow.ignoring_limits():
            before: Effect | None = self._bounds.flow.head(opposite, loop)
            for index in range(len(body.statements)):
                if before is None:
                    break
                effects.append(before)
                before = sequence(before, self._bounds.flow.statement(opposite, body, index).normal)
        return effects

    def _start(self, opposite: Query, body: Block) -> Number:
        """Return the bound of the negated quantity before the first round."""
        assert body.owner is not None
        least = self._bounds.variable(opposite, body.owner)
        return min(least, 0) if opposite.aspect == SHORTNESS else least

    def _single_step_from(self, query: Query, loop: Loop, body: Block) -> Number | None:
        """Return where a quantity starts, at most, that moves by exactly one in each round; None if it may not."""
        assert body.owner is not None
        with self._bounds.flow.ignoring_limits():
            whole = self._bounds.flow.round(query, loop)
        return self._bounds.variable(query, body.owner) if whole == _GROWS else None


def _count(distance: Number, gain: Number) -> Number:
    """Return how many rounds begin at or below a limit that lies ``distance`` above the start."""
    if distance in {INF, NEVER}:
        return INF if distance == INF else 0
    return max(distance // gain + 1, 0)


def _flags(test: ast.expr) -> Iterator[tuple[str, bool]]:
    """Yield the names that must be true, or must not, for a condition to hold."""
    match test:
        case ast.Name(id=name):
            yield name, True
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            yield name, False
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _flags(value)


def _index(loop: ast.For | ast.AsyncFor) -> str | None:
    """Return the variable that counts the rounds of a ``for`` over a ``range`` or an ``enumerate``."""
    match loop:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[_] | [_, _])):
            return name
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), _]), iter=ast.Call(func=ast.Name(id="enumerate"))):
            return name
    return None


def _tests(loop: Loop) -> Iterator[ast.expr]:
    """Yield the conditions that a loop checks itself, not those of functions defined in it."""
    if isinstance(loop, ast.While):
        yield loop.test
    waiting: list[ast.AST] = list(loop.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If | ast.Assert):
            yield node.test
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def _names(test: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(test) if isinstance(node, ast.Name))
