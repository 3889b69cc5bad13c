"""A live run as the actors on the path of its calls share it: history, limits, money in flight, who watches.

It belongs to the loop: all of it is read and changed between two awaits, so that no lock is needed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from tallystick.contract.capability import MICROS_PER_USD, Envelope
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.runtime_rule import fits_budget
from tallystick.engine.feed import Feed
from tallystick.engine.messages import Calls, Phase, Progress, ProgressKind, Spend
from tallystick.engine.slots import Slots, Waiters, drop


class LiveRun:
    """What a run needs in memory while a launch of it is live."""

    def __init__(self, history: History, envelope: Envelope, *, faults: tuple[str, ...], latency: float) -> None:
        self.history = history
        self.envelope = envelope
        self.faults = faults
        self.latency = latency
        self.slots = Slots(envelope.concurrency)
        self.queued: Waiters = set()
        self.feed = Feed()
        self.accepts_work: Callable[[], bool] = lambda: True
        self.calls = Calls()
        self.phase: Phase = "queued"
        self.in_flight = 0
        self.saved = 0
        self._reserved = 0
        self._attempts = max(history.attempts, default=0)
        self._executions: Counter[str] = Counter(history.executions)
        self._room: asyncio.Event | None = None

    @property
    def run(self) -> str:
        """The run's id."""
        return self.history.run

    @property
    def seed(self) -> int:
        """The seed that the run's samples derive from."""
        return self.history.created.seed if self.history.created is not None else 0

    def next_attempt(self, capability: str) -> tuple[int, int]:
        """Number an attempt within the run, and its execution within its capability, both from 1."""
        self._attempts += 1
        self._executions[capability] += 1
        return self._attempts, self._executions[capability]

    async def reserve(self, estimate: int) -> bool:
        """Set ``estimate`` micro-dollars aside; False when they do not fit.

        Waits while calls in flight may still turn out cheaper than what is reserved for them.
        """
        while self.accepts_work():
            history = self.history
            if fits_budget(self.envelope, history.spent, history.held + self._reserved, estimate):
                self._reserved += estimate
                return True
            if not self._reserved or not fits_budget(self.envelope, history.spent, history.held, estimate):
                return False
            await self.changed()
        return False

    @property
    def reserved(self) -> int:
        """Micro-dollars reserved for calls in flight."""
        return self._reserved

    def release(self, estimate: int) -> None:
        """Give a reservation back, once the history holds the call's true cost."""
        self._reserved -= estimate
        self.wake()

    async def changed(self) -> None:
        """Wait until a call of this run has settled."""
        if self._room is None:
            self._room = asyncio.Event()
        await self._room.wait()

    def stop(self) -> None:
        """Let go of every call of this run that has not been sent."""
        drop(self.queued)
        self.wake()

    def wake(self) -> None:
        """Let calls that wait for room look again."""
        room, self._room = self._room, None
        if room is not None:
            room.set()

    def line(
        self,
        kind: ProgressKind,
        at: float,
        *,
        identity: Identity | None = None,
        capability: str = "",
        text: str = "",
        cost: int | None = None,
    ) -> Progress:
        """Return a line of this run's stream: what happened, and where the run stands."""
        return Progress(
            kind=kind,
            at=at,
            identity=identity,
            capability=capability,
            text=text,
            cost_usd=None if cost is None else cost / MICROS_PER_USD,
            calls=self.calls,
            in_flight=self.in_flight,
            spend=spend_of(self.history, self.saved),
        )

    def tell(
        self,
        kind: ProgressKind,
        at: float,
        *,
        identity: Identity | None = None,
        capability: str = "",
        text: str = "",
        cost: int | None = None,
    ) -> None:
        """Tell everyone who watches this run."""
        if self.feed.watched:
            self.feed.publish(self.line(kind, at, identity=identity, capability=capability, text=text, cost=cost))

    def count(self, counts: Counter[str], saved: int) -> None:
        """Take over the launch's counters."""
        self.saved = saved
        self.calls = Calls(**{name: counts[name] for name in Calls.__struct_fields__})


def spend_of(history: History, saved: int) -> Spend:
    """Sum a run's money as clients see it; ``saved`` is what the replays of its latest launch had cost."""
    return Spend(
        usd=history.spent / MICROS_PER_USD,
        unpriced=history.unpriced,
        reserved_usd=(history.held + history.held_in_flight) / MICROS_PER_USD,
        replay_saved_usd=saved / MICROS_PER_USD,
    )
