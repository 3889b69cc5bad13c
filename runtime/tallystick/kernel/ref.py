"""The address of an actor: all that its callers hold."""

import asyncio
from functools import partial
from typing import Generic, TypeVar

from tallystick.kernel.clock import Clock
from tallystick.kernel.errors import ChildSpecError, DeadlineError
from tallystick.kernel.mailbox import Mailbox
from tallystick.kernel.message import Reply, Request, reject

M_contra = TypeVar("M_contra", contravariant=True)
T = TypeVar("T")


class Ref(Generic[M_contra]):
    """Where messages of type ``M`` go. It stays valid while its actor is restarted.

    A message that was accepted is handled at most once: what is queued when the actor dies or stops is dropped, and
    whoever waits for a reply gets an error. While an actor waits for its restart, messages queue. An actor must not
    ask itself, nor one that is asking it: both would wait for ever. Refs belong to the event loop's thread; another
    thread uses ``loop.call_soon_threadsafe(ref.tell, message)``.

    Args:
        name: the id in the child specification.
    """

    __slots__ = ("_box", "_clock", "name")
    _clock: Clock  # there from the first bind on; before it, no message is accepted

    def __init__(self, name: str) -> None:
        self.name = name
        self._box = Mailbox.shut(name)

    def __repr__(self) -> str:
        """Name the actor."""
        return f"Ref({self.name!r})"

    def tell(self, message: M_contra) -> None:
        """Leave a message without waiting for anything.

        Raises:
            MailboxFullError: there is no room, whatever the mailbox's policy.
            ActorStoppedError: the actor does not run.
            ActorDiedError: it has just crashed and is being cleared away.
        """
        self._box.put(message)

    async def send(self, message: M_contra) -> None:
        """Leave a message; with the policy ``wait``, wait until there is room.

        Raises:
            MailboxFullError: there is no room and the policy is ``reject``.
            ActorGoneError: the actor does not run, or ended before there was room.
        """
        room = self._box.offer(message)
        if room is not None:
            await room

    async def ask(self, message: Request[T], deadline: float | None = None) -> T:
        """Leave a request and wait for its reply; with the policy ``wait``, for room too.

        Args:
            message: the request; its class says the type of the reply.
            deadline: seconds for room and reply together; None waits for as long as the actor lives.

        Raises:
            Exception: one of those that the actor lists in ``answers``.
            MailboxFullError: there is no room and the policy is ``reject``.
            ActorStoppedError: the actor does not run, or was stopped before it answered.
            ActorDiedError: it crashed before it answered.
            DeadlineError: the time was over.
        """
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._box.offer(message, reply)
        if deadline is None:
            return await reply
        timer = self._clock.call_later(deadline, partial(_expire, reply, self.name, deadline))
        try:
            return await reply
        finally:
            timer.cancel()

    def bind(self, box: Mailbox, clock: Clock) -> None:
        """For the kernel: let messages go there from now on.

        Raises:
            ChildSpecError: an actor runs under this ref already.
        """
        if self._box.open:
            raise ChildSpecError(f"{self.name} runs already: a child specification is good for one child at a time")
        self._box = box
        self._clock = clock

    def release(self) -> None:
        """For the kernel: refuse messages from now on; nobody runs under this ref any more."""
        self._box = Mailbox.shut(self.name)


def _expire(reply: Reply, name: str, seconds: float) -> None:
    reject(reply, DeadlineError(name, seconds))
