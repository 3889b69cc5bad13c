"""A puppet actor whose messages carry what it shall do, and trees to put it in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anyio import Event, create_task_group, sleep_forever

from tallystick.kernel import (
    Actor,
    ChildReport,
    ChildSpec,
    Deferred,
    ManualClock,
    Request,
    SupervisorSpec,
    Tree,
    open_tree,
)
from tallystick.kernel.child import Spec


class Boom(Exception):  # noqa: N818 - short, for it stands everywhere
    """A fault: it crashes a puppet."""


class Wrong(Exception):  # noqa: N818 - as Boom
    """An expected error: a puppet answers it."""


Act: TypeAlias = Callable[["Puppet"], Awaitable[object]]


class Do(Request[Any], frozen=True):
    act: Act


class Puppet(Actor[Do]):
    """Does what it is told; writes its comings and goings to ``log``."""

    answers = (Wrong,)

    def __init__(
        self, name: str = "puppet", log: list[str] | None = None, *, begin: Act | None = None, end: Act | None = None
    ) -> None:
        self.name = name
        self.log = [] if log is None else log
        self._begin = begin
        self._end = end

    async def on_start(self) -> None:
        self.log.append(f"+{self.name}")
        if self._begin is not None:
            await self._begin(self)

    async def handle(self, message: Do) -> object:
        return await message.act(self)

    async def on_stop(self) -> None:
        self.log.append(f"-{self.name}")
        if self._end is not None:
            await self._end(self)


def give(value: object) -> Do:
    async def act(_: Puppet) -> object:
        return value

    return Do(act)


def throw(error: Exception) -> Do:
    async def act(_: Puppet) -> object:
        raise error

    return Do(act)


def note(log: list[Any], value: Any) -> Do:
    async def act(_: Puppet) -> None:
        log.append(value)

    return Do(act)


def hold(until: Event, value: object = None) -> Do:
    async def act(_: Puppet) -> object:
        await until.wait()
        return value

    return Do(act)


def forever() -> Do:
    async def act(_: Puppet) -> None:
        await sleep_forever()

    return Do(act)


def puppet(name: str = "puppet", log: list[str] | None = None, **options: Any) -> ChildSpec[Do]:
    """Specify a puppet; ``begin`` and ``end`` are its hooks, everything else goes to the specification."""
    hooks = {key: options.pop(key) for key in ("begin", "end") if key in options}
    return ChildSpec(id=name, factory=lambda: Puppet(name, log, **hooks), **options)


def settle_later(deferred: "Deferred[Any]") -> Do:
    async def act(_: Puppet) -> object:
        return deferred

    return Do(act)


def run_task(task: Any, *, reply: bool = False) -> Do:
    """Let the puppet run a task: beside itself, or as the reply."""

    async def act(actor: Puppet) -> object:
        if reply:
            return actor.defer(task)
        actor.spawn(task)
        return None

    return Do(act)


async def boom() -> None:
    raise Boom


async def wrong() -> None:
    raise Wrong


def fails(times: int, error: type[Exception] = Boom) -> Act:
    """Fail that many times from the second call on: a puppet that starts well and restarts badly."""
    calls = 0

    async def begin(_: Puppet) -> None:
        nonlocal calls
        calls += 1
        if 1 < calls <= times + 1:
            raise error(f"call {calls}")

    return begin


def second_time(act: Callable[[], Any]) -> Act:
    """Do something the second time only: in the second start, or in the second stop."""
    calls = 0

    async def at_second(_: Puppet) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            await act()

    return at_second


async def last(actor: Puppet) -> None:
    actor.stop()


@dataclass
class Stage:
    """An open tree with its clock, its root and what was reported."""

    root: SupervisorSpec
    clock: ManualClock
    tree: Tree
    reports: list[ChildReport] = field(default_factory=list)

    @property
    def decisions(self) -> list[tuple[str, str]]:
        return [(report.path, report.decision) for report in self.reports]

    @property
    def statuses(self) -> dict[str, str]:
        return {node.id: node.status for node in self.tree.tree().children}


@asynccontextmanager
async def stage(*children: Spec[Any], clock: ManualClock | None = None, **options: Any) -> AsyncIterator[Stage]:
    root = SupervisorSpec(id="root", children=children, **options)
    clock = clock or ManualClock()
    reports: list[ChildReport] = []
    async with open_tree(root, clock=clock, report=reports.append) as tree:
        try:
            yield Stage(root, clock, tree, reports)
        except BaseException:
            # A test that fails must not hang on an actor whose shutdown time nobody moves any more.
            rescues.append(asyncio.ensure_future(clock.advance(3600)))
            raise


rescues: list["asyncio.Future[None]"] = []  # the event loop itself holds tasks only weakly


class Outcome:
    """What became of a coroutine that runs beside the test: ``value`` or ``error``, once ``done``."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self._done = False

    def done(self) -> bool:
        return self._done

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        try:
            self.value = await coroutine
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self._done = True


@asynccontextmanager
async def beside() -> AsyncIterator[Callable[[Coroutine[Any, Any, Any]], Outcome]]:
    """Run coroutines beside the test, in the order of their start; what still runs at the end is cancelled."""
    async with create_task_group() as tasks:

        def start(coroutine: Coroutine[Any, Any, Any]) -> Outcome:
            outcome = Outcome()
            tasks.start_soon(outcome.run, coroutine)
            return outcome

        yield start
        tasks.cancel_scope.cancel()
