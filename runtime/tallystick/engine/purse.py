"""What all runs together may spend today: the daemon's cap, reserved before a call, settled with its true cost."""

from collections.abc import Callable, Iterable

from tallystick.contract.budget import Cap
from tallystick.contract.day_spend import DaySpend
from tallystick.contract.events import AnyEvent
from tallystick.kernel import Clock


class Purse:
    """The daemon's cap over all runs; ``limit`` is micro-dollars a day (UTC), None for no cap.

    It follows the journal, so that a cost that becomes known later counts too, and belongs to the loop.
    """

    def __init__(self, limit: int | None, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._spend = DaySpend(clock.now())
        self._in_flight = 0
        self._waiting: set[Callable[[], None]] = set()

    @property
    def began(self) -> float | None:
        """When the day began (Unix time) whose events it has to know; None where there is no cap."""
        return None if self._limit is None else self._spend.began

    def catch_up(self, events: Iterable[AnyEvent]) -> None:
        """Take what the journal held of today before the daemon started."""
        for event in events:
            self._spend.apply(event)

    def apply(self, event: AnyEvent) -> None:
        """Take an event that is durable."""
        if self._limit is not None:
            self._today().apply(event)

    def cap(self) -> Cap | None:
        """Return how the cap stands; None where there is none."""
        return None if self._limit is None else Cap(self._limit, self._today().total, self._in_flight)

    def take(self, amount: int) -> None:
        """Set an amount aside for a call."""
        self._in_flight += amount

    def give_back(self, amount: int) -> None:
        """Give a reservation back once the journal holds what the call has cost; whoever waited looks again."""
        self._in_flight -= amount
        waiting, self._waiting = self._waiting, set()
        for wake in waiting:
            wake()

    def call_back(self, wake: Callable[[], None]) -> None:
        """Have ``wake`` called, once, when a reservation is given back."""
        self._waiting.add(wake)

    def _today(self) -> DaySpend:
        now = DaySpend(self._clock.now())
        if now.day != self._spend.day:
            self._spend = now
        return self._spend
