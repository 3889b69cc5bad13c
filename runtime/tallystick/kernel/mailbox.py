"""A bounded mailbox with one reader. It belongs to one event loop and is not safe across threads."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

from tallystick.kernel.errors import ActorStoppedError, MailboxFullError
from tallystick.kernel.message import Envelope, Reply, accept, reject

WhenFull: TypeAlias = Literal["reject", "wait"]


class Mailbox:
    """Messages in the order in which they came, up to ``size``.

    When it is full, ``put`` always refuses. ``offer`` refuses too (``reject``), or queues the sender behind the
    mailbox until there is room (``wait``): the sender, who waits, is the back-pressure.

    Args:
        path: whose mailbox it is, for messages to people.
        size: how many messages it holds.
        when_full: what ``offer`` does then.
    """

    __slots__ = ("_items", "_path", "_refusal", "_room", "_waiting", "_waker", "_when_full")

    def __init__(self, path: str, size: int, when_full: WhenFull) -> None:
        self._path = path
        self._room = size  # 0 once closed, so that the one comparison of `put` serves both
        self._when_full = when_full
        self._items: deque[Envelope] = deque()
        self._waiting: OrderedDict[Reply, Envelope] = OrderedDict()
        self._waker: asyncio.Future[None] | None = None
        self._refusal: Callable[[], Exception] = partial(MailboxFullError, path, size)

    @classmethod
    def shut(cls, path: str) -> "Mailbox":
        """Make the mailbox of an actor that does not run."""
        box = cls(path, 1, "reject")
        box.close(partial(ActorStoppedError, path))
        return box

    @property
    def open(self) -> bool:
        """Whether it takes messages at all."""
        return self._room > 0

    def put(self, message: Any, reply: Reply | None = None) -> None:
        """Add a message, or refuse it at once.

        Raises:
            MailboxFullError: there is no room.
            ActorGoneError: the mailbox was closed.
        """
        if len(self._items) >= self._room:
            raise self._refusal()
        self._items.append((message, reply))
        if self._waker is not None:
            accept(self._waker, None)

    def offer(self, message: Any, reply: Reply | None = None) -> Reply | None:
        """Add a message, or queue it behind a full mailbox.

        Returns:
            None when it was added; else the future that waits for it: the reply, or for a message without reply one
            that is done once the message was added. A message whose future is cancelled is not added any more.

        Raises:
            MailboxFullError: there is no room and the policy is ``reject``.
            ActorGoneError: the mailbox was closed.
        """
        if self._when_full == "reject" or len(self._items) < self._room or not self.open:
            self.put(message, reply)
            return None
        waiter = asyncio.get_running_loop().create_future() if reply is None else reply
        self._waiting[waiter] = (message, reply)
        waiter.add_done_callback(self._withdraw)
        return waiter

    def take(self) -> Envelope | None:
        """Return the oldest message with its reply, or None when there is none."""
        if not self._items:
            return None
        envelope = self._items.popleft()
        if self._waiting:
            self._admit()
        return envelope

    async def wait(self) -> None:
        """Wait until there is a message, or the mailbox is closed. One reader at a time."""
        self._waker = asyncio.get_running_loop().create_future()
        try:
            await self._waker
        finally:
            self._waker = None

    def close(self, refusal: Callable[[], Exception]) -> None:
        """Refuse everything from now on, and everybody who waits. Closing again changes nothing.

        Args:
            refusal: makes the error; a new one for each caller, because raising writes into it.
        """
        if not self.open:
            return
        self._room = 0
        self._refusal = refusal
        for _, reply in self._items:
            if reply is not None:
                reject(reply, refusal())
        for waiter in self._waiting:
            reject(waiter, refusal())
        self._items.clear()
        self._waiting.clear()
        if self._waker is not None:
            accept(self._waker, None)

    def _admit(self) -> None:
        """Let the longest waiting sender in, past those who gave up just now."""
        while self._waiting:
            waiter, envelope = self._waiting.popitem(last=False)
            if not waiter.done():
                self._items.append(envelope)
                if envelope[1] is None:
                    waiter.set_result(None)
                return

    def _withdraw(self, waiter: Reply) -> None:
        self._waiting.pop(waiter, None)
