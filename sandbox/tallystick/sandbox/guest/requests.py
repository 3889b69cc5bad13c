"""What a script's coroutine hands to the trampoline when it awaits: a call to make, or branches to run.

A request does nothing until a branch awaits it; it is carried out then, under the path of that branch, and once. What
it asks for is an order, which only the trampoline sees: a script that could change one would send another payload than
the one it was made with, or call from a site where it does not stand.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias

from tallystick.sandbox.frames import MAX_STEP, is_race_step, race_step
from tallystick.sandbox.guest.values import CapabilityError, Failed

Step: TypeAlias = int | str
Order: TypeAlias = "Invocation | Fanout | Race"
Body: TypeAlias = Coroutine[Order, Any, Any]


class Request:
    """What a script holds of an order: something that can be awaited once."""

    __slots__ = ("_awaited", "_order")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._awaited = False

    def __await__(self) -> Generator[Order, Any, Any]:
        if self._awaited:
            raise RuntimeError(f"{self} was already awaited; call it again where a second execution is meant")
        self._awaited = True
        return (yield self._order)

    def __repr__(self) -> str:
        return repr(self._order)

    @property
    def awaited(self) -> bool:
        """Whether it was awaited before."""
        return self._awaited


class Invocation:
    """One call of a capability, its payload taken when ``ctx.run`` was called."""

    __slots__ = ("capability", "payload", "site", "take")

    def __init__(self, site: str, capability: str, payload: Any, take: str | None) -> None:
        self.site = site
        self.capability = capability
        self.payload = payload
        self.take = take

    def __repr__(self) -> str:
        return f"this ctx.run({self.capability!r}, ...)"


class Node:
    """One branch of a fanout: the step it adds to the path, the branches it needs first, and how it starts.

    ``given`` is the script's own coroutine where the branch is one: whoever drops the branch must close it.
    """

    __slots__ = ("given", "needs", "start", "step")

    def __init__(
        self, step: Step, start: Callable[[list[Any]], Body], needs: tuple[int, ...] = (), given: Any = None
    ) -> None:
        self.step = step
        self.start = start
        self.needs = needs
        self.given = given


class Fanout:
    """Branches that run side by side and settle, all of them, before the await goes on (contract.md, section 6.4)."""

    __slots__ = ("name", "nodes", "shape", "tolerate")

    def __init__(
        self, name: str, nodes: Sequence[Node], *, tolerate: bool, shape: Callable[[list[Any]], Any] = list
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.tolerate = tolerate
        self.shape = shape

    def __repr__(self) -> str:
        return f"this ctx.{self.name}(...)"

    def tolerated(self, error: BaseException) -> Failed | None:
        """Return the value that stands for a failed branch, or None where its error is raised."""
        if self.tolerate and isinstance(error, CapabilityError):
            return Failed(error.kind, error.text)
        return None


class Race:
    """Branches of which the first to succeed wins (contract.md, section 6.4)."""

    __slots__ = ("branches", "site")

    def __init__(self, site: str, branches: Sequence[Awaitable[Any]]) -> None:
        self.site = site
        self.branches = branches

    def __repr__(self) -> str:
        return "this ctx.race(...)"

    def node(self, occurrence: int, index: int) -> Node:
        """Return a branch; no later fanout can have its step, so that a loser's calls never meet those of others."""
        branch = self.branches[index]
        return Node(race_step(self.site, occurrence, index), partial(_branch, branch), given=branch)


def race(branches: Any, site: str) -> Race:
    """Build the request of ``ctx.race``.

    Raises:
        TypeError: there is no branch, or one is not awaitable; the message names it.
        RuntimeError: a branch was awaited before, or stands there twice.
    """
    listed = _listed(branches, "race")
    if not listed:
        raise TypeError("ctx.race needs at least one branch: nobody can win an empty race")
    return Race(site, listed)


def parallel(branches: Any, *, tolerate: bool) -> Fanout:
    """Build the fanout of ``ctx.parallel``.

    Raises:
        TypeError: a branch is not awaitable; the message names it.
        RuntimeError: a branch was awaited before, or stands there twice.
    """
    listed = _listed(branches, "parallel")
    nodes = [Node(index, partial(_branch, branch), given=branch) for index, branch in enumerate(listed)]
    return Fanout("parallel", nodes, tolerate=tolerate)


def pipeline(items: Any, stages: tuple[Any, ...], *, tolerate: bool) -> Fanout:
    """Build the fanout of ``ctx.pipeline``: each item through all stages, items side by side.

    Raises:
        TypeError: a stage cannot be called, or the items have no order.
    """
    for position, stage in enumerate(stages):
        if not callable(stage):
            raise TypeError(f"ctx.pipeline: stage {position} is a {type(stage).__name__}; pass a function of one value")
    _refuse_unordered(items, "pipeline")
    nodes = [Node(index, partial(_through, item, stages)) for index, item in enumerate(items)]
    return Fanout("pipeline", nodes, tolerate=tolerate)


