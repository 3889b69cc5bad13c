"""What a variable's bound is at a place, from the code that runs before it (contract.md, section 4, R03 and R05).

The statements between a function's entry and the place are folded into one ``Effect`` on the variable, backwards
from the place until a value is certain. Structured control flow makes that exact enough: branches join, loop bodies
repeat, jumps carry their effect to where they land, a condition that must have held caps the bound.

Reaching definitions with a fixed point were tried first: they count each append of an if and of its else, and square
the result in a loop.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.contract.bounds.conditions import Asked, Limits
from tallystick.contract.bounds.definitions import Variable, is_certain
from tallystick.contract.bounds.effect import INF, NEVER, NOTHING, Effect, Number, constant
from tallystick.contract.bounds.outcome import (
    BREAKS,
    CONTINUES,
    LEAVES,
    PASSES,
    UNKNOWN,
    Outcome,
    Query,
    either,
    sequence,
)
from tallystick.contract.scopes import Block, Kind, Loop, Place, Scope

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_SIMPLE = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.FunctionDef, ast.AsyncFunctionDef})


class Condition(NamedTuple):
    """An assignment in a loop whose value must hold, or must not, for the loop to go round once more."""

    place: Place
    value: ast.expr
    holds: bool


class Flow:
    """Effects of statements on variables, and what follows for a place."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self.limits = Limits(bounds)
        self._variables: dict[tuple[Scope, str], Variable] = {}
        self._control: dict[ast.stmt, Outcome] = {}
        self._conditions: dict[ast.stmt, Condition] = {}
        self._holding_conditions: set[tuple[Block, int]] = set()
        self._ignores_limits = False
        self._stepping: dict[Query, Number] = {}
        self._handlers: dict[type[ast.stmt], Callable[[Query | None, Any], Outcome]] = {
            ast.If: self._if,
            ast.While: self._loop,
            ast.For: self._loop,
            ast.AsyncFor: self._loop,
            ast.Try: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Match: self._match,
            ast.Return: lambda _query, _statement: LEAVES,
            ast.Raise: lambda _query, _statement: LEAVES,
            ast.Break: lambda _query, _statement: BREAKS,
            ast.Continue: lambda _query, _statement: CONTINUES,
        }

    def variable(self, scope: Scope, name: str) -> Variable:
        """Return where the variable is set or changed."""
        key = scope, name
        if key not in self._variables:
            self._variables[key] = Variable(scope, name)
        return self._variables[key]

    def before(self, query: Query, place: Place) -> Effect:
        """Return the effect of everything in the function that runs before the statement of ``place``."""
        block, index = place.block, place.index
        variable = self.variable(query.scope, query.name)
        effect = self._inside_expressions(query, block, index)
        while not effect.is_constant:
            statements = block.statements
            for earlier in range(min(index, len(statements)) - 1, -1, -1):
                if statements[earlier].__class__ in _SIMPLE and (block, earlier) not in variable.touched:
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
            owner = block.owner
            effect = self._into(query, block, owner).then(effect)
            block, index = owner.block, owner.index
        return effect

    def round(self, query: Query, loop: Loop, conditions: Sequence[Condition] = ()) -> Effect | None:
        """Return the effect of one round of a loop on the next one, None if there is never a second one.

        Args:
            query: the quantity.
            loop: the loop.
            conditions: what is known to hold if the loop goes round once more.
        """
        with self.assuming(conditions):
            outcome = self.block(query, self._bounds.survey.block(loop))
        return sequence(self.head(query, loop), either(outcome.normal, outcome.continues))

    @contextmanager
    def assuming(self, conditions: Sequence[Condition]) -> Iterator[None]:
        """Look only at the paths on which the conditions hold."""
        saved = self._conditions, self._holding_conditions
        self._conditions, self._holding_conditions = {}, set()
        for condition in conditions:
            place = condition.place
            assert place.statement is not None
            self._conditions[place.statement] = condition
            self._holding_conditions.add((place.block, place.index))
            self._holding_conditions.update((owner.block, owner.index) for _, owner in place.owners())
        yield
        self._conditions, self._holding_conditions = saved

    @contextmanager
    def ignoring_limits(self, *, ignored: bool = True) -> Iterator[None]:
        """Look at what statements do alone, whatever conditions say of the value before."""
        saved, self._ignores_limits = self._ignores_limits, ignored
        yield
        self._ignores_limits = saved

    @contextmanager
    def assuming_single_steps(self, query: Query, start: Number | None) -> Iterator[None]:
        """Take a quantity to move by exactly one between two looks, from ``start`` at most; None assumes nothing."""
        saved, self._stepping = self._stepping, {} if start is None else {query: start}
        yield
        self._stepping = saved

    @contextmanager
    def assuming_nothing(self) -> Iterator[None]:
        """Look at what holds in any case."""
        saved, self._stepping = self._stepping, {}
        with self.assuming(()), self.ignoring_limits(ignored=False):
            yield
        self._stepping = saved

    @property
    def is_assuming(self) -> bool:
        """Whether what is found now holds under assumptions only."""
        return self._ignores_limits or bool(self._conditions) or bool(self._stepping)

    def block(self, query: Query | None, block: Block) -> Outcome:
        """Return the effect of a block, from its first statement on; of a query of None, only how it can end."""
        normal: Effect | None = NOTHING
        breaks: Effect | None = None
        continues: Effect | None = None
        during = NOTHING
        touched = frozenset() if query is None else self.variable(query.scope, query.name).touched
        for index, statement in enumerate(block.statements):
            if statement.__class__ in _SIMPLE and (block, index) not in touched and statement not in self._conditions:
                continue
            assert normal is not None
            outcome = self.statement(query, block, index)
            breaks = either(breaks, sequence(normal, outcome.breaks))
            continues = either(continues, sequence(normal, outcome.continues))
            during = during.join(normal.then(outcome.during))
            normal = sequence(normal, outcome.normal)
            if normal is None:
                break
        return Outcome(normal, breaks, continues, during)

    def statement(self, query: Query | None, block: Block, index: int) -> Outcome:
        """Return the effect of one statement; of a query of None, only how it can end."""
        statement, key = block.statements[index], (block, index)
        if query is not None and key not in self.variable(query.scope, query.name).touched:
            mentioned = isinstance(statement, ast.If | ast.Assert) and self.limits.mentions(statement.test, query)
            if not mentioned and key not in self._holding_conditions:
                query = None
        if query is not None:
            return self._compute(query, block, index)
        known = self._control.get(statement)
        if known is None:
            known = self._compute(None, block, index)
            if known is not UNKNOWN:
                self._control[statement] = known
        return known

    def entry(self, query: Query | None, block: Block) -> Effect:
        """Return the effect of entering a block: parameters, loop targets and captures get their values."""
        return NOTHING if query is None else self._own(query, block, -1)

    def head(self, query: Query | None, loop: Loop) -> Effect:
        """Return the effect of beginning a round: the target gets its value, or the test held."""
        body = self._bounds.survey.block(loop)
        if not isinstance(loop, ast.While):
            return self.entry(query, body)
        return self.test(query, loop).then(self._limit(query, loop.test, Place(body.scope, body, 0), holds=True))

    def test(self, query: Query | None, loop: Loop) -> Effect:
        """Return the effect of evaluating the test of a ``while``, whatever it says."""
        if query is None or not isinstance(loop, ast.While):
            return NOTHING
        return self._own(query, self._bounds.survey.block(loop, "test"), 0)

    # Single statements

    def _own(self, query: Query, block: Block, index: int) -> Effect:
        effect = NOTHING
        for definition in self.variable(query.scope, query.name).at.get((block, index), ()):
            step = self._bounds.definitions.effect(query, definition)
            effect = effect.then(step if is_certain(definition) else step.join(NOTHING))
        return effect

    def _inside_expressions(self, query: Query, block: Block, index: int) -> Effect:
        """Return what assignments inside the statement's own expressions may have done already."""
        effect = NOTHING
        for definition in self.variable(query.scope, query.name).at.get((block, index), ()):
            if definition.kind is Kind.WALRUS:
                effect = effect.then(self._bounds.definitions.effect(query, definition).join(NOTHING))
        return effect

    def _compute(self, query: Query | None, block: Block, index: int) -> Outcome:
        if not self._bounds.may_go_on():
            return UNKNOWN
        statement = block.statements[index]
        handler = self._handlers.get(statement.__class__)
        if handler is not None:
            outcome = handler(query, statement)
        elif isinstance(statement, ast.Assert):
            limit = self._limit(query, statement.test, Place(block.scope, block, index), holds=True)
            outcome = PASSES.behind(limit)
        else:
            outcome = PASSES
        if query is None:
            return outcome
        if statement in self._conditions:
            outcome = self._another_round(query, self._conditions[statement])
        return outcome.behind(self._own(query, block, index))

    def _another_round(self, query: Query, condition: Condition) -> Outcome:
        value = condition.value
        if isinstance(value, ast.Constant) and bool(value.value) is not condition.holds:
            return LEAVES
        return PASSES.behind(self._limit(query, value, condition.place, holds=condition.holds))

    def _limit(
        self, query: Query | None, test: ast.expr, place: Place, *, holds: bool, else_leaves: bool = True
    ) -> Effect:
        """Return what a condition does to the bound, where the loop is left (or not) if it is otherwise."""
        if query is None or self._ignores_limits:
            return NOTHING
        asked = Asked(query, place, self._stepping.get(query) if else_leaves else None)
        limit = self.limits.limit(test, asked, holds=holds)
        return NOTHING if limit == INF else constant(limit)

    # Compound statements

    def _if(self, query: Query | None, statement: ast.If) -> Outcome:
        body, orelse = self._bounds.survey.blocks[statement]
        place = body.owner
        assert place is not None
        done, other = self.block(query, body), self.block(query, orelse)
        held = self._limit(query, statement.test, place, holds=True, else_leaves=other.leaves)
        failed = self._limit(query, statement.test, place, holds=False, else_leaves=done.leaves)
        return done.behind(held).join(other.behind(failed))

    def _with(self, query: Query | None, statement: ast.With | ast.AsyncWith) -> Outcome:
        body = self._bounds.survey.block(statement)
        return self.block(query, body).behind(self.entry(query, body))

    def _match(self, query: Query | None, statement: ast.Match) -> Outcome:
        cases = self._bounds.survey.blocks[statement]
        first, *others = (self.block(query, case).behind(self.entry(query, case)) for case in cases)
        for other in others:
            first = first.join(other)
        return first if any(map(_always_matches, statement.cases)) else first.join(PASSES)

    def _loop(self, query: Query | None, loop: Loop) -> Outcome:
        survey = self._bounds.survey
        body = self.block(query, survey.block(loop))
        rounds = self._rounds(query, loop, body)
        leave: Effect | None = rounds
        if isinstance(loop, ast.While):
            if isinstance(loop.test, ast.Constant) and loop.test.value:
                leave = None
            else:
                test = survey.block(loop, "test")
                failed = self._limit(query, loop.test, Place(test.scope, test, 0), holds=False)
                leave = rounds.then(self.test(query, loop)).then(failed)
        orelse = self.block(query, survey.block(loop, "orelse")).behind(leave)
        inside = body.behind(rounds.then(self.head(query, loop)))
        return Outcome(
            either(orelse.normal, inside.breaks),
            orelse.breaks,
            orelse.continues,
            NOTHING.join(inside.during).join(orelse.during),
        )

    def _rounds(self, query: Query | None, loop: Loop, body: Outcome) -> Effect:
        """Return the effect of the rounds before any one round."""
        again = sequence(self.head(query, loop), either(body.normal, body.continues))
        if again is None or query is None:
            return NOTHING
        return again.repeated(lambda: self._bounds.loops.rounds(loop))

    def _try(self, query: Query | None, statement: ast.Try) -> Outcome:
        survey = self._bounds.survey
        body = self.block(query, survey.block(statement))
        tried = body._replace(normal=None).join(
            self.block(query, survey.block(statement, "orelse")).behind(body.normal)
        )
        for handler in survey.blocks[statement]:
            if handler.role == "handler":
                entered = body.during.then(self.entry(query, handler))
                tried = tried.join(self.block(query, handler).behind(entered))
        last = self.block(query, survey.block(statement, "finalbody"))
        return Outcome(
            sequence(tried.normal, last.normal),
            either(sequence(tried.breaks, last.normal), sequence(tried.during, last.breaks)),
            either(sequence(tried.continues, last.normal), sequence(tried.during, last.continues)),
            tried.during.join(tried.during.then(last.during)),
        )

    def _into(self, query: Query, block: Block, owner: Place) -> Effect:
        """Return the effect between the statement that owns a block and the block's first statement."""
        statement = owner.statement
        match statement:
            case ast.If():
                limit = self._limit(query, statement.test, owner, holds=block.role == "body", else_leaves=False)
                return self._own(query, owner.block, owner.index).then(limit)
            case ast.While() | ast.For() | ast.AsyncFor():
                rounds = self._rounds(query, statement, self.block(query, self._bounds.survey.block(statement)))
                if not isinstance(statement, ast.While) or block.role == "test":
                    return rounds
                return rounds.then(self.head(query, statement) if block.role == "body" else self.test(query, statement))
            case ast.Try() if block.role != "body":
                return self._within_try(query, statement, block.role)
        return self._own(query, owner.block, owner.index)

    def _within_try(self, query: Query, statement: ast.Try, role: str) -> Effect:
        survey = self._bounds.survey
        body = self.block(query, survey.block(statement))
        if role == "handler":
            return body.during
        if role == "orelse":
            return body.normal or constant(NEVER)
        effect = body.during
        for part in survey.blocks[statement]:
            if part.role in {"handler", "orelse"}:
                effect = effect.join(body.during.then(self.entry(query, part)).then(self.block(query, part).during))
        return effect


def _always_matches(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
