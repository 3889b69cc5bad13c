"""Slots of concurrency: at most so many calls at once, in the order of asking."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

Waiters: TypeAlias = "set[asyncio.Future[None]]"


class LaunchStoppedError(Exception):
    """The launch was stopped while this call waited for its turn; it was not sent."""


class Slots:
    """At most ``limit`` holders at once. A slot that is given back goes to the next in line."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._line: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def held(self, waiters: Waiters) -> AsyncIterator[None]:
        """Wait for a slot and hold it. While it waits, the caller stands in ``waiters``, for ``drop`` to let go.

        Raises:
            LaunchStoppedError: ``drop`` was called meanwhile.
        """
        await self._acquire(waiters)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, waiters: Waiters) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._line.append(waiter)
        waiters.add(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release()
            raise
        finally:
            waiters.discard(waiter)

    def _release(self) -> None:
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


def drop(waiters: Waiters) -> None:
    """Let go of everyone in line, with ``LaunchStoppedError``."""
    for waiter in list(waiters):
        if not waiter.done():
            waiter.set_exception(LaunchStoppedError())
