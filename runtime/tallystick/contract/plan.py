"""What a resume would do, as a value: worked out without a cent spent (contract.md, section 10)."""

from typing import Literal, TypeAlias

import msgspec

from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.contract.runtime_rule import Stop

#: The gravest stop is the reason: a cancel, for somebody wanted it, then divergence, unresolved, denial, the rest.
_GRAVITY = ("TS-R009", "TS-D", "TS-A", "TS-P", "TS-S", "TS-R", "TS-N")

State: TypeAlias = Literal["finished", "blocked", "failed"]


class NewCall(msgspec.Struct, frozen=True):
    """A call that a resume would pay for; ``estimate`` in micro-dollars."""

    identity: Identity
    capability: str
    estimate: int
    warning: str | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a candidate does with a run's prefix when nothing new is dispatched.

    Attributes:
        state: "finished" when it reached its end by replays alone, "blocked" when branches wait for new results,
            "failed" when the script raised.
        replay: identities served from their records, or replayed as the failure that they were.
        new: the calls that would be sent next.
        stops: everything that would stop the launch: divergences, unresolved attempts, denials.
        orphans: committed identities that it skips; known only when it finished.
        unknown: committed identities that lie behind a new result: nobody can say yet.
        error: what the script raised.
    """

    state: State
    replay: tuple[Identity, ...] = ()
    new: tuple[NewCall, ...] = ()
    stops: tuple[Stop, ...] = ()
    orphans: tuple[Identity, ...] = ()
    unknown: tuple[Identity, ...] = ()
    error: ErrorInfo | None = None

    @property
    def estimate(self) -> int:
        """What the calls that are known by now would cost, in micro-dollars."""
        return sum(call.estimate for call in self.new)

    @property
    def gravest(self) -> Stop | None:
        """The stop that would be the run's reason."""
        return min(self.stops, key=gravity, default=None)


def gravity(stop: Stop) -> int:
    """Rank a stop: 0 is the gravest."""
    return next((rank for rank, prefix in enumerate(_GRAVITY) if stop.code.startswith(prefix)), len(_GRAVITY))
