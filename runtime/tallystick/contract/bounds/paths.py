"""How often a call can happen in a launch, and under one fanout path (contract.md, sections 2, 4 and 6.1).

Loops multiply, and so do repeated calls of a helper. A fanout adds a level to the path, and each of its branches has
a path of its own there, so that its width does not count. A second fanout at the same path has the same branch paths
again, and adds. A race has fresh paths each time.

A *shape* is a path with every index left open: a branch of a parallel or pipeline is ``#``, a node of a dag its name.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tallystick.contract.bounds.callers import Reference
from tallystick.contract.bounds.effect import INF, Number, plus, times
from tallystick.contract.scopes import Kind, Place, Scope
from tallystick.contract.source import Level
from tallystick.contract.survey import method_of

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

Shape: TypeAlias = tuple[str, ...]
Route: TypeAlias = tuple[ast.Call, Number]
"""A fanout, and how wide it is at most: of several whose branches share their paths, the widest."""
_ANYWHERE: Shape = ("?",)
"""The shape of what runs under a path that is not known: it counts under every path."""


class Paths:
    """Counts executions by the shape of the path they happen under."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._entries: dict[Scope, dict[Shape, Number]] = {}
        self._worst: dict[Scope, Number] = {}
        self._routes: dict[Shape, Route] = {}
        self._known_routes: dict[Scope, tuple[tuple[Level, ...], ...] | None] = {}
        self._places = dict(bounds.survey.context_calls)
        self._named_nodes = all(
            call.args
            and isinstance(call.args[0], ast.Dict)
            and all(isinstance(key, ast.Constant) for key in call.args[0].keys)
            for call in self._places
            if method_of(call) == "dag"
        )

    def routes(
        self, call: ast.Call, place: Place, sites: Mapping[ast.Call, str]
    ) -> tuple[tuple[Level, ...], ...] | None:
        """Return the ways to a capability call through fanouts, each from the outermost; None where one is unknown."""
        if call in self._bounds.survey.awaited:
            if place.function not in self._known_routes:
                self._known_routes[place.function] = self._routes_of(self._entries_of(place.function), sites)
            return self._known_routes[place.function]
        counts: dict[Shape, Number] = defaultdict(int)
        self._count(counts, call, place)
        return self._routes_of(counts, sites)

    def _routes_of(
        self, shapes: Iterable[Shape], sites: Mapping[ast.Call, str]
    ) -> tuple[tuple[Level, ...], ...] | None:
        shapes = list(shapes)
        if any(level in {_ANYWHERE[0], "node"} for shape in shapes for level in shape):
            return None
        return tuple(
            tuple(self._level(shape[: depth + 1], sites) for depth in range(len(shape))) for shape in sorted(shapes)
        )

    def _level(self, shape: Shape, sites: Mapping[ast.Call, str]) -> Level:
        fanout, width = self._routes[shape]
        if shape[-1].startswith("node "):
            return Level(names=(ast.literal_eval(shape[-1].removeprefix("node ")),))
        return Level(width=None if width == INF else int(width), race=sites.get(fanout, ""))

    def per_path(self, call: ast.Call, place: Place) -> Number:
        """Return how often a capability call can happen under one path at most."""
        if call in self._bounds.survey.awaited:
            return times(self._worst_entry(place.function), self._bounds.loops.repetitions(place))
        counts: dict[Shape, Number] = defaultdict(int)
        asynchronous = isinstance(place.function.node, ast.AsyncFunctionDef)
        if not asynchronous and place.fanout is None and self._is_returned(call, place):
            for shape, count in self._entries_of(place.function).items():
                self._add(counts, shape, times(count, self._bounds.loops.repetitions(place)))
        else:
            self._count(counts, call, place)
        return _worst(counts)

    def _is_returned(self, call: ast.Call, place: Place) -> bool:
        return any(call is node for value, _ in place.function.returns for node in _handed_on(value))

    def _worst_entry(self, function: Scope) -> Number:
        if function not in self._worst:
            self._worst[function] = _worst(self._entries_of(function))
        return self._worst[function]

    def _entries_of(self, function: Scope) -> dict[Shape, Number]:
        """Return how often a function's body runs, by shape."""
        if function not in self._entries:
            self._entries[function] = {_ANYWHERE: INF}  # of a function that calls itself
            counts: dict[Shape, Number] = defaultdict(int)
            if self._bounds.callers.is_entry(function):
                counts[()] = 1
            done: set[ast.Call] = set()
            for reference in self._bounds.callers.references(function):
                self._enter(counts, reference, done)
            self._entries[function] = counts
        return self._entries[function]

    def _enter(self, counts: dict[Shape, Number], reference: Reference, done: set[ast.Call]) -> None:
        place = reference.place
        if reference.kind == "call":
            assert isinstance(reference.node, ast.Call)
            self._count(counts, reference.node, place, done)
        elif reference.kind == "value" or place.fanout is None:
            counts[_ANYWHERE] = INF
        else:
            level = "#"
            if reference.kind == "node":
                level = self._node_name(place.fanout, reference.number)
            self._branch(counts, place.fanout, level)

    def _node_name(self, fanout: ast.Call, number: int) -> str:
        graph = fanout.args[0]
        assert isinstance(graph, ast.Dict)
        key = graph.keys[number]
        return f"node {key.value!r}" if self._named_nodes and isinstance(key, ast.Constant) else "node"

    def _count(
        self, counts: dict[Shape, Number], call: ast.Call, place: Place, done: set[ast.Call] | None = None
    ) -> None:
        """Add the executions of a call, awaited here, handed to fanouts, or who knows where."""
        callers = self._entries_of(place.function)
        if call in self._bounds.survey.awaited:
            for shape, count in callers.items():
                self._add(counts, shape, times(count, self._bounds.loops.repetitions(place)))
            return
        fanouts = [place.fanout] if place.fanout is not None else list(self._fanouts_of(call, place))
        for fanout in fanouts:
            if done is None or fanout not in done:
                self._branch(counts, fanout, "#")
            if done is not None:
                done.add(fanout)
        if not fanouts:
            total: Number = 0
            for count in callers.values():
                total = plus(total, count)
            self._add(counts, _ANYWHERE, times(total, self._bounds.loops.repetitions(place)))

    def _branch(self, counts: dict[Shape, Number], fanout: ast.Call, level: str) -> None:
        """Add one execution in a branch of a fanout, for every time that the fanout itself is executed."""
        place = self._places[fanout]
        outer: dict[Shape, Number] = defaultdict(int)
        self._count(outer, fanout, place)
        race = method_of(fanout) == "race"
        for shape, count in outer.items():
            if shape == _ANYWHERE:
                self._add(counts, _ANYWHERE, count)
                continue
            inner = (*shape, f"race {id(fanout)}" if race else level)
            known = self._routes.get(inner, (fanout, 0))[1]
            self._routes[inner] = (fanout, max(known, self._bounds.fanouts.width(fanout, place)))
            self._add(counts, inner, 1 if race else count)

    def _add(self, counts: dict[Shape, Number], shape: Shape, count: Number) -> None:
        counts[shape] = plus(counts.get(shape, 0), count)

    def _fanouts_of(self, call: ast.Call, place: Place) -> Iterator[ast.Call]:
        """Yield the fanouts that a coroutine is handed to by way of a variable that is used for nothing else."""
        name = self._kept_in(call, place)
        scope = None if name is None else place.scope.resolve(name)
        if name is None or scope is not place.function:
            return
        uses = [use for _, use in self._bounds.survey.uses.get(name, ()) if use.scope.resolve(name) is scope]
        if uses and all(use.fanout is not None and method_of(use.fanout) in {"parallel", "race"} for use in uses):
            yield from {use.fanout for use in uses if use.fanout is not None}

    def _kept_in(self, call: ast.Call, place: Place) -> str | None:
        """Return the variable that a coroutine is assigned or appended to, None if it is used in another way."""
        match place.statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
            ):
                return name if any(node is call for node in _handed_on(value)) else None
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[value]) as change):
                changes = place.function.changes.get(name, ())
                if any(one.node is change and one.kind is Kind.CHANGE for one in changes):
                    return name if any(node is call for node in _handed_on(value)) else None
        return None


def _worst(counts: dict[Shape, Number]) -> Number:
    known = max((count for shape, count in counts.items() if shape != _ANYWHERE), default=0)
    return plus(known, counts.get(_ANYWHERE, 0))


def _handed_on(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions whose value is part of ``value`` as it is: itself, or an item of a list it builds."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.List() | ast.Tuple():
                waiting += node.elts
            case ast.ListComp() | ast.GeneratorExp():
                waiting.append(node.elt)
            case ast.BinOp():
                waiting += (node.left, node.right)
            case ast.IfExp():
                waiting += (node.body, node.orelse)
            case ast.Starred():
                waiting.append(node.value)
