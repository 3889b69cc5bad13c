"""Waits of calls that end early once nobody wants the call: its launch was stopped, or its branch lost its race."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from anyio import CancelScope

from tallystick.engine.slots import LaunchStoppedError
from tallystick.kernel import Clock


class Naps:
    """The waits of one run; each holds who to ask whether it still has a point."""

    def __init__(self) -> None:
        self._waking: dict[Callable[[], object], Callable[[], bool]] = {}

    async def sleep(self, clock: Clock, seconds: float, wanted: Callable[[], bool]) -> None:
        """Wait.

        Raises:
            LaunchStoppedError: nobody wants the call any more.
        """
        woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def wake(*, early: bool = True) -> None:
            if not woken.done():
                woken.set_result(early)

        self._waking[wake] = wanted
        timer = clock.call_later(seconds, lambda: wake(early=False))
        try:
            if await woken:
                raise LaunchStoppedError
        finally:
            timer.cancel()
            del self._waking[wake]

    @contextmanager
    def until_unwanted(self, wanted: Callable[[], bool]) -> Iterator[None]:
        """Give the body up once nobody wants the call."""
        with CancelScope() as scope:
            cancel = scope.cancel
            self._waking[cancel] = wanted
            try:
                yield
            finally:
                del self._waking[cancel]

    def reconsider(self) -> None:
        """End every wait that has lost its point."""
        for wake, wanted in list(self._waking.items()):
            if not wanted():
                wake()
