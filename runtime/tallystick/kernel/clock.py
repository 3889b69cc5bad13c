"""Time as a value that is handed in: the system's, or one that tests move by hand.

No other module asks the operating system for the time.
"""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from anyio import CancelScope, sleep
from anyio.lowlevel import checkpoint


class Timer(Protocol):
    """A callback that waits for its time."""

    def cancel(self) -> None:
        """Forget the callback; harmless when it has run."""


class Clock(Protocol):
    """What the time is, and how to wait for a later one. All times are seconds."""

    def now(self) -> float:
        """Return Unix time, for people and records; it may jump."""

    def monotonic(self) -> float:
        """Return a time that never goes back, for durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less lets other tasks run once."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back once from the event loop after that time. Cheaper than a task that sleeps."""


@contextmanager
def cancel_after(clock: Clock, seconds: float | None) -> Iterator[CancelScope]:
    """Cancel the body when the time is over; ``scope.cancelled_caught`` tells afterwards whether that happened.

    Args:
        clock: whose time counts.
        seconds: how long the body may take; None is without limit.
    """
    with CancelScope() as scope:
        if seconds is None:
            yield scope
            return
        timer = clock.call_later(seconds, scope.cancel)
        try:
            yield scope
        finally:
            timer.cancel()


class SystemClock:
    """The operating system's time."""

    def now(self) -> float:
        """Return Unix time."""
        return time.time()  # noqa: TID251 - this is the one place that may

    def monotonic(self) -> float:
        """Return the time since an arbitrary start."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back from the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


class ManualClock:
    """Time that stands still until ``advance`` moves it: for tests that must not wait.

    Args:
        start: Unix seconds at the beginning; ``monotonic`` begins at 0.
    """

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[_ManualTimer] = []
        self._sequence = 0

    def now(self) -> float:
        """Return Unix time: ``start`` and what was advanced since."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Return what was advanced so far."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until ``advance`` has moved that far."""
        if seconds <= 0:
            await checkpoint()
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back when ``advance`` has moved that far; timers of one instant fire in the order they were set."""
        timer = _ManualTimer((self._elapsed + seconds, self._sequence), callback)
        self._sequence += 1
        heapq.heappush(self._timers, timer)
        return timer

    async def advance(self, seconds: float) -> None:
        """Move the time, firing each timer at its own instant and letting all tasks come to rest after each.

        Timers that are set on the way fire too when they fall within the span. ``advance(0)`` lets tasks come to rest.
        """
        target = self._elapsed + seconds
        await _rest()
        while self._timers and self._timers[0].due[0] <= target:
            timer = heapq.heappop(self._timers)
            if timer.callback is None:
                continue
            self._elapsed = max(self._elapsed, timer.due[0])
            timer.callback()
            await _rest()
        self._elapsed = max(self._elapsed, target)


class _ManualTimer:
    def __init__(self, due: tuple[float, int], callback: Callable[[], object]) -> None:
        self.due = due
        self.callback: Callable[[], object] | None = callback

    def __lt__(self, other: "_ManualTimer") -> bool:
        return self.due < other.due

    def cancel(self) -> None:
        self.callback = None


_resting: set[object] = set()


async def _rest() -> None:
    """Run the event loop until nothing in it is ready but calls of this function.

    anyio's wait_all_tasks_blocked looks at tasks only, misses callbacks on their way, and sleeps in real time.
    """
    me = object()
    _resting.add(me)
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public tells this
    try:
        await checkpoint()
        while len(ready) >= len(_resting):
            await checkpoint()
    finally:
        _resting.discard(me)
