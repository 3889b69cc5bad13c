"""One attempt as its events tell it (contract.md, section 6.2)."""

from typing import Literal, TypeAlias

from tallystick.contract.events import AttemptDecided, AttemptEnded, AttemptStarted, Record

AttemptState: TypeAlias = Literal["in_flight", "committed", "failed", "unusable", "unresolved", "unknown", "abandoned"]


class Attempt:
    """One attempt and everything that was written about it."""

    __slots__ = ("committed", "decided", "ended", "started", "survived")

    def __init__(self, started: AttemptStarted) -> None:
        self.started = started
        self.ended: AttemptEnded | None = None
        self.decided: AttemptDecided | None = None
        self.committed: Record | None = None
        #: A later call of its script had seen this failure: it stays one (contract.md, section 6.3).
        self.survived = False

    @property
    def state(self) -> AttemptState:
        """The attempt's state. Unknown outcomes are *unresolved* where a second execution would cost."""
        if self.committed is not None:
            return "committed"
        if self.decided is not None and self.decided.decision == "abandon":
            return "abandoned"
        if self.ended is None:
            return "in_flight"
        if self.ended.outcome == "unknown":
            return "unresolved" if self.started.effect == "side_effecting" else "unknown"
        return self.ended.outcome

    @property
    def open(self) -> bool:
        """True while the attempt holds its identity: in flight or unresolved."""
        return self.state in ("in_flight", "unresolved")

    @property
    def cost(self) -> int | None:
        """What it cost in micro-dollars; None when nobody knows. An abandoned attempt counts at its estimate."""
        if self.committed is not None:
            return self.committed.cost
        if self.state == "abandoned":
            known = self.ended.cost if self.ended is not None else None
            return self.started.reserved if known is None else known
        return self.ended.cost if self.ended is not None else None

    @property
    def held(self) -> int:
        """Micro-dollars that the budget must still set aside for it: its reservation while its cost is unknown."""
        return self.started.reserved if self.cost is None else 0

    @property
    def holds_site(self) -> bool:
        """True while its site must stay as it is: a side effect that is open, or paid for without a usable answer."""
        return self.started.effect == "side_effecting" and self.state in ("in_flight", "unresolved", "unusable")
