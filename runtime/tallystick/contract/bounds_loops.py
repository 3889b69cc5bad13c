"""How often loops go round (contract.md, section 4, R03).

A ``for`` goes round once per item. Beyond that, any loop is capped by a quantity that moves one way in every round
and is stopped by a condition: a counter, the length of a list that grows, a queue that shrinks, wherever in the
round it is tested.
"""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tallystick.contract.bounds_effect import INF, NEVER, Effect, Measure, Number, plus, times
from tallystick.contract.scopes import Block, Comprehension, Kind, Place, Scope

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds
    from tallystick.contract.bounds_flow import Query


class Cap(NamedTuple):
    """A bound on rounds: of the statements of the body behind number ``behind``, -1 for all of them."""

    behind: int
    rounds: Number


Flag: TypeAlias = tuple[Place, ast.expr, bool]
"""An assignment, its value, and whether that must hold for another round."""


class Loops:
    """Bounds of the rounds of loops and comprehensions."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._caps: dict[ast.AST, list[Cap]] = {}
        self._under_way: set[ast.AST] = set()

    def rounds(self, loop: ast.AST, index: int = -1) -> Number:
        """Return how often a loop goes round at most; of the statement ``index`` of its body, if one is given."""
        caps = self._caps.get(loop)
        if caps is None:
            if loop in self._under_way:
                return self._bounds.give_up()
            self._under_way.add(loop)
            self._bounds.may_go_on()
            before, depth = self._bounds.given_up, self._bounds.depth
            self._bounds.depth += 1
            caps = [Cap(-1, INF), *self._compute(loop)]
            self._bounds.depth = depth
            self._under_way.discard(loop)
            if self._bounds.is_final(min(cap.rounds for cap in caps), before):
                self._caps[loop] = caps
        return min(cap.rounds for cap in caps if cap.behind < max(index, 0))

    def repetitions(self, place: Place) -> Number:
        """Return how often a place is executed in one run of its function at most."""
        total, index = self.within_statement(place), place.index
        for block, owner in place.owners():
            statement = owner.statement
            if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
                if block.role == "body":
                    total = times(total, self.rounds(statement, index))
                elif block.role == "test":
                    total = times(total, plus(self.rounds(statement), 1))
            index = owner.index
        return total

    def within_statement(self, place: Place) -> Number:
        """Return how often the comprehensions around a place repeat it."""
        total: Number = 1
        while place.outer is not None:
            node = place.scope.node
            assert isinstance(node, Comprehension)
            place = place.outer
            total = times(total, self.comprehension(node, place))
        return total

    def comprehension(self, node: Comprehension, place: Place) -> Number:
        """Return how many items a comprehension at ``place`` goes through at most."""
        inside = self._bounds.values.inside(node, place)
        total: Number = 1
        for number, generator in enumerate(node.generators):
            total = times(total, self._bounds.number(generator.iter, inside if number else place, Measure.LENGTH))
        return total

    def extends_itself(self, loop: ast.For | ast.AsyncFor, place: Place, *, surely: bool = False) -> bool:
        """Whether a ``for`` may append to the very list it goes through, so that it need not end.

        With ``surely``, only if what it goes through is a list: ``text += "."`` makes another string each time.
        """
        changes = self._bounds.changes
        for scope, name in changes.origins(loop.iter, place):
            query = self._bounds.query(scope, name, Measure.LENGTH)
            for change in (*scope.changes.get(name, ()), *scope.definitions.get(name, ())):
                if change.kind is Kind.AUGMENT:
                    if surely and not changes.is_list(scope, name):
                        continue
                elif change.kind is not Kind.CHANGE:
                    continue
                if change.place.function is place.function and loop in change.place.loops():
                    if self._bounds.flow.effect(query, change).gain > 0:
                        return True
        return False

    def _compute(self, loop: ast.AST) -> Iterator[Cap]:
        body = next(block for block in self._bounds.survey.blocks[loop] if block.role == "body")
        assert body.owner is not None
        place = body.owner
        leaves = loop in self._bounds.survey.leaving
        if leaves:
            ends = self._bounds.flow.block(None, body)
            if ends.normal is None and ends.continues is None:
                yield Cap(-1, 1)  # there is no second round
                return
        if isinstance(loop, ast.For | ast.AsyncFor):
            items = self._bounds.number(loop.iter, place, Measure.LENGTH)
            if items < INF and not self.extends_itself(loop, place):
                yield Cap(-1, items)
                if not leaves:
                    return
            yield from self._stopped_by_index(loop, body, place)
        flags = list(self._flags(loop, body))
        for scope, name, measures in self._candidates(loop, body, flags):
            for measure in measures:
                yield from self._stopped_by(loop, body, place, self._bounds.query(scope, name, measure), flags)

    def _flags(self, loop: ast.AST, body: Block) -> Iterator[Flag]:
        """Yield the assignments in a ``while`` whose value decides, as its test does, whether there is another round.

        That is so for a variable which the loop sets in one place only, or only to constants that end it.
        """
        for name, holds in _flag_names(loop.test) if isinstance(loop, ast.While) else ():
            scope = body.scope
            inside = [one for one in scope.definitions.get(name, ()) if loop in one.place.loops()]
            plain = all(one.kind is Kind.ASSIGN and not one.path and one.place.statement is one.node for one in inside)
            values = [one.value for one in inside if one.value is not None]
            ending = all(isinstance(value, ast.Constant) and bool(value.value) is not holds for value in values)
            if plain and (ending or len(inside) == 1) and not self._bounds.changes.elsewhere(scope, name):
                if all(next(one.place.loops()) is loop for one in inside):
                    yield from ((one.place, value, holds) for one, value in zip(inside, values, strict=True))

    def _stopped_by_index(self, loop: ast.For | ast.AsyncFor, body: Block, place: Place) -> Iterator[Cap]:
        """Yield the caps that follow from a test of the index that a ``range`` or ``enumerate`` counts up."""
        bounds, flow = self._bounds, self._bounds.flow
        name = _index(loop)
        if name is None or not isinstance(loop.iter, ast.Call) or not isinstance(loop.iter.func, ast.Name):
            return
        scope = body.scope
        if place.scope.resolve(loop.iter.func.id) is not None or scope.resolve(name) is not scope:
            return
        if any(loop in one.place.loops() and one.place.index >= 0 for one in scope.definitions[name]):
            return  # it is set to something else in the loop
        upper = bounds.query(scope, name, Measure.UPPER)
        least = flow.entry(upper._replace(measure=Measure.LOWER), body).base
        if least in {INF, NEVER}:
            return
        with bounds.assuming_single_steps(upper, -least):
            for index, statement in enumerate(body.statements):
                after = flow.statement(upper, body, index).normal if isinstance(statement, ast.If) else None
                if after is not None and after.is_constant and after.base < INF:
                    rounds = _count(plus(after.base, least), 1)
                    yield Cap(index, rounds)
                    yield Cap(-1, plus(rounds, 1))

    def _candidates(
        self, loop: ast.AST, body: Block, flags: list[Flag]
    ) -> Iterator[tuple[Scope, str, tuple[Measure, Measure]]]:
        """Yield the variables of the function that the loop tests, as numbers or as lengths."""
        seen = set()
        for test in (*_tests(loop), *(value for _, value, _ in flags)):
            for name, measures in _tested(test):
                scope = body.scope.resolve(name)
                if scope is body.scope and (name, measures) not in seen:
                    seen.add((name, measures))
                    changes = self._bounds.changes
                    if not changes.elsewhere(scope, name):
                        if measures is _NUMBER or not changes.extended_elsewhere(scope, name):
                            yield scope, name, measures

    def _stopped_by(self, loop: ast.AST, body: Block, place: Place, query: "Query", flags: list[Flag]) -> Iterator[Cap]:
        """Yield the caps that follow if the quantity surely grows in each round and is stopped at a limit."""
        bounds, flow = self._bounds, self._bounds.flow
        assert isinstance(loop, ast.stmt)
        opposite = query._replace(measure=query.measure.negated)
        with flow.assuming(flags):
            step = flow.round(opposite, loop)
        if step is None or step.gain > -1 or step.base != NEVER or step.gain == NEVER:
            return
        least = bounds.variable(opposite, place)  # the quantity begins at -least or above
        if query.measure is Measure.LENGTH:
            least = min(least, 0)
        if least in {INF, NEVER}:
            return
        gain = -step.gain
        start = self._single_step_from(query, loop, place) if gain == 1 else None
        with bounds.assuming_single_steps(query, start):
            head = flow.head(query, loop)
        if head.is_constant and head.base < INF:
            tested = flow.test(opposite, loop)
            if tested.base == NEVER:
                yield Cap(-1, _count(plus(plus(head.base, least), tested.gain), gain))
        with bounds.assuming_single_steps(query, None if start is None else plus(start, 1)):
            with flow.assuming(flags):
                whole = flow.round(query, loop)
            if whole is not None and whole.is_constant and whole.base < INF:
                yield Cap(-1, max(_count(plus(whole.base, least), gain), 1))  # the last one need not be finished
            before = flow.head(opposite, loop)
            for index, statement in enumerate(body.statements):
                outcome = flow.statement(opposite, body, index).normal
                if isinstance(statement, ast.If | ast.Assert):
                    after = flow.statement(query, body, index).normal
                    if after is not None and after.is_constant and after.base < INF and before.base == NEVER:
                        rounds = _count(plus(plus(after.base, least), before.gain), gain)
                        yield Cap(index, rounds)
                        yield Cap(-1, plus(rounds, 1))
                if outcome is None:
                    break
                before = before.then(outcome)

    def _single_step_from(self, query: "Query", loop: ast.stmt, place: Place) -> Number | None:
        """Return where a quantity starts, at most, that moves by exactly one in each round; None if it may not."""
        whole = self._bounds.flow.round(query, loop)
        if whole != Effect(1, NEVER):
            return None
        return self._bounds.variable(query, place)


def _count(distance: Number, gain: Number) -> Number:
    """Return how many rounds begin at or below a limit that lies ``distance`` above the start."""
    if distance in {INF, NEVER}:
        return INF if distance == INF else 0
    return max(distance // gain + 1, 0)


def _flag_names(test: ast.expr) -> Iterator[tuple[str, bool]]:
    """Yield the names that must be true, or must not, for a condition to hold."""
    match test:
        case ast.Name(id=name):
            yield name, True
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            yield name, False
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _flag_names(value)


def _index(loop: ast.For | ast.AsyncFor) -> str | None:
    """Return the variable that counts the rounds of a ``for`` over a ``range`` or an ``enumerate``."""
    match loop:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[_] | [_, _])):
            return name
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), _]), iter=ast.Call(func=ast.Name(id="enumerate"))):
            return name
    return None


def _tests(loop: ast.AST) -> Iterator[ast.expr]:
    """Yield the conditions that a loop checks itself, not those of functions defined in it."""
    if isinstance(loop, ast.While):
        yield loop.test
    waiting: list[ast.AST] = list(loop.body) if isinstance(loop, ast.While | ast.For | ast.AsyncFor) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If | ast.Assert):
            yield node.test
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


_NUMBER = (Measure.UPPER, Measure.LOWER)
_LENGTH = (Measure.LENGTH, Measure.SHORTNESS)


def _tested(test: ast.expr) -> Iterator[tuple[str, tuple[Measure, Measure]]]:
    for node in ast.walk(test):
        match node:
            case ast.Name():
                yield node.id, _NUMBER
                yield node.id, _LENGTH
            case ast.NamedExpr():
                yield node.target.id, _NUMBER
