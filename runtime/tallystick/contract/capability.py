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


class CapabilitySpec(msgspec.Struct, frozen=True):
    """A capability as the contract sees it: its name, its effect class and its price estimate in micro-dollars."""

    name: str
    effect: Effect
    estimate: int

    @property
    def side_effecting(self) -> bool:
        """True when a second execution would be a second payment or a second artifact."""
        return self.effect == "side_effecting"


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run may do. ``budget`` is in micro-dollars, ``wall_clock`` in seconds; None means no limit."""

    grants: tuple[str, ...] = ()
    budget: int | None = None
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
