"""Children of a supervisor: their specification as data, and the cell that runs one through all its lives."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import msgspec
from anyio import CancelScope, Event, get_cancelled_exc_class
from anyio.abc import TaskGroup

from tallystick.kernel.actor import Actor
from tallystick.kernel.clock import Clock, cancel_after
from tallystick.kernel.errors import ChildSpecError, ShutdownTimeError, StartError
from tallystick.kernel.life import Life
from tallystick.kernel.mailbox import Mailbox, WhenFull
from tallystick.kernel.message import Reply, accept, reject
from tallystick.kernel.ref import Ref

M = TypeVar("M")

Kind: TypeAlias = Literal["worker", "supervisor"]
Restart: TypeAlias = Literal["permanent", "transient", "temporary"]
Status: TypeAlias = Literal["starting", "running", "restarting", "stopping", "stopped"]


class ChildReport(msgspec.Struct, frozen=True, kw_only=True):
    """A child that ended otherwise than it was asked to, for the log.

    Attributes:
        path: its place in the tree.
        error: the crash; None when a permanent child ended normally.
        decision: what its supervisor does: ``restart`` it after ``delay`` seconds, ``remove`` it, ``escalate`` because
            the budget is spent or the supervisor is still starting, or go on to ``stop`` it.
        delay: seconds before the restart.
    """

    path: str
    error: Exception | None
    decision: Literal["restart", "remove", "escalate", "stop"]
    delay: float = 0.0


Report: TypeAlias = Callable[[ChildReport], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spec(Generic[M]):
    """What all children have in common. A specification is good for one child at a time.

    Attributes:
        id: unique among its siblings.
        restart: ``permanent`` after every end, ``transient`` after a crash only, ``temporary`` never.
        shutdown: seconds between the stop and the cancellation; None is without limit.
        mailbox: how many messages it holds.
        when_full: ``reject`` refuses a message that has no room, ``wait`` makes ``send`` and ``ask`` wait for it.
        ref: the child's address, before, during and between its lives.
    """

    kind: ClassVar[Kind] = "worker"

    id: str
    restart: Restart = "permanent"
    shutdown: float | None = 5.0
    mailbox: int = 1024
    when_full: WhenFull = "reject"
    ref: Ref[M] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the specification and make the ref.

        Raises:
            ChildSpecError: a value is out of range.
        """
        if not self.id or "/" in self.id:
            raise ChildSpecError(f"a child's id is a name without a slash, not {self.id!r}")
        if self.restart not in ("permanent", "transient", "temporary"):
            raise ChildSpecError(f"{self.id}: restart is permanent, transient or temporary, not {self.restart!r}")
        if self.when_full not in ("reject", "wait"):
            raise ChildSpecError(f"{self.id}: when_full is reject or wait, not {self.when_full!r}")
        if self.mailbox < 1 or (self.shutdown is not None and self.shutdown < 0):
            raise ChildSpecError(f"{self.id}: a mailbox holds at least 1 message, a shutdown time is not negative")
        object.__setattr__(self, "ref", Ref(self.id))

    def create(self, report: Report) -> Actor[M]:
        """Make the actor of one life."""
        raise NotImplementedError

    def restarts_after(self, error: Exception | None) -> bool:
        """Whether a child that ended so is started again."""
        return self.restart == "permanent" or (self.restart == "transient" and error is not None)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChildSpec(Spec[M]):
    """A worker: ``factory`` makes a new actor for each life."""

    factory: Callable[[], Actor[M]]

    def create(self, report: Report) -> Actor[M]:  # noqa: ARG002 - a worker has no children to report
        """Make the actor of one life."""
        return self.factory()


class Cell:
    """One child through all its lives: its mailbox, its status, how it starts and how it stops.

    Args:
        spec: the child's specification.
        parent: the path of its supervisor, empty for the root.
        clock: the clock of the tree.
        report: hears of children that ended otherwise than asked.
        ended: called when a life ended that was neither stopped nor still starting.

    Attributes:
        status: where it stands.
        restarts: how often it was restarted.
        wanted: whether it shall live, now or after its restart.
        leaving: whether it goes for good, or has gone.

    Raises:
        ChildSpecError: the specification is in use.
    """

    def __init__(
        self,
        spec: Spec[Any],
        *,
        parent: str,
        clock: Clock,
        report: Report,
        ended: Callable[["Cell", Exception | None], None],
    ) -> None:
        self.spec = spec
        self.path = f"{parent}/{spec.id}" if parent else spec.id
        self.status: Status = "starting"
        self.restarts = 0
        self.wanted = True
        self.leaving = False
        self._clock = clock
        self._report = report
        self._ended = ended
        self._open()

    @property
    def actor(self) -> Actor[Any] | None:
        """The actor of the current life, once it was made."""
        return self._life.actor

    async def start(self, tasks: TaskGroup) -> None:
        """Begin a life in that task group; return when ``on_start`` has returned.

        Raises:
            StartError: the factory or ``on_start`` failed, or the child was stopped meanwhile.
        """
        self.status = "starting"
        started: Reply = asyncio.get_running_loop().create_future()
        scope = self._scope
        tasks.start_soon(self._run, started)
        try:
            await started
        except get_cancelled_exc_class():
            scope.cancel()
            raise

    def await_restart(self) -> None:
        """Take messages again: the next life will handle them."""
        self.status = "restarting"
        self.wanted = True
        self.restarts += 1
        self._open()

    def cancel_restart(self) -> None:
        """Refuse them after all."""
        if self.status == "restarting":
            self.status = "stopped"
            self.wanted = False
            self._life.stop()
            self.spec.ref.release()

    async def stop(self) -> Exception | None:
        """Stop the child, and cancel it when its shutdown time is over; return when it has ended.

        Returns:
            What went wrong on the way: a crash, or that its shutdown time was over.
        """
        self.cancel_restart()
        if self.status == "stopped":
            return None
        self.wanted = False
        self.status = "stopping"
        life, scope, over = self._life, self._scope, self._over
        life.stop()
        with cancel_after(self._clock, self.spec.shutdown):
            await over.wait()
        if self.spec.shutdown is None or over.is_set():
            return life.error
        scope.cancel()
        await over.wait()
        return ShutdownTimeError(self.path, self.spec.shutdown)

    def _open(self) -> None:
        box = Mailbox(self.path, self.spec.mailbox, self.spec.when_full)
        self.spec.ref.bind(box, self._clock)
        self._life = Life(
            partial(self.spec.create, self._report),
            ref=self.spec.ref,
            box=box,
            clock=self._clock,
            path=self.path,
            shutdown=self.spec.shutdown,
        )
        self._scope = CancelScope()
        self._over = Event()

    async def _run(self, started: Reply) -> None:
        try:
            with self._scope:
                await self._life.run(partial(self._has_started, started))
        finally:
            self.status = "stopped"
            self.spec.ref.release()
            self._over.set()
            error = self._life.error
            failed = StartError(self.path, f"{type(error).__name__}: {error}" if error else "it was stopped first")
            failed.__cause__ = error
            came_up = started.done() and not started.cancelled()  # cancelled: whoever did it takes care of the child
            reject(started, failed)
        if came_up and self.wanted:
            self._ended(self, error)

    def _has_started(self, started: Reply) -> None:
        if self.status == "starting":
            self.status = "running"
        accept(started, None)
