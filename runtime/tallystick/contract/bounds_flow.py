"""What a variable's bound is at a place, from the code that runs before it (contract.md, section 4, R03 and R05).

The statements between a function's entry and the place are folded into one ``Effect`` on the variable, backwards
from the place until a value is certain. Structured control flow makes that exact enough: branches join, loop bodies
repeat, jumps carry their effect to where they land, a condition that must have held caps the bound.

Reaching definitions with a fixed point were tried first: they count each append of an if and of its else, and square
the result in a loop.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.contract.bounds_effect import INF, NEVER, NOTHING, UNBOUNDED, Effect, Measure, constant, known
from tallystick.contract.bounds_tests import Limits
from tallystick.contract.scopes import Block, Definition, Kind, Part, Place, Scope, Steps

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds


class Query(NamedTuple):
    """A quantity: a measure of what lies at ``path`` inside the value of a variable."""

    scope: Scope
    name: str
    measure: Measure
    path: Steps = ()


class Outcome(NamedTuple):
    """The effect of code by how it ends; None where it cannot end so. ``during``: wherever it may be cut off."""

    normal: Effect | None
    breaks: Effect | None
    continues: Effect | None
    during: Effect


_PASSES = Outcome(NOTHING, None, None, NOTHING)


_SIMPLE = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.FunctionDef, ast.AsyncFunctionDef})


class Variable:
    """Where one variable of a function is set or changed, by statement."""

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


class Flow:
    """Effects of statements on variables, and what follows for a place."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self.limits = Limits(bounds)
        self._variables: dict[tuple[Scope, str], Variable] = {}
        self._control: dict[ast.stmt, Outcome] = {}
        self._assumed: dict[ast.stmt, tuple[ast.expr, bool]] = {}
        self._holding_assumed: set[tuple[Block, int]] = set()
        self._handlers: dict[type[ast.stmt], Callable[[Query | None, Any], Outcome]] = {
            ast.If: self._if,
            ast.While: self._loop,
            ast.For: self._loop,
            ast.AsyncFor: self._loop,
            ast.Try: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Match: self._match,
            ast.Return: lambda _query, _statement: Outcome(None, None, None, NOTHING),
            ast.Raise: lambda _query, _statement: Outcome(None, None, None, NOTHING),
            ast.Break: lambda _query, _statement: Outcome(None, NOTHING, None, NOTHING),
            ast.Continue: lambda _query, _statement: Outcome(None, None, NOTHING, NOTHING),
        }

    def variable(self, scope: Scope, name: str) -> Variable:
        """Return where the variable is set or changed."""
        key = scope, name
        if key not in self._variables:
            self._variables[key] = Variable(scope, name)
        return self._variables[key]

    def before(self, query: Query, place: Place) -> Effect:
        """Return the effect of everything in the function that runs before the statement of ``place``."""
        effect = self._expressions(query, place.block, place.index)
        block, index = place.block, place.index
        touched = self.variable(query.scope, query.name).touched
        while not effect.is_constant:
            statements = block.statements
            for earlier in range(min(index, len(statements)) - 1, -1, -1):
                if statements[earlier].__class__ in _SIMPLE and (block, earlier) not in touched:
                    continue
                step = self.statement(query, block, earlier).normal
                if step is None:
                    return constant(NEVER)  # the place cannot be reached
                effect = step.then(effect)
                if effect.is_constant:
                    return effect
            effect = self.entry(query, block).then(effect)
            if block.owner is None:
                break
            effect = self._into(query, block, block.owner).then(effect)
            block, index = block.owner.block, block.owner.index
        return effect

    def round(self, query: Query, loop: ast.stmt) -> Effect | None:
        """Return the effect of one round of a loop on the rounds after it; None if there is never a second one."""
        body = self._blocks(loop, "body")[0]
        outcome = self.block(query, body)
        return _either(
            _before(self.head(query, loop), outcome.normal), _before(self.head(query, loop), outcome.continues)
        )

    def block(self, query: Query | None, block: Block) -> Outcome:
        """Return the effect of a block, from its first statement on."""
        normal: Effect | None = NOTHING
        breaks: Effect | None = None
        continues: Effect | None = None
        during = NOTHING
        touched = () if query is None else self.variable(query.scope, query.name).touched
        for index, statement in enumerate(block.statements):
            if statement.__class__ in _SIMPLE and (block, index) not in touched and statement not in self._assumed:
                continue
            assert normal is not None
            outcome = self.statement(query, block, index)
            breaks = _either(breaks, _before(normal, outcome.breaks))
            continues = _either(continues, _before(normal, outcome.continues))
            during = during.join(normal.then(outcome.during))
            normal = _before(normal, outcome.normal)
            if normal is None:
                break
        return Outcome(normal, breaks, continues, during)

    @contextmanager
    def assuming(self, assignments: list[tuple[Place, ast.expr, bool]]) -> Iterator[None]:
        """Look only at what leads to another round: behind each assignment its value must hold, or must not."""
        for place, value, holds in assignments:
            assert place.statement is not None
            self._assumed[place.statement] = (value, holds)
            self._holding_assumed.add((place.block, place.index))
            self._holding_assumed.update((owner.block, owner.index) for _, owner in place.owners())
        try:
            yield
        finally:
            self._assumed.clear()
            self._holding_assumed.clear()

    @property
    def is_assuming(self) -> bool:
        """Whether only a part of the paths is looked at now, so that results are not to be kept."""
        return bool(self._assumed)

    def statement(self, query: Query | None, block: Block, index: int) -> Outcome:
        """Return the effect of one statement; of a query of None, only how it can end."""
        statement = block.statements[index]
        key = block, index
        if query is not None and key not in self.variable(query.scope, query.name).touched:
            if key in self._holding_assumed:
                return self._compute(query, block, index, statement)
            if isinstance(statement, ast.If | ast.Assert) and self.limits.mentions(statement.test, query):
                return self._compute(query, block, index, statement)
            query = None
        if query is None:
            known = self._control.get(statement)
            if known is None:
                known = self._control[statement] = self._compute(None, block, index, statement)
            return known
        return self._compute(query, block, index, statement)

    def entry(self, query: Query | None, block: Block) -> Effect:
        """Return the effect of entering a block: parameters, loop targets and captures get their values."""
        return NOTHING if query is None else self._own(query, block, -1)

    # What a definition does

    def _own(self, query: Query, block: Block, index: int) -> Effect:
        effect = NOTHING
        for definition in self.variable(query.scope, query.name).at.get((block, index), ()):
            step = self.effect(query, definition)
            effect = effect.then(step if is_certain(definition) else step.join(NOTHING))
        return effect

    def _expressions(self, query: Query, block: Block, index: int) -> Effect:
        """Return what assignments inside the statement's own expressions may have done already."""
        effect = NOTHING
        for definition in self.variable(query.scope, query.name).at.get((block, index), ()):
            if definition.kind is Kind.WALRUS:
                effect = effect.then(self.effect(query, definition).join(NOTHING))
        return effect

    def effect(self, query: Query, definition: Definition) -> Effect:
        """Return what one definition or change does to the quantity."""
        return known(self._effect(query, definition), query.measure)

    def _effect(self, query: Query, definition: Definition) -> Effect:
        bounds, value, place = self._bounds, definition.value, definition.place
        scope, name, measure, path = query
        match definition.kind:
            case Kind.ASSIGN | Kind.WALRUS if value is not None:
                return bounds.values.evaluate(value, place, measure, definition.path + path, query)
            case Kind.TARGET if value is not None:
                return bounds.values.evaluate(value, place.evaluated_at, measure, definition.path + path)
            case Kind.REST if value is not None:
                if measure is Measure.SHORTNESS and not path:
                    return constant(0)
                inner = (Part.ANY, *path[1:]) if path and isinstance(path[0], int) else path
                return bounds.values.evaluate(value, place.evaluated_at, measure, definition.path + inner)
            case Kind.AUGMENT if value is not None:
                assert isinstance(definition.node, ast.AugAssign)
                return bounds.values.operate(
                    definition.node.op,
                    lambda asked: (
                        NOTHING
                        if asked is measure
                        else constant(bounds.variable(Query(scope, name, asked, path), place))
                    ),
                    lambda asked: bounds.values.evaluate(value, place, asked, path, query),
                    measure,
                    path,
                )
            case Kind.CHANGE:
                return bounds.changes.effect(query, definition)
            case Kind.PARAMETER:
                return constant(bounds.callers.parameter(scope, name, measure, path))
            case _:
                return UNBOUNDED

    # Compound statements

    def _blocks(self, statement: ast.stmt, *roles: str) -> list[Block]:
        return [block for block in self._bounds.survey.blocks.get(statement, ()) if block.role in roles]

    def _compute(self, query: Query | None, block: Block, index: int, statement: ast.stmt) -> Outcome:
        handler = self._handlers.get(statement.__class__)
        if isinstance(statement, ast.Assert):
            outcome = self._assert(query, statement, block, index)
        else:
            outcome = _PASSES if handler is None else handler(query, statement)
        if query is None:
            return outcome
        own = self._own(query, block, index)
        if statement in self._assumed:
            outcome = self._another_round(query, block, index, *self._assumed[statement])
        return outcome if own is NOTHING else _sequence(own, outcome)

    def _another_round(self, query: Query, block: Block, index: int, value: ast.expr, holds: bool) -> Outcome:  # noqa: FBT001 - a pair from a table
        if isinstance(value, ast.Constant) and bool(value.value) is not holds:
            return Outcome(None, None, None, NOTHING)
        return Outcome(self._limit(query, value, block, index, holds=holds), None, None, NOTHING)

    def _assert(self, query: Query | None, statement: ast.Assert, block: Block, index: int) -> Outcome:
        return Outcome(self._limit(query, statement.test, block, index, holds=True), None, None, NOTHING)

    def _with(self, query: Query | None, statement: ast.With | ast.AsyncWith) -> Outcome:
        body = self._blocks(statement, "body")[0]
        return _sequence(self.entry(query, body), self.block(query, body))

    def _limit(self, query: Query | None, test: ast.expr, block: Block, index: int, *, holds: bool) -> Effect:
        if query is None:
            return NOTHING
        limit = self.limits.limit(test, query, Place(query.scope, block, index), holds=holds)
        return NOTHING if limit == INF else constant(limit)

    def _if(self, query: Query | None, statement: ast.If) -> Outcome:
        owner = self._blocks(statement, "body")[0].owner
        assert owner is not None
        outcomes = [
            _sequence(
                self._limit(query, statement.test, owner.block, owner.index, holds=role == "body"),
                self.block(query, branch[0]) if (branch := self._blocks(statement, role)) else _PASSES,
            )
            for role in ("body", "orelse")
        ]
        return _join(outcomes)

    def head(self, query: Query | None, loop: ast.stmt) -> Effect:
        """Return the effect of beginning a round: the target gets its value, or the test held."""
        body = self._blocks(loop, "body")[0]
        if not isinstance(loop, ast.While):
            return self.entry(query, body)
        if query is None:
            return NOTHING
        return self.test(query, loop).then(self._limit(query, loop.test, body, 0, holds=True))

    def test(self, query: Query, loop: ast.stmt) -> Effect:
        """Return the effect of evaluating the test of a ``while``, whatever it says."""
        return self._own(query, self._blocks(loop, "test")[0], 0) if isinstance(loop, ast.While) else NOTHING

    def _loop(self, query: Query | None, loop: ast.While | ast.For | ast.AsyncFor) -> Outcome:
        head, body = self.head(query, loop), self.block(query, self._blocks(loop, "body")[0])
        rounds = self._rounds(query, loop, head, body)
        leave: Effect | None = rounds
        if isinstance(loop, ast.While):
            if isinstance(loop.test, ast.Constant) and loop.test.value:
                leave = None
            elif query is not None:
                test = self._blocks(loop, "test")[0]
                leave = rounds.then(self.test(query, loop)).then(self._limit(query, loop.test, test, 0, holds=False))
        orelse = self.block(query, self._blocks(loop, "orelse")[0])
        inside = rounds.then(head)
        return Outcome(
            _either(_before(leave, orelse.normal), _before(inside, body.breaks)),
            _before(leave, orelse.breaks),
            _before(leave, orelse.continues),
            NOTHING.join(inside.then(body.during)).join(NOTHING if leave is None else leave.then(orelse.during)),
        )

    def _rounds(self, query: Query | None, loop: ast.stmt, head: Effect, body: Outcome) -> Effect:
        """Return the effect of the rounds before any one round."""
        again = _before(head, _either(body.normal, body.continues))
        if again is None or query is None:
            return NOTHING
        return again.repeated(lambda: self._bounds.loops.rounds(loop))

    def _try(self, query: Query | None, statement: ast.Try) -> Outcome:
        body = self.block(query, self._blocks(statement, "body")[0])
        outcomes = [
            body._replace(normal=None),
            _sequence(body.normal, self.block(query, self._blocks(statement, "orelse")[0])),
        ]
        for handler in self._blocks(statement, "handler"):
            entered = body.during.then(self.entry(query, handler))
            outcomes.append(_sequence(entered, self.block(query, handler)))
        tried = _join(outcomes)
        last = self.block(query, self._blocks(statement, "finalbody")[0])
        return Outcome(
            _before(tried.normal, last.normal),
            _either(_before(tried.breaks, last.normal), _before(tried.during, last.breaks)),
            _either(_before(tried.continues, last.normal), _before(tried.during, last.continues)),
            tried.during.join(tried.during.then(last.during)),
        )

    def _match(self, query: Query | None, statement: ast.Match) -> Outcome:
        cases = self._blocks(statement, "case")
        outcomes = [_sequence(self.entry(query, case), self.block(query, case)) for case in cases]
        if not any(_always_matches(case) for case in statement.cases):
            outcomes.append(_PASSES)
        return _join(outcomes)

    def _into(self, query: Query, block: Block, owner: Place) -> Effect:
        """Return the effect between the statement that owns a block and the block's first statement."""
        statement = owner.statement
        own = self._own(query, owner.block, owner.index)
        match statement, block.role:
            case ast.If(), role:
                return own.then(self._limit(query, statement.test, owner.block, owner.index, holds=role == "body"))
            case ast.While() | ast.For() | ast.AsyncFor(), role:
                head, body = self.head(query, statement), self.block(query, self._blocks(statement, "body")[0])
                rounds = self._rounds(query, statement, head, body)
                if not isinstance(statement, ast.While) or role == "test":
                    return rounds
                return rounds.then(head if role == "body" else self.test(query, statement))
            case ast.Try(), "handler":
                return self.block(query, self._blocks(statement, "body")[0]).during
            case ast.Try(), "orelse":
                return self.block(query, self._blocks(statement, "body")[0]).normal or constant(NEVER)
            case ast.Try(), "finalbody":
                body = self.block(query, self._blocks(statement, "body")[0])
                others = (
                    body.during.then(self.entry(query, part)).then(self.block(query, part).during)
                    for part in self._blocks(statement, "handler", "orelse")
                )
                return _during(body.during, others)
            case _:
                return own


