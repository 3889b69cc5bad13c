"""What people have said of calls that may not be made unasked (contract.md, section 6).

An approval is for one call as it stands: its identity, capability, payload and take; which revision makes it does not
matter. It is used up by the attempt that it permits. A call with another payload is another call and needs its own.
"""

from collections.abc import Iterable
from typing import TypeAlias

from tallystick.contract.events import ApprovalAsked, ApprovalDecided, AttemptStarted
from tallystick.contract.identity import Identity

_Call: TypeAlias = tuple[Identity, str, str, str | None]


class Approvals:
    """The calls of a run that were held for a person, and what was decided of them."""

    def __init__(self) -> None:
        self._asked: dict[Identity, ApprovalAsked] = {}
        self._decided: dict[_Call, ApprovalDecided] = {}

    def apply(self, event: ApprovalAsked | ApprovalDecided) -> None:
        """Take a question or an answer; of several answers for one call the latest counts."""
        if isinstance(event, ApprovalAsked):
            self._asked[event.identity] = event
        else:
            self._decided[_call_of(event)] = event

    def use(self, started: AttemptStarted) -> None:
        """Take that a call was sent: its approval, if it needed one, is used up."""
        self._asked.pop(started.identity, None)
        self._decided.pop(_call_of(started), None)

    def decision(self, identity: Identity, capability: str, digest: str, take: str | None) -> ApprovalDecided | None:
        """Return what was decided of this very call and not used yet, None where nothing was."""
        return self._decided.get((identity, capability, digest, take))

    def asked(self, launch: int) -> list[tuple[ApprovalAsked, ApprovalDecided | None]]:
        """Return the calls that a launch has asked for and that were not sent since, each with what was decided."""
        questions: Iterable[ApprovalAsked] = (one for one in self._asked.values() if one.launch == launch)
        ordered = sorted(questions, key=lambda one: one.identity.sort_key)
        return [(one, self._decided.get(_call_of(one))) for one in ordered]


def _call_of(event: ApprovalAsked | ApprovalDecided | AttemptStarted) -> _Call:
    return (event.identity, event.capability, event.digest, event.take)
