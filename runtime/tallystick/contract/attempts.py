"""One attempt as its events tell it (contract.md, section 6.2)."""

from typing import Literal, TypeAlias

from tallystick.contract.capability import FailureKind
from tallystick.contract.events import (
    AttemptAnswered,
    AttemptDecided,
    AttemptEnded,
    AttemptFound,
    AttemptPriced,
    AttemptStarted,
    Record,
    Stored,
)
from tallystick.contract.tokens import tokens_of

AttemptState: TypeAlias = Literal[
    "in_flight", "committed", "failed", "unusable", "unresolved", "unknown", "resent", "abandoned"
]


class Attempt:
    """One attempt and everything that was written about it."""

    __slots__ = (
        "answered",
        "committed",
        "decided",
        "ended",
        "found",
        "priced",
        "resent",
        "started",
        "submitted",
        "survived",
    )

    def __init__(self, started: AttemptStarted) -> None:
        self.started = started
        #: The provider's id of its work.
        self.submitted: str | None = None
        self.answered: AttemptAnswered | None = None
        self.ended: AttemptEnded | None = None
        #: What the provider said of it later; it counts in place of an unknown end.
        self.found: AttemptFound | None = None
        self.decided: AttemptDecided | None = None
        self.priced: AttemptPriced | None = None
        self.committed: Record | None = None
        #: A later attempt has sent its call again under its key, and answers for both.
        self.resent = False
        #: A later call of its script had seen this failure: it stays one (contract.md, section 6.3).
        self.survived = False

    @property
    def state(self) -> AttemptState:
        """The attempt's state. Unknown outcomes are *unresolved* where a second execution would cost."""
        if self.committed is not None:
            return "committed"
        if self.decided is not None and self.decided.decision == "abandon":
            return "abandoned"
        if self.resent:
            return "resent"
        end = self.end
        if end is None:
            return "in_flight"
        if end.outcome == "unknown":
            return "unresolved" if self.started.effect == "side_effecting" else "unknown"
        return end.outcome

    @property
    def end(self) -> AttemptEnded | AttemptFound | None:
        """How it ended without a record, by the last word on it."""
        return self.found if self.found is not None else self.ended

    @property
    def kind(self) -> FailureKind | None:
        """The kind of its failure, None where it has none."""
        return self.end.kind if self.end is not None else None

    @property
    def text(self) -> str:
        """What was said of its failure."""
        return self.end.text if self.end is not None else ""

    @property
    def job(self) -> str | None:
        """The provider's id of its work, where one is known."""
        return self.submitted or (self.ended.job if self.ended is not None else None)

    @property
    def raw(self) -> Stored | None:
        """The answer as it came, where it was kept."""
        for said in (self.found, self.ended, self.answered):
            if said is not None and said.raw is not None:
                return said.raw
        return None

    @property
    def open(self) -> bool:
        """True while the attempt holds its identity: in flight or unresolved."""
        return self.state in ("in_flight", "unresolved")

    @property
    def cost(self) -> int | None:
        """What it cost in micro-dollars; None when nobody knows.

        An abandoned attempt counts at its estimate. One whose call was sent again costs nothing beside the one that
        sent it: the provider carries out one call a key.
        """
        known = self.priced.cost if self.priced is not None else self._said
        if known is not None:
            return known
        state = self.state
        return self.started.reserved if state == "abandoned" else 0 if state == "resent" else None

    @property
    def is_unpriced(self) -> bool:
        """True when no provider has said what it cost, so that only a person can."""
        return not self.is_billed and self.state not in ("in_flight", "unresolved", "resent")

    @property
    def is_billed(self) -> bool:
        """True when the provider has said what it cost."""
        return self._said is not None

    @property
    def _said(self) -> int | None:
        """What the provider said that it cost."""
        if self.committed is not None and self.committed.cost is not None:
            return self.committed.cost
        for said in (self.found, self.ended, self.answered):
            if said is not None and said.cost is not None:
                return said.cost
        return None

    @property
    def held(self) -> int:
        """Micro-dollars that the budget must still set aside for it: its reservation while its cost is unknown."""
        return self.started.reserved if self.cost is None else 0

    @property
    def tokens(self) -> int | None:
        """How many tokens it has used; None when nobody knows and some were expected.

        As with money, one that was abandoned counts at what was reserved, and one that was sent again at nothing.
        """
        used = tokens_of(self.committed.usage) if self.committed is not None else None
        if used is not None:
            return used
        if self.state == "abandoned":
            return self.started.reserved_tokens
        return 0 if self.state in ("failed", "resent") or not self.started.reserved_tokens else None

    @property
    def held_tokens(self) -> int:
        """Tokens that the budget must still set aside for it."""
        return self.started.reserved_tokens if self.tokens is None else 0

    @property
    def holds_site(self) -> bool:
        """True while its site must stay as it is: a side effect that is open, or paid for without a usable answer."""
        return self.started.effect == "side_effecting" and self.state in ("in_flight", "unresolved", "unusable")
