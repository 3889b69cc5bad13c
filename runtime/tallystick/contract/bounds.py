"""Provable upper bounds of lengths, numbers and repetitions, read off the source (contract.md, section 4).

Sound first: what cannot be proved is INF. Everything is evaluated on demand, for the loops, fanouts and calls that
rules and facts ask about, so that a script pays for what it has.

The parts, each of which asks the others: ``bounds_values`` evaluates expressions, ``bounds_calls`` what calls return,
``bounds_flow`` variables at a place, ``bounds_tests`` what conditions say, ``bounds_changes`` who changes an object,
``bounds_loops`` how often loops go round, ``bounds_callers`` who calls a function with what.
"""

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from tallystick.contract.bounds_callers import Callers
from tallystick.contract.bounds_calls import Calls
from tallystick.contract.bounds_changes import Changes
from tallystick.contract.bounds_effect import INF, NEVER, Measure, Number, plus, times
from tallystick.contract.bounds_flow import Flow, Query
from tallystick.contract.bounds_loops import Loops
from tallystick.contract.bounds_paths import Paths
from tallystick.contract.bounds_values import Values
from tallystick.contract.scopes import COMPREHENSIONS, Comprehension, Definition, Kind, Loop, Place, Scope, Steps
from tallystick.contract.survey import Survey

_MOST_DEPTH = 60
_MOST_STEPS = 5_000
_PATIENCE = 500
_BRANCHES = {"parallel": "branches", "race": "branches", "pipeline": "items", "dag": "graph"}


