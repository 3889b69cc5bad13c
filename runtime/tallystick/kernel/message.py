"""What goes between actors: messages, requests that have a reply, and replies that come later.

A reply is an asyncio future, not an anyio stream and event: those cost four times as much on the path of every call,
and the drivers above need asyncio anyway.
"""

import asyncio
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

Reply: TypeAlias = asyncio.Future[Any]
Envelope: TypeAlias = tuple[Any, Reply | None]


class Request(msgspec.Struct, Generic[T], frozen=True):
    """The base of messages that have a reply of type ``T``: ``class Total(Request[int], frozen=True)``."""


def accept(reply: Reply, value: object) -> None:
    """Answer, unless the asker is gone or was answered already: late replies are dropped."""
    if not reply.done():
        reply.set_result(value)


def reject(reply: Reply, error: BaseException) -> None:
    """Answer with an error, unless the asker is gone or was answered already."""
    if not reply.done():
        reply.set_exception(error)


class Deferred(Generic[T]):
    """A reply that comes later, so that ``handle`` need not wait for it: return one, resolve it when ready.

    It answers every request that it was returned for. The first outcome stands, later ones are dropped. When the
    actor ends, the kernel fails those that are still open. Belongs to the event loop's thread: another thread uses
    ``loop.call_soon_threadsafe(deferred.resolve, value)``.
    """

    __slots__ = ("_outcome", "_register", "_replies")

    def __init__(self) -> None:
        self._outcome: tuple[T | None, BaseException | None] | None = None
        self._replies: list[Reply] = []
        self._register: set[Deferred[Any]] | None = None

    def resolve(self, value: T) -> None:
        """Answer with a value."""
        self._settle(value, None)

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self._settle(None, error)

    def answer(self, reply: Reply, register: "set[Deferred[Any]]") -> None:
        """For the kernel: answer this reply too, and stand in the actor's register while open."""
        self._replies.append(reply)
        if self._outcome is None:
            self._register = register
            register.add(self)
        else:
            self._deliver(*self._outcome)

    def _settle(self, value: T | None, error: BaseException | None) -> None:
        if self._outcome is not None:
            return
        self._outcome = (value, error)
        if self._register is not None:
            self._register.discard(self)
        self._deliver(value, error)

    def _deliver(self, value: T | None, error: BaseException | None) -> None:
        for reply in self._replies:
            if error is None:
                accept(reply, value)
            else:
                reject(reply, error)
        self._replies.clear()
