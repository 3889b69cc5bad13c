"""One life of an actor, from its factory to its end: the loop over its mailbox, its tasks, those who wait for it."""

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVarTuple

from anyio import Event, create_task_group, current_effective_deadline, get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from tallystick.kernel.actor import Actor
from tallystick.kernel.clock import Clock, cancel_after
from tallystick.kernel.errors import ActorDiedError, ActorStoppedError, ShutdownTimeError, StrayCancellationError
from tallystick.kernel.mailbox import Mailbox
from tallystick.kernel.message import Deferred, Reply, accept, reject
from tallystick.kernel.ref import Ref

BURST = 32  # messages handled in a row before other tasks get their turn, however full the mailbox

Ts = TypeVarTuple("Ts")


class Life:
    """What the kernel keeps for an actor while it lives; a restart is a new life.

    Args:
        create: makes the actor.
        ref: the actor's address.
        box: the mailbox behind it.
        clock: the clock of the tree.
        path: the child's place in the tree, for messages to people.
        shutdown: seconds that ``on_stop`` may take; None is without limit.

    Attributes:
        actor: the actor, once it was made.
        error: the crash, if there was one; what failed after it is in its notes.
        tasks: the group of the actor's tasks.
    """

    tasks: TaskGroup

    def __init__(
        self,
        create: Callable[[], Actor[Any]],
        *,
        ref: Ref[Any],
        box: Mailbox,
        clock: Clock,
        path: str,
        shutdown: float | None,
    ) -> None:
        self._create = create
        self.ref = ref
        self.clock = clock
        self.path = path
        self.actor: Actor[Any] | None = None
        self.error: Exception | None = None
        self._box = box
        self._shutdown = shutdown
        self._in_hand: Reply | None = None
        self._deferred: set[Deferred[Any]] = set()
        self._running = 0
        self._idle = Event()
        self._on_stop: Callable[[], Awaitable[None]] | None = None

    async def run(self, started: Callable[[], None]) -> None:
        """Live. Never raises an Exception: a crash is left in ``error``.

        Args:
            started: called when ``on_start`` has returned.
        """
        try:
            async with create_task_group() as self.tasks:
                await self._guard(self._live, started)
                self.tasks.cancel_scope.cancel()
        finally:
            self._refuse(partial(ActorStoppedError, self.path))
            await self._guard(self._finish)

    def stop(self) -> None:
        """Take no more messages, and end when the one in hand is done."""
        self._box.close(partial(ActorStoppedError, self.path))

    def crash(self, error: Exception) -> None:
        """Answer everybody who waits, and cancel the rest."""
        if self.error is not None:
            self.error.add_note(f"{self.path} then failed with {error!r} too")
            return
        self.error = error
        self._refuse(partial(ActorDiedError, self.path, error))
        self.tasks.cancel_scope.cancel()

    def spawn(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Run a task whose failure is a crash."""
        if not self._running:
            self._idle = Event()
        self._running += 1
        self.tasks.start_soon(self._task, function, *args)

    async def drain(self) -> None:
        """Wait until no task runs."""
        while self._running:
            await self._idle.wait()

    async def _live(self, started: Callable[[], None]) -> None:
        actor = self.actor = self._create()
        actor._life = self  # noqa: SLF001 - the base class is the kernel's other half
        await actor.on_start()
        self._on_stop = actor.on_stop
        started()
        await self._serve(actor)
        if self.error is None:  # after a crash, on_stop waits until the tasks are gone
            await self._finish()

    async def _finish(self) -> None:
        """Run ``on_stop`` if it is due; the first to come here takes it, so that it runs once."""
        on_stop, self._on_stop = self._on_stop, None
        if on_stop is None:
            return
        with cancel_after(self.clock, self._shutdown) as scope:
            await on_stop()
        if scope.cancelled_caught and self._shutdown is not None:
            self.crash(ShutdownTimeError(self.path, self._shutdown))

    async def _serve(self, actor: Actor[Any]) -> None:
        box, handle, answers = self._box, actor.handle, actor.answers
        handled = 0
        while True:
            envelope = box.take()
            if envelope is None:
                if not box.open:
                    return
                await box.wait()
                continue
            message, reply = envelope
            self._in_hand = reply
            try:
                answer = await handle(message)
            except answers as error:
                if reply is None:
                    raise
                reject(reply, error)
            else:
                if reply is not None:
                    if isinstance(answer, Deferred):
                        answer.answer(reply, self._deferred)
                    else:
                        accept(reply, answer)
            handled += 1
            if handled % BURST == 0:
                await checkpoint()

    async def _task(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        try:
            await self._guard(function, *args)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _guard(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Turn every failure into a crash, a cancellation that nobody above asked for included.

        Task groups take such a cancellation for a normal end: the actor would be gone without a word.
        """
        try:
            await function(*args)
        except Exception as error:  # noqa: BLE001 - the supervisor decides, whatever it is
            self.crash(error)
        except get_cancelled_exc_class():
            if current_effective_deadline() == -math.inf:
                raise
            self.crash(StrayCancellationError(self.path))

    def _refuse(self, refusal: Callable[[], Exception]) -> None:
        self._box.close(refusal)
        if self._in_hand is not None:  # the latest: if it was answered, rejecting it changes nothing
            reject(self._in_hand, refusal())
        for deferred in tuple(self._deferred):
            deferred.fail(refusal())
