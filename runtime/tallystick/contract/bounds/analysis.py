"""Provable upper bounds of lengths, numbers and repetitions, read off the source (contract.md, section 4).

Sound first: what cannot be proved is INF. Everything is evaluated on demand, for the loops, fanouts and calls that
rules and facts ask about, so that a script pays for what it has.

The parts, each of which asks the others through the one ``Bounds``:

- ``values`` evaluates expressions, ``arithmetic`` sums, products and slices, ``calls`` what calls return,
  ``fanouts`` what fanouts give, ``arguments`` parameters and results;
- ``flow`` finds what a variable is at a place, with ``definitions`` and ``changes`` for single
  statements, ``conditions`` for conditions, ``aliases`` for other ways to the same object;
- ``loops`` and ``caps`` count rounds, ``callers`` and ``paths`` executions.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from tallystick.contract.bounds.aliases import Aliases, may_follow
from tallystick.contract.bounds.arguments import Arguments
from tallystick.contract.bounds.arithmetic import Numbers
from tallystick.contract.bounds.callers import Callers
from tallystick.contract.bounds.calls import Calls
from tallystick.contract.bounds.changes import Changes
from tallystick.contract.bounds.definitions import Definitions
from tallystick.contract.bounds.effect import (
    INF,
    LENGTH,
    LOWER,
    NEVER,
    SHORTNESS,
    UNORDERED,
    UPPER,
    Aspect,
    Measure,
    Number,
    plus,
    times,
)
from tallystick.contract.bounds.fanouts import Fanouts
from tallystick.contract.bounds.flow import Flow
from tallystick.contract.bounds.loops import Loops
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.bounds.paths import Paths
from tallystick.contract.bounds.values import Values
from tallystick.contract.scopes import COMPREHENSIONS, Comprehension, Definition, Kind, Loop, Place, Scope
from tallystick.contract.survey import Survey

_MOST_DEPTH = 60
_MOST_STEPS = 5_000
"""Steps of evaluation for one question that is asked from outside."""
_MOST_STEPS_IN_ALL = 100_000
_PATIENCE = 500
"""Steps after which a question keeps every answer, also those that rest on what was given up."""


class Bounds:
    """The bounds of one script.

    Attributes:
        survey: what the walk over the script found.
        depth: how many evaluations are under way, one inside another.
        given_up: how many questions were given up so far: answers that rest on such a one are worked out again.
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.aliases = Aliases(self)
        self.arguments = Arguments(self)
        self.callers = Callers(self)
        self.calls = Calls(self)
        self.changes = Changes(self)
        self.definitions = Definitions(self)
        self.fanouts = Fanouts(self)
        self.flow = Flow(self)
        self.loops = Loops(self)
        self.numbers = Numbers(self)
        self.paths = Paths(self)
        self.values = Values(self)
        self.depth = 0
        self.given_up = 0
        self._steps = 0
        self._steps_in_all = 0
        self._mattering: set[Loop | Comprehension] | None = None
        self._memory: dict[object, Any] = {}
        self._under_way: set[object] = set()

    # Questions

    def number(self, node: ast.expr, place: Place, aspect: Aspect) -> Number:
        """Return the bound of an aspect of an expression's value."""
        return self.values.evaluate(node, place, aspect).bound

    def exactly(self, node: ast.expr, place: Place) -> int | None:
        """Return the integer that an expression must be, None if that is not known."""
        upper = self.number(node, place, UPPER)
        if upper not in {INF, NEVER} and upper == -self.number(node, place, LOWER):
            return int(upper)
        return None

    def may_be_set(self, node: ast.expr, place: Place) -> bool:
        """Whether the value of an expression may be a set."""
        return self.number(node, place, UNORDERED) == 1

    def loops_that_matter(self) -> set[Loop | Comprehension]:
        """Return the loops and comprehensions whose rounds reach a capability call or build a fanout."""
        if self._mattering is None:
            self._mattering = {loop for place in self.callers.effects() for loop in place.loops()}
        return self._mattering

    def variable(self, query: Query, place: Place) -> Number:
        """Return the bound of a variable before the statement of ``place``."""
        return self.remembered((query, place.block, place.index), lambda: self._variable(query, place))

    # Limits of the effort

    def remembered(self, key: object, compute: Callable[[], Number]) -> Number:
        """Return a bound that is worked out once, where it can be; INF while it is being worked out."""
        known: Number | None = self._memory.get(key)
        if known is not None:
            return known
        if key in self._under_way:
            return self.give_up()
        self._under_way.add(key)
        before = self.given_up
        if self.flow.is_assuming:
            with self.flow.assuming_nothing():
                bound = compute()
        else:
            bound = compute()
        self._under_way.discard(key)
        if bound < INF or self.given_up == before or self._steps > _PATIENCE:
            self._memory[key] = bound
        return bound

    def give_up(self) -> Number:
        """Return INF for a question that cannot be answered now, since its answer is being worked out or is too far."""
        self.given_up += 1
        return INF

    def may_go_on(self) -> bool:
        """Whether there is work and depth left for the question that was asked from outside."""
        if self.depth == 0:
            self._steps = 0
        self._steps += 1
        self._steps_in_all += 1
        if self.depth < _MOST_DEPTH and self._steps < _MOST_STEPS and self._steps_in_all < _MOST_STEPS_IN_ALL:
            return True
        self.give_up()
        return False

    # Variables

    def _variable(self, query: Query, place: Place) -> Number:
        scope = query.scope
        if isinstance(scope.node, COMPREHENSIONS):
            effects = (self.definitions.effect(query, one).base for one in scope.definitions.get(query.name, ()))
            return max(effects, default=INF)
        bound = self._in_function(query, place) if place.function is scope else self._in_closure(query, place)
        return bound if bound == INF else self._with_changes_elsewhere(query, bound)

    def _in_function(self, query: Query, place: Place) -> Number:
        definitions = query.scope.definitions.get(query.name, [])
        if len(definitions) == 1 and query.name not in query.scope.changes and definitions[0].kind is not Kind.AUGMENT:
            bound = self._set_once(query, definitions[0])  # the usual case
            if bound < INF or query.aspect.path:
                return bound
        return self.flow.before(query, place).base

    def _set_once(self, query: Query, definition: Definition) -> Number:
        """Return the bound of a variable that is set in one place and never changed, wherever it is used."""
        return self.remembered(query, lambda: self.definitions.effect(query, definition).bound)

    def _in_closure(self, query: Query, place: Place) -> Number:
        """Return the bound of an outer function's variable in a function that may run any time after its first use."""
        scope, name, _ = query
        if scope.parent is None:
            body = self.survey.block(scope.node)
            return self.flow.before(query, Place(scope, body, len(body.statements))).base
        uses = list(self._uses_in(place.function, scope))
        if not uses:
            return INF
        bound: Number = max(self.variable(query, use) for use in uses)
        total: Number = 0
        for one in (*scope.definitions.get(name, ()), *scope.changes.get(name, ())):
            if one.place.function is scope and any(may_follow(one.place, use) for use in uses):
                effect = self.definitions.effect(query, one)
                bound = max(bound, effect.base)
                if effect.gain > 0:
                    total = plus(total, times(effect.gain, self.callers.executions(one.place)))
        return plus(bound, total)

    def _uses_in(self, function: Scope, scope: Scope, seen: frozenset[Scope] = frozenset()) -> Iterator[Place]:
        """Yield where, in the code of ``scope``, a nested function is called or handed on."""
        if function in seen:
            return
        for reference in self.callers.references(function):
            caller = reference.place.function
            if caller is scope:
                yield reference.place
            else:
                yield from self._uses_in(caller, scope, seen | {function})

    def _with_changes_elsewhere(self, query: Query, bound: Number) -> Number:
        scope, name, aspect = query
        if aspect == LENGTH:
            bound = plus(bound, self.changes.keys_by_name(scope, name))
        others = self.aliases.elsewhere(scope, name)
        if aspect == LENGTH or aspect.path:
            others += self.aliases.extended_elsewhere(scope, name)
        for one in others:
            owner = one.place.scope.resolve(one.name) or scope
            effect = self.definitions.effect(Query(owner, one.name, aspect), one)
            if effect.is_constant and aspect.measure is not Measure.UNORDERED and _is_changed(scope, name):
                return INF  # set by another function and changed by its own: in which order is not known
            bound = max(bound, effect.base)
            if effect.gain > 0:
                bound = plus(bound, times(effect.gain, self.callers.executions(one.place)))
        if aspect == SHORTNESS:
            return 0 if others else bound
        if aspect == LENGTH:
            grows = self.aliases.growth_inside_containers()
            if grows and self.aliases.may_be_contained(scope, name):
                bound = plus(bound, grows)
        return bound


def _is_changed(scope: Scope, name: str) -> bool:
    kinds = {one.kind for one in (*scope.definitions.get(name, ()), *scope.changes.get(name, ()))}
    return not kinds.isdisjoint({Kind.CHANGE, Kind.AUGMENT})