def dag(graph: Any, *, tolerate: bool) -> Fanout:
    """Build the fanout of ``ctx.dag``; its result is a dict of the nodes' values in the order of the nodes.

    Raises:
        TypeError: it is not ``{name: ([dependency, ...], function)}``.
        ValueError: a dependency is unknown, or nodes depend on each other in a circle.
    """
    if type(graph) is not dict:
        raise TypeError(f"ctx.dag takes {{name: ([dependency, ...], function)}}, not a {type(graph).__name__}")
    names = list(graph)
    needs = {name: _needs_of(name, graph) for name in names}
    _refuse_cycle(needs)
    index = {name: position for position, name in enumerate(names)}
    nodes = [
        Node(name, partial(_node, graph[name][1], needs[name]), tuple(index[need] for need in needs[name]))
        for name in names
    ]
    return Fanout("dag", nodes, tolerate=tolerate, shape=lambda values: dict(zip(names, values, strict=True)))


def _listed(branches: Any, name: str) -> list[Any]:
    """Return the branches of a fanout; where they are refused, none is left that nobody will await."""
    listed = list(branches)
    try:
        _refuse_unordered(branches, name)
        _refuse_unfit(listed, name)
    except Exception:
        for branch in listed:
            discard(branch)
        raise
    return listed


def discard(branch: Any) -> None:
    """Close a coroutine that nobody will await: Python would complain about it otherwise."""
    if isinstance(branch, Coroutine) and not _was_awaited(branch):
        branch.close()


async def _branch(branch: Awaitable[Any], _needed: list[Any]) -> Any:
    return await branch


async def _through(value: Any, stages: tuple[Callable[[Any], Any], ...], _needed: list[Any]) -> Any:
    for stage in stages:
        value = await _value_of(stage(value))
    return value


async def _node(function: Callable[[dict[str, Any]], Any], needs: list[str], needed: list[Any]) -> Any:
    return await _value_of(function(dict(zip(needs, needed, strict=True))))


async def _value_of(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


def _refuse_unordered(items: Any, name: str) -> None:
    if isinstance(items, set | frozenset):
        raise TypeError(f"ctx.{name} was given a set, which has no order; write sorted(...) or a list")


def _refuse_unfit(branches: list[Any], name: str) -> None:
    first: dict[int, int] = {}
    for index, branch in enumerate(branches):
        if not isinstance(branch, Awaitable):
            advice = "call it" if callable(branch) else "pass the coroutine, not its result"
            raise TypeError(f"ctx.{name}: branch {index} is a {type(branch).__name__}, not awaitable; {advice}")
        if id(branch) in first:
            raise RuntimeError(
                f"ctx.{name}: branch {index} is the same object as branch {first[id(branch)]}; "
                "call the function once for each branch"
            )
        first[id(branch)] = index
        if _was_awaited(branch):
            raise RuntimeError(f"ctx.{name}: branch {index} was already awaited; call the function again for it")


def _was_awaited(branch: Any) -> bool:
    if isinstance(branch, Request):
        return branch.awaited
    frame = getattr(branch, "cr_frame", None)
    return hasattr(branch, "cr_frame") and (frame is None or branch.cr_running or branch.cr_suspended)


def _needs_of(name: Any, graph: dict[Any, Any]) -> list[str]:
    if type(name) is not str or not name or len(name) > MAX_STEP or not name.isprintable():
        raise TypeError(f"ctx.dag: {name!r} is no node name; use a short text, it becomes part of the calls' path")
    if is_race_step(name):
        raise TypeError(f"ctx.dag: {name!r} is what the branch of a race is called; choose another name for the node")
    entry = graph[name]
    if type(entry) not in {tuple, list} or len(entry) != 2 or not callable(entry[1]):  # noqa: PLR2004 - a pair
        raise TypeError(f"ctx.dag: node {name!r} must be a pair ([dependency, ...], function)")
    needs = entry[0]
    if type(needs) not in {tuple, list}:
        raise TypeError(f"ctx.dag: the dependencies of node {name!r} must be a list of names")
    for need in needs:
        if need not in graph:
            raise ValueError(f"ctx.dag: node {name!r} depends on {need!r}, which is no node; there are {list(graph)}")
    return list(dict.fromkeys(needs))


def _refuse_cycle(needs: dict[str, list[str]]) -> None:
    left = dict(needs)
    while left:
        before = len(left)
        for name, wanted in needs.items():
            if name in left and not any(need in left for need in wanted):
                del left[name]
        if len(left) == before:
            raise ValueError(f"ctx.dag: {_cycle(left)} wait for each other")


def _cycle(left: dict[str, list[str]]) -> str:
    """Name one circle among nodes of which each still needs another of them."""
    walk = [next(iter(left))]
    while True:
        following = next(need for need in left[walk[-1]] if need in left)
        if following in walk:
            return " -> ".join([*map(repr, walk[walk.index(following) :]), repr(following)])
        walk.append(following)
