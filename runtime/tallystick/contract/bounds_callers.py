"""Who calls a function, with what, and how often (contract.md, section 4, R03, R05 and the facts)."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from tallystick.contract.bounds_effect import INF, NEVER, Measure, Number, plus, times
from tallystick.contract.scopes import Definition, FunctionNode, Kind, Part, Place, Scope, Steps
from tallystick.contract.survey import ENTRY

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds


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
        self._runs: dict[Scope, Number] = {}
        self._reaching: set[Scope] | None = None
        self._entered: set[object] = set()

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
        survey, named = self._bounds.survey, set()
        names = set()
        for scope in (survey.module, *survey.functions()):
            for name, definitions in scope.definitions.items():
                functions = [self._function(definition) for definition in definitions]
                named.update(function for function in functions if function is not None)
                if any(functions):
                    names.add(name)
        for name in names:
            for node, place in survey.calls.get(name, ()):
                for function in self.functions_of(name, place.scope) or ():
                    references[function].append(Reference("call", node, place))
            for node, place in survey.uses.get(name, ()):
                for function in self.functions_of(name, place.scope) or ():
                    references[function].append(_as_value(node, place))
        for node, function in survey.scopes.items():
            if isinstance(node, ast.Lambda) and function not in named and function.defined_at is not None:
                references[function].append(_as_value(node, function.defined_at))

    # Arguments

    def arguments(self, function: Scope, name: str) -> Iterator[tuple[ast.expr, Place]]:
        """Yield the expressions whose value a parameter may get, as far as calls name them, and their places."""
        for reference in self.references(function):
            if reference.kind == "call":
                assert isinstance(reference.node, ast.Call)
                given = self.argument(reference.node, function, name)
                if given is not None:
                    yield given, reference.place

    def argument(self, call: ast.Call, function: Scope, name: str) -> ast.expr | None:
        """Return the argument that a call gives to a parameter, None if it gives none or not openly."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        position = _position(function, name)
        if position is None or any(isinstance(given, ast.Starred) for given in call.args[: position + 1]):
            return None
        return call.args[position] if position < len(call.args) else None

    def parameter(self, function: Scope, name: str, measure: Measure, path: Steps) -> Number:
        """Return the bound of a parameter over every call of its function; INF if some call is not known."""
        references = self.references(function)
        if not references or self.is_entry(function):
            return INF
        bound: Number = NEVER
        for reference in references:
            bound = max(bound, self._given(reference, function, name, measure, path))
            if bound == INF:
                break
        return bound

    def _given(self, reference: Reference, function: Scope, name: str, measure: Measure, path: Steps) -> Number:
        match reference:
            case Reference("call", ast.Call() as call, place):
                return self._given_by_call(call, place, function, name, measure, path)
            case Reference("stage" | "node", _, place) if _position(function, name) == 0:
                assert place.fanout is not None
                return self._bounds.calls.handed_to_branch(place.fanout, reference, measure, path)
            case Reference("stage" | "node"):
                return self._default(function, name, measure, path)
        return INF

    def _given_by_call(
        self, call: ast.Call, place: Place, function: Scope, name: str, measure: Measure, path: Steps
    ) -> Number:
        bounds, arguments = self._bounds, _arguments_of(function)
        given = self.argument(call, function, name)
        if given is not None:
            bound = bounds.number(given, place, measure, path)
            if measure is Measure.LENGTH and call not in bounds.survey.awaited and isinstance(given, ast.Name):
                bound = plus(bound, bounds.changes.gain_after(given, place))
            return bound
        if arguments.vararg is not None and arguments.vararg.arg == name:
            return self._rest(call, place, len(arguments.posonlyargs) + len(arguments.args), measure, path)
        if arguments.kwarg is not None and arguments.kwarg.arg == name:
            return INF
        starred = [argument.value for argument in call.args if isinstance(argument, ast.Starred)]
        bound = self._default(function, name, measure, path)
        if any(keyword.arg is None for keyword in call.keywords):
            return INF
        for several in starred:
            bound = max(bound, bounds.number(several, place, measure, (Part.EACH, *path)))
        return bound

    def _rest(self, call: ast.Call, place: Place, position: int, measure: Measure, path: Steps) -> Number:
        """Return the bound of a ``*rest`` parameter."""
        bounds, rest = self._bounds, call.args
        if not any(isinstance(argument, ast.Starred) for argument in rest[:position]):
            rest = rest[position:]
        whole = ast.Tuple(rest, ast.Load())
        return bounds.number(whole, place, measure, path)

    def _default(self, function: Scope, name: str, measure: Measure, path: Steps) -> Number:
        arguments = _arguments_of(function)
        place = function.defined_at
        ordered = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(reversed(ordered), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if argument.arg == name and default is not None and place is not None:
                return self._bounds.number(default, place, measure, path)
        return NEVER  # such a call would raise a TypeError

    # Results

    def result(self, function: Scope, measure: Measure, path: Steps) -> Number:
        """Return the bound of what a function returns, or of what its coroutine or generator gives."""
        key = (function, measure, path)
        if key in self._entered:
            return self._bounds.give_up()
        self._entered.add(key)
        try:
            if function.yields:
                return self._yielded(function, measure, path)
            bound: Number = NEVER
            for value, place in function.returns:
                bound = max(bound, self._bounds.number(value, place, measure, path))
            if measure in {Measure.UPPER, Measure.LOWER} and self._may_return_none(function):
                return INF
            return bound
        finally:
            self._entered.discard(key)

    def _may_return_none(self, function: Scope) -> bool:
        body = self._bounds.survey.blocks[function.node][0]
        return not isinstance(function.node, ast.Lambda) and self._bounds.flow.block(None, body).normal is not None

    def _yielded(self, function: Scope, measure: Measure, path: Steps) -> Number:
        bounds = self._bounds
        if measure is Measure.LENGTH and not path:
            total: Number = 0
            for node, place in function.yields:
                count: Number = 1
                if isinstance(node, ast.YieldFrom):
                    count = bounds.number(node.value, place, Measure.LENGTH)
                total = plus(total, times(count, bounds.loops.repetitions(place)))
            return total
        if not path or path[0] is not Part.EACH:
            return INF
        bound: Number = NEVER
        for node, place in function.yields:
            inner = path if isinstance(node, ast.YieldFrom) else path[1:]
            bound = max(bound, INF if node.value is None else bounds.number(node.value, place, measure, inner))
        return bound

    # How often

    def executions(self, place: Place) -> Number:
        """Return how often a place is executed in a launch at most."""
        return times(self.runs(place.function), self._bounds.loops.repetitions(place))

    def runs(self, function: Scope) -> Number:
        """Return how often a function's body runs in a launch at most; the module's runs once."""
        if function.parent is None or (self.is_entry(function) and not self.references(function)):
            return 1
        known = self._runs.get(function)
        if known is not None:
            return known
        if function in self._entered:  # it calls itself
            return self._bounds.give_up()
        self._entered.add(function)
        before = self._bounds.given_up
        total: Number = 0
        for reference in self.references(function):
            total = plus(total, self._runs_by(reference))
        self._entered.discard(function)
        if self._bounds.is_final(total, before):
            self._runs[function] = total
        return total

    def _runs_by(self, reference: Reference) -> Number:
        if reference.kind == "value":
            return INF
        executions = self.executions(reference.place)
        if reference.kind == "stage":
            assert reference.place.fanout is not None
            return times(executions, self._bounds.width(reference.place.fanout, reference.place))
        return executions

    # What leads to a capability

    def reaching(self) -> set[Scope]:
        """Return the functions whose body reaches a capability call or builds a fanout."""
        if self._reaching is None:
            survey = self._bounds.survey
            found = {place.function for node, place in survey.context_calls if _is_effect(node)}
            waiting = list(found)
            while waiting:
                function = waiting.pop()
                for reference in self.references(function):
                    caller = reference.place.function
                    if caller not in found:
                        found.add(caller)
                        waiting.append(caller)
            self._reaching = found
        return self._reaching

    def effects(self) -> Iterator[Place]:
        """Yield every place at which a capability is reached: calls, fanouts, calls of helpers that do, awaits."""
        survey = self._bounds.survey
        yield from (place for node, place in survey.context_calls if _is_effect(node))
        yield from (place for _, place in survey.awaits)
        for function in self.reaching():
            yield from (reference.place for reference in self.references(function))

    def is_entry(self, function: Scope) -> bool:
        """Whether a function is the one that a launch starts."""
        return function.name == ENTRY and function.parent is self._bounds.survey.module


def _is_effect(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr != "log"


def _as_value(node: ast.expr, place: Place) -> Reference:
    """Return how a function is used that is not called here: by a fanout, or by anybody."""
    fanout = place.fanout
    if fanout is not None and isinstance(fanout.func, ast.Attribute):
        if fanout.func.attr == "pipeline" and node in fanout.args[1:]:
            return Reference("stage", node, place, fanout.args.index(node) - 1)
        if fanout.func.attr == "dag" and fanout.args and isinstance(fanout.args[0], ast.Dict):
            for number, value in enumerate(fanout.args[0].values):
                if isinstance(value, ast.Tuple | ast.List) and node in value.elts[1:2]:
                    return Reference("node", node, place, number)
    return Reference("value", node, place)


def _arguments_of(function: Scope) -> ast.arguments:
    assert isinstance(function.node, FunctionNode)
    return function.node.args


def _position(function: Scope, name: str) -> int | None:
    arguments = _arguments_of(function)
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    return names.index(name) if name in names else None