class Bounds:
    """The bounds of one script.

    Attributes:
        survey: what the walk over the script found.
        depth: how many evaluations are under way, one inside another.
        given_up: how many questions were given up so far: answers that rest on such a one are not kept.
        single_steps: quantities that are known to grow by exactly one between two looks at them, and where they start
            at most: for these ``!=`` stops a loop as ``<`` does.
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.calls = Calls(self)
        self.values = Values(self)
        self.flow = Flow(self)
        self.changes = Changes(self)
        self.loops = Loops(self)
        self.callers = Callers(self)
        self.paths = Paths(self)
        self.depth = 0
        self.given_up = 0
        self.single_steps: dict[Query, Number] = {}
        self._mattering: set[Loop | Comprehension] | None = None
        self._steps = 0
        self._known: dict[tuple[object, ...], Number] = {}
        self._under_way: set[tuple[object, ...]] = set()

    def length(self, node: ast.expr, place: Place) -> Number:
        """Return how long the value of an expression can be."""
        return self.number(node, place, Measure.LENGTH)

    def may_be_set(self, node: ast.expr, place: Place) -> bool:
        """Whether the value of an expression may be a set."""
        return self.number(node, place, Measure.UNORDERED) == 1

    def width(self, fanout: ast.Call, place: Place) -> Number:
        """Return how many branches a fanout at ``place`` can have."""
        branches = self.branches(fanout)
        return INF if branches is None else self.length(branches, place.handed_to(fanout))

    def branches(self, fanout: ast.Call) -> ast.expr | None:
        """Return the argument that holds a fanout's branches, items or nodes; None if it is not written openly."""
        if fanout.args:
            return None if isinstance(fanout.args[0], ast.Starred) else fanout.args[0]
        assert isinstance(fanout.func, ast.Attribute)
        wanted = _BRANCHES.get(fanout.func.attr)
        return next((keyword.value for keyword in fanout.keywords if keyword.arg == wanted), None)

    def loops_that_matter(self) -> set[Loop | Comprehension]:
        """Return the loops and comprehensions whose rounds reach a capability call or build a fanout."""
        if self._mattering is None:
            self._mattering = {loop for place in self.callers.effects() for loop in place.loops()}
        return self._mattering

    def number(self, node: ast.expr, place: Place, measure: Measure, path: Steps = ()) -> Number:
        """Return the bound of a measure of an expression, or of what lies at ``path`` inside its value."""
        effect = self.values.evaluate(node, place, measure, path)
        return effect.base if effect.is_constant else INF

    def exactly(self, node: ast.expr, place: Place) -> int | None:
        """Return the integer that an expression must be, None if that is not known."""
        upper = self.number(node, place, Measure.UPPER)
        if upper not in {INF, NEVER} and upper == -self.number(node, place, Measure.LOWER):
            return int(upper)
        return None

    def query(self, scope: Scope, name: str, measure: Measure, path: Steps = ()) -> Query:
        """Return the question for a variable's measure."""
        return Query(scope, name, measure, path)

    def variable(self, query: Query, place: Place) -> Number:
        """Return the bound of a variable before the statement of ``place``."""
        key = (query, place.block, place.index)
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._under_way:
            return self.give_up()
        self._under_way.add(key)
        before = self.given_up
        bound = self._variable(query, place)
        self._under_way.discard(key)
        if self.is_final(bound, before):
            self._known[key] = bound
        return bound

    def give_up(self) -> Number:
        """Return INF for a question that cannot be answered now, since its answer is being worked out or is too far."""
        self.given_up += 1
        return INF

    def is_final(self, bound: Number, before: int) -> bool:
        """Whether a bound is to be kept: it is finite, or no part of it was given up since ``before``.

        A question that has taken long keeps every answer, so that no script can keep the checker busy.
        """
        if self.single_steps or self.flow.is_assuming:
            return False
        return bound < INF or self.given_up == before or self._steps > _PATIENCE

    def may_go_on(self) -> bool:
        """Whether there is work and depth left for the question that was asked from outside."""
        if self.depth == 0:
            self._steps = 0
        self._steps += 1
        if self.depth < _MOST_DEPTH and self._steps < _MOST_STEPS:
            return True
        self.give_up()
        return False

    @contextmanager
    def assuming_single_steps(self, query: Query, start: Number | None) -> Iterator[None]:
        """Let ``!=`` stop the quantity, which starts at ``start`` at most; None assumes nothing."""
        saved = self.single_steps
        if start is not None:
            self.single_steps = {**saved, query: start}
        try:
            yield
        finally:
            self.single_steps = saved

    def _variable(self, query: Query, place: Place) -> Number:
        scope, name, measure, path = query
        definitions = scope.definitions.get(name, [])
        if isinstance(scope.node, COMPREHENSIONS):
            return max((self.flow.effect(query, one).base for one in definitions), default=INF)
        if place.function is scope:
            bound = self._in_function(query, place)
        else:
            bound = self._in_closure(query, place)
        return bound if bound == INF else self._with_changes_elsewhere(query, bound)

    def _in_function(self, query: Query, place: Place) -> Number:
        scope, name = query.scope, query.name
        definitions = scope.definitions.get(name, [])
        if len(definitions) == 1 and name not in scope.changes and definitions[0].kind is not Kind.AUGMENT:
            bound = self._set_once(query, definitions[0])  # the usual case
            if bound < INF or query.path:
                return bound
        effect = self.flow.before(query, place)
        return effect.base

    def _set_once(self, query: Query, definition: Definition) -> Number:
        """Return the bound of a variable that is set in one place and never changed, wherever it is used."""
        known = self._known.get((query,))
        if known is None:
            before = self.given_up
            effect = self.flow.effect(query, definition)
            known = effect.base if effect.is_constant else INF
            if self.is_final(known, before):
                self._known[query,] = known
        return known

    def _in_closure(self, query: Query, place: Place) -> Number:
        """Return the bound of an outer function's variable in a function that may run at any time after its first use."""
        scope, name, measure, path = query
        if scope.parent is None:
            body = self.survey.blocks[scope.node][0]
            return self.flow.before(query, Place(scope, body, len(body.statements))).base
        uses = list(self._uses_in(place.function, scope))
        if not uses:
            return INF
        bound: Number = max(self.variable(query, use) for use in uses)
        total: Number = 0
        for one in (*scope.definitions.get(name, ()), *scope.changes.get(name, ())):
            if one.place.function is scope and any(_may_follow(one.place, use) for use in uses):
                effect = self.flow.effect(query, one)
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
        scope, name, measure, path = query
        if measure is Measure.LENGTH and not path:
            bound = plus(bound, self.changes.keys_by_name(scope, name))
        others = self.changes.elsewhere(scope, name)
        if measure is Measure.LENGTH or path:
            others = others + self.changes.extended_elsewhere(scope, name)
        for one in others:
            owner = one.place.scope.resolve(one.name) or scope
            effect = self.flow.effect(self.query(owner, one.name, measure, path), one)
            if effect.is_constant and measure is not Measure.UNORDERED and self._is_changed_here(scope, name):
                return INF  # set by another function and changed by its own: in which order is not known
            bound = max(bound, effect.base)
            if effect.gain > 0:
                bound = plus(bound, times(effect.gain, self.callers.executions(one.place)))
        if measure is Measure.SHORTNESS and not path:
            return 0 if others else bound
        if measure is Measure.LENGTH and not path:
            grows = self.changes.growth_inside_containers()
            if grows and self.changes.may_be_in_container(scope, name):
                bound = plus(bound, grows)
        return bound

    def _is_changed_here(self, scope: Scope, name: str) -> bool:
        kinds = {one.kind for one in (*scope.definitions.get(name, ()), *scope.changes.get(name, ()))}
        return not kinds.isdisjoint({Kind.CHANGE, Kind.AUGMENT})


def _may_follow(later: Place, earlier: Place) -> bool:
    if not set(later.loops()).isdisjoint(earlier.loops()):
        return True
    statement, first = later.statement, earlier.statement
    if statement is None or first is None:
        return True
    return statement.lineno >= first.lineno