def is_certain(definition: Definition) -> bool:
    """Whether a definition or change happens whenever the expressions of its statement are evaluated to the end."""
    place = definition.place
    if definition.kind is not Kind.WALRUS and not isinstance(definition.node, ast.Call):
        return place.outer is None
    statement = place.statement or (place.block.owner and place.block.owner.statement)
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


def _during(first: Effect, others: Iterable[Effect]) -> Effect:
    for other in others:
        first = first.join(other)
    return first


def _before(first: Effect | None, second: Effect | None) -> Effect | None:
    """Return the effect of two steps of which the first comes first, None if either cannot be."""
    return None if first is None or second is None else first.then(second)


def _either(left: Effect | None, right: Effect | None) -> Effect | None:
    if left is None or right is None:
        return left if right is None else right
    return left.join(right)


def _sequence(first: Effect | None, outcome: Outcome) -> Outcome:
    if first is None:
        return Outcome(None, None, None, constant(NEVER))
    return Outcome(
        _before(first, outcome.normal),
        _before(first, outcome.breaks),
        _before(first, outcome.continues),
        NOTHING.join(first.then(outcome.during)),
    )


def _join(outcomes: list[Outcome]) -> Outcome:
    result = outcomes[0]
    for other in outcomes[1:]:
        result = Outcome(
            _either(result.normal, other.normal),
            _either(result.breaks, other.breaks),
            _either(result.continues, other.continues),
            result.during.join(other.during),
        )
    return result


def _always_matches(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
