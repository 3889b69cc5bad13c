"""What all runs together have spent in one day: a fold over their events (contract.md, section 1)."""

from typing import TypeAlias

from tallystick.contract.events import (
    AnyEvent,
    AttemptAnswered,
    AttemptDecided,
    AttemptEnded,
    AttemptFound,
    AttemptPriced,
    AttemptStarted,
    CandidateAsked,
    CandidateJudged,
    Committed,
)

DAY = 86_400
_Call: TypeAlias = tuple[str, str, int]


class DaySpend:
    """The calls that began on one day (UTC), and what they came to.

    A call counts for the day on which it was sent: at its cost, or where nobody knows that at its reservation. What is
    in flight does not count yet. Calls of other days are passed over, whatever becomes known of them.

    Attributes:
        total: micro-dollars.
    """

    def __init__(self, at: float) -> None:
        self.day = int(at // DAY)
        self.total = 0
        self._reserved: dict[_Call, int] = {}
        self._counted: dict[_Call, int] = {}

    @property
    def began(self) -> float:
        """When the day began (Unix time)."""
        return float(self.day * DAY)

    def apply(self, event: AnyEvent) -> None:
        """Take an event of any run."""
        match event:
            case AttemptStarted(attempt=number):
                self._begin(("call", event.run, number), event.at, event.reserved)
                if event.resends is not None:
                    self._settle(("call", event.run, event.resends), 0)
            case CandidateAsked(candidate=number):
                self._begin(("model", event.run, number), event.at, event.reserved)
            case AttemptEnded(attempt=number, cost=cost) | AttemptFound(attempt=number, cost=cost):
                self._settle(("call", event.run, number), cost)
            case AttemptAnswered(attempt=number, cost=cost) | AttemptPriced(attempt=number, cost=cost):
                self._settle(("call", event.run, number), cost)
            case AttemptDecided(attempt=number):
                self._settle(("call", event.run, number), None)
            case Committed(record=record):
                self._settle(("call", event.run, record.attempt), record.cost)
            case CandidateJudged(candidate=number, cost=cost):
                self._settle(("model", event.run, number), cost)
            case _:
                pass

    def _begin(self, call: _Call, at: float, reserved: int) -> None:
        if int(at // DAY) == self.day:
            self._reserved[call] = reserved

    def _settle(self, call: _Call, cost: int | None) -> None:
        """Count a call at its cost; an unknown one at its reservation, unless a cost was known before."""
        reserved = self._reserved.get(call)
        if reserved is None:
            return
        before = self._counted.get(call)
        now = cost if cost is not None else reserved if before is None else before
        self._counted[call] = now
        self.total += now - (before or 0)
