"""What the contract knows of a capability and of a run's limits (contract.md, section 1).

Money is counted in micro-dollars (``int``, 1,000,000 to the dollar): sums of prices stay exact.
"""

from typing import Literal, TypeAlias

import msgspec

Effect: TypeAlias = Literal["side_effecting", "read_only"]
RepeatPolicy: TypeAlias = Literal["off", "warn", "deny", "auto"]
OrphanPolicy: TypeAlias = Literal["warn", "stop"]
FailureKind: TypeAlias = Literal[
    "invalid_request",
    "unauthorized",
    "content_policy",
    "rate_limited",
    "unavailable",
    "unusable",
    "timeout",
]

MICROS_PER_USD = 1_000_000


class Reservation(msgspec.Struct, frozen=True):
    """What a budget sets aside for a call before it is sent: micro-dollars and tokens."""

    usd: int = 0
    tokens: int = 0

    def __add__(self, other: "Reservation") -> "Reservation":
        """Put two together."""
        return Reservation(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: "Reservation") -> "Reservation":
        """Take one out of this one."""
        return Reservation(self.usd - other.usd, self.tokens - other.tokens)


class CapabilitySpec(msgspec.Struct, frozen=True):
    """A capability as the contract sees it: its name, its effect class and its price estimate in micro-dollars.

    ``ceiling``: the most that a call may cost, None where nobody has said. ``tokens``: what a call is expected to use.
    ``approval``: a person must approve of a call that may cost so much or more (micro-dollars, 0 for every call).
    """

    name: str
    effect: Effect
    estimate: int
    ceiling: int | None = None
    tokens: int = 0
    approval: int | None = None

    @property
    def side_effecting(self) -> bool:
        """True when a second execution would be a second payment or a second artifact."""
        return self.effect == "side_effecting"

    @property
    def needs_approval(self) -> bool:
        """True when no call of it is made unless a person has approved of it."""
        return self.approval is not None and self.reservation.usd >= self.approval

    @property
    def reservation(self) -> Reservation:
        """What is set aside for a call: the most that it may cost, or what is expected where nobody has said."""
        return Reservation(self.estimate if self.ceiling is None else self.ceiling, self.tokens)


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run may do. ``budget`` is in micro-dollars, ``wall_clock`` in seconds; None means no limit."""

    grants: tuple[str, ...] = ()
    budget: int | None = None
    budget_tokens: int | None = None
    concurrency: int = 16
    max_calls: int = 1_000
    max_calls_per_site: int = 500
    max_width: int = 256
    wall_clock: float | None = None
    repeat_policy: RepeatPolicy = "auto"
    orphan_policy: OrphanPolicy = "warn"


def usd(micros: int) -> str:
    """Show micro-dollars as a person reads them: cents, and more places only where they are not zero."""
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    whole, rest = divmod(micros, MICROS_PER_USD)
    places = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{places}"
