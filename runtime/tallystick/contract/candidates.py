"""One script that a model was asked for, as its events tell it (contract.md, section 9).

A model call costs money like any other: it has a durable note before it is made, its reservation counts while its
cost is not known, and one that a crash cut off stays unknown and keeps its reservation.
"""

from typing import Literal, TypeAlias

from tallystick.contract.events import CandidateAsked, CandidateJudged

CandidateState: TypeAlias = Literal["asked", "accepted", "rejected", "no_script", "failed", "unknown"]


class Candidate:
    """One call of a model, and what was said of the script in its answer."""

    __slots__ = ("asked", "judged")

    def __init__(self, asked: CandidateAsked) -> None:
        self.asked = asked
        self.judged: CandidateJudged | None = None

    @property
    def state(self) -> CandidateState:
        """``asked`` while the model has not answered, then how it was judged."""
        return self.judged.outcome if self.judged is not None else "asked"

    @property
    def cost(self) -> int | None:
        """What the model call cost in micro-dollars; None when nobody knows."""
        return self.judged.cost if self.judged is not None else None

    @property
    def held(self) -> int:
        """Micro-dollars that the budget must still set aside for it."""
        return self.asked.reserved if self.cost is None else 0
