"""Who calls a function, and how often (contract.md, section 4, R03, R05 and the facts)."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from tallystick.contract.bounds.effect import INF, Number, plus, times
from tallystick.contract.scopes import Definition, Kind, Place, Scope
from tallystick.contract.survey import ENTRY, method_of

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds


class Reference(NamedTuple):
    """One use of a function: a call, a stage of a pipeline, a node of a dag, or as a value that anything may call.

    ``number`` is the position of a stage, from 0, or of a dag's node.
    """

    kind: Literal["call", "stage", "node", "value"]
    node: ast.expr
    place: Place
    number: int = 0


class Callers:
    """The call graph of a script."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._references: dict[Scope, list[Reference]] | None = None
        self._reaching: set[Scope] | None = None

    def functions_of(self, name: str, scope: Scope) -> list[Scope] | None:
        """Return the functions that a name may mean in a scope; None if it may mean anything else."""
        owner = scope.resolve(name)
        if owner is None:
            return None
        found = [self._function(definition) for definition in owner.definitions[name]]
        known = [function for function in found if function is not None]
        return known if len(known) == len(found) else None

    def _function(self, definition: Definition) -> Scope | None:
        scopes = self._bounds.survey.scopes
        if definition.kind is Kind.FUNCTION:
            return scopes.get(definition.node)
        if definition.kind is Kind.ASSIGN and isinstance(definition.value, ast.Lambda) and not definition.path:
            return scopes.get(definition.value)
        return None

    def references(self, function: Scope) -> list[Reference]:
        """Return every use of a function or lambda."""
        if self._references is None:
            self._references = defaultdict(list)
            self._collect(self._references)
        return self._references[function]

    def _collect(self, references: dict[Scope, list[Reference]]) -> None:
        survey = self._bounds.survey
        named: set[Scope] = set()
        names: set[str] = set()
        for scope in (survey.module, *survey.functions()):
            for name, definitions in scope.definitions.items():
                functions = {self._function(definition) for definition in definitions} - {None}
                if functions:
                    names.add(name)
                    named.update(function for function in functions if function is not None)
        for name in names:
            for node, place in survey.calls.get(name, ()):
                for function in self.functions_of(name, place.scope) or ():
                    references[function].append(Reference("call", node, place))
            for node, place in survey.uses.get(name, ()):
                for function in self.functions_of(name, place.scope) or ():
                    references[function].append(_handed_on(node, place))
        for expression, scope in survey.scopes.items():
            if isinstance(expression, ast.Lambda) and scope not in named and scope.defined_at is not None:
                references[scope].append(_handed_on(expression, scope.defined_at))

    # How often

    def executions(self, place: Place) -> Number:
        """Return how often a place is executed in a launch at most."""
        return times(self.runs(place.function), self._bounds.loops.repetitions(place))

    def runs(self, function: Scope) -> Number:
        """Return how often a function's body runs in a launch at most; the module's runs once."""
        if function.parent is None or (self.is_entry(function) and not self.references(function)):
            return 1
        return self._bounds.remembered(function, lambda: self._add_up(function))

    def _add_up(self, function: Scope) -> Number:
        total: Number = 0
        for reference in self.references(function):
            total = plus(total, self._runs_by(reference))
        return total

    def _runs_by(self, reference: Reference) -> Number:
        if reference.kind == "value":
            return INF
        executions = self.executions(reference.place)
        if reference.kind == "stage":
            assert reference.place.fanout is not None
            return times(executions, self._bounds.fanouts.width(reference.place.fanout, reference.place))
        return executions

    def is_entry(self, function: Scope) -> bool:
        """Whether a function is the one that a launch starts."""
        return function.name == ENTRY and function.parent is self._bounds.survey.module

    # What leads to a capability

    def reaching(self) -> set[Scope]:
        """Return the functions whose body reaches a capability call or builds a fanout."""
        if self._reaching is None:
            found = {place.function for place in self._own_effects()}
            waiting = list(found)
            while waiting:
                for reference in self.references(waiting.pop()):
                    caller = reference.place.function
                    if caller not in found:
                        found.add(caller)
                        waiting.append(caller)
            self._reaching = found
        return self._reaching

    def effects(self) -> Iterator[Place]:
        """Yield every place at which a capability is reached: calls, fanouts, calls of helpers that do, awaits."""
        yield from self._own_effects()
        yield from (place for _, place in self._bounds.survey.awaits)
        for function in self.reaching():
            yield from (reference.place for reference in self.references(function))

    def _own_effects(self) -> Iterator[Place]:
        for call, place in self._bounds.survey.context_calls:
            if method_of(call) != "log":
                yield place


def _handed_on(node: ast.expr, place: Place) -> Reference:
    """Return how a function is used that is not called here: by a fanout, or by anybody."""
    fanout = place.fanout
    if fanout is not None:
        if method_of(fanout) == "pipeline" and node in fanout.args[1:]:
            return Reference("stage", node, place, fanout.args.index(node) - 1)
        if method_of(fanout) == "dag" and fanout.args and isinstance(fanout.args[0], ast.Dict):
            for number, value in enumerate(fanout.args[0].values):
                if isinstance(value, ast.Tuple | ast.List) and node in value.elts[1:2]:
                    return Reference("node", node, place, number)
    return Reference("value", node, place)
