"""A live run as the actors on the path of its calls share it: history, limits, money in flight, who watches.

It belongs to the loop: all of it is read and changed between two awaits, so that no lock is needed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.budget import over_price, shortfall
from tallystick.contract.capability import MICROS_PER_USD, Envelope, Reservation
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.runtime_rule import CallRequest, Stop
from tallystick.engine.feed import Feed
from tallystick.engine.messages import Calls, Phase, Progress, ProgressKind, Spend
from tallystick.engine.naps import Naps
from tallystick.engine.purse import Purse
from tallystick.engine.retries import remembered_waits
from tallystick.engine.slots import LaunchStoppedError, Slots, Waiters, drop


class LiveRun:
    """What a run needs in memory while a launch of it is live."""

    def __init__(self, history: History, envelope: Envelope, *, faults: tuple[str, ...], latency: float) -> None:
        self.history = history
        self.envelope = envelope
        self.faults = faults
        self.latency = latency
        self.slots = Slots(envelope.concurrency)
        self.queued: Waiters = set()
        self.naps = Naps()
        #: Until when (Unix time) providers had asked to be left alone, by capability and provider.
        self.waits = remembered_waits(history)
        #: Until when (Unix time) nothing of a capability is sent, and how people are told so.
        self.pauses: dict[str, tuple[float, str]] = {}
        #: What the report should say beside what the launch says.
        self.warnings: list[str] = []
        self.feed = Feed()
        self.accepts_work: Callable[[], bool] = lambda: True
        self.calls = Calls()
        self.phase: Phase = "queued"
        self.in_flight = 0
        self.saved = 0
        self.saved_unpriced = 0
        self._reserved = Reservation()
        self._dear: dict[str, Attempt] = {}
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

    async def reserve(self, call: CallRequest, want: Reservation, purse: Purse) -> Stop | None:
        """Set money and tokens aside for a call; return why they do not fit, None when they are set aside.

        Waits while calls in flight may still turn out cheaper than what is reserved for them.

        Raises:
            LaunchStoppedError: the launch was stopped meanwhile; nothing is set aside.
        """
        while self.accepts_work():
            dear = self._dear.get(call.capability)
            if dear is not None:
                return over_price(call, dear)
            short = shortfall(
                call,
                want,
                envelope=self.envelope,
                history=self.history,
                in_flight=self._reserved,
                cap=purse.cap(),
            )
            if short is None:
                self._reserved += want
                purse.take(want.usd)
                return None
            if short.final:
                return short.stop
            purse.call_back(self.wake)
            await self.changed()
        raise LaunchStoppedError

    def set_budget(self, budget: int) -> None:
        """Have another budget (micro-dollars) hold from the next reservation on."""
        self.envelope = msgspec.structs.replace(self.envelope, budget=budget)
        self.wake()

    def release(self, want: Reservation, purse: Purse) -> None:
        """Give a reservation back, once the history holds what the call has cost."""
        self._reserved -= want
        purse.give_back(want.usd)
        self.wake()

    def check_price(self, attempt: Attempt, ceiling: int | None) -> None:
        """Send no further call of a capability in this launch once one has cost more than its ceiling."""
        if ceiling is not None and (attempt.cost or 0) > ceiling:
            self._dear.setdefault(attempt.started.capability, attempt)

    async def changed(self) -> None:
        """Wait until a call of this run has settled."""
        if self._room is None:
            self._room = asyncio.Event()
        await self._room.wait()

    def stop(self) -> None:
        """Let go of every call of this run that has not been sent."""
        drop(self.queued)
        self.naps.reconsider()
        self.wake()

    def pause(self, capability: str, until: float, text: str, at: float) -> None:
        """Tell once that nothing of a capability is sent until then (Unix time)."""
        if self.pauses.get(capability) != (until, text):
            self.pauses[capability] = (until, text)
            self.tell("retrying", at, capability=capability, text=text)

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
            spend=spend_of(self.history, self.saved, self.saved_unpriced),
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

    def count(self, counts: Counter[str], saved: int, unpriced: int) -> None:
        """Take over the launch's counters."""
        self.saved, self.saved_unpriced = saved, unpriced
        self.calls = Calls(**{name: counts[name] for name in Calls.__struct_fields__})


def spend_of(history: History, saved: int = 0, unpriced: int = 0) -> Spend:
    """Sum a run's money as clients see it; ``saved`` is what the replays of its latest launch had cost.

    ``unpriced`` of these replays had come without a price.
    """
    return Spend(
        usd=history.spent / MICROS_PER_USD,
        models_usd=sum(one.cost or 0 for one in history.candidates.values()) / MICROS_PER_USD,
        unpriced=history.unpriced,
        reserved_usd=(history.held + history.held_in_flight) / MICROS_PER_USD,
        replay_saved_usd=saved / MICROS_PER_USD,
        replay_unpriced=unpriced,
        tokens=history.tokens,
        reserved_tokens=history.tokens_held,
    )
