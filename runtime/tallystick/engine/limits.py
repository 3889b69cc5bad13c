"""From the limits that a person writes to the envelope that a launch gets; every wrong value is refused by name."""

import math
from collections.abc import Iterable

import msgspec

from tallystick.contract.capability import MICROS_PER_USD, Envelope
from tallystick.contract.errors import UsageError
from tallystick.engine.messages import Limits
from tallystick.providers import catalogue

#: A mistyped budget is more likely than a single run above this (dollars).
MAX_BUDGET_USD = 1_000_000
MAX_TOKENS = 10**12
MAX_SEED = (1 << 63) - 1
#: Seconds that a call of the local provider may be told to take.
MAX_LATENCY = 3_600.0
#: So is a mistyped count.
MAX_COUNT = 1_000_000


def envelope_of(limits: Limits, base: Envelope) -> Envelope:
    """Return ``base`` with every limit that is given put in its place.

    Raises:
        UsageError: a limit is not what it can be; nothing was started.
    """
    changes: dict[str, object] = {}
    if limits.grants is not None:
        changes["grants"] = _grants(limits.grants)
    if limits.budget_usd is not None:
        changes["budget"] = budget_micros(limits.budget_usd)
    if limits.budget_tokens is not None:
        if not 1 <= limits.budget_tokens <= MAX_TOKENS:
            raise UsageError(f"budget_tokens is {limits.budget_tokens}; it must be between 1 and {MAX_TOKENS:,}")
        changes["budget_tokens"] = limits.budget_tokens
    for name in ("concurrency", "max_calls"):
        value = getattr(limits, name)
        if value is not None:
            if not 1 <= value <= MAX_COUNT:
                raise UsageError(f"{name} is {value}; it must be between 1 and {MAX_COUNT:,}")
            changes[name] = value
    if limits.wall_clock is not None:
        if not (math.isfinite(limits.wall_clock) and limits.wall_clock > 0):
            raise UsageError(f"wall_clock is {limits.wall_clock}; it must be a positive number of seconds")
        changes["wall_clock"] = limits.wall_clock
    for name in ("repeat_policy", "orphan_policy"):
        value = getattr(limits, name)
        if value is not None:
            changes[name] = value
    return msgspec.structs.replace(base, **changes)


def budget_micros(usd: float) -> int:
    """Turn a budget in dollars into micro-dollars.

    Raises:
        UsageError: it is zero, negative, not a number, or beyond reason.
    """
    if not math.isfinite(usd) or not 0 < usd <= MAX_BUDGET_USD:
        raise UsageError(
            f"a budget of {usd:g} dollars cannot be used",
            hint="give a positive amount, say --budget 1.00; leave it out for no limit",
        )
    return round(usd * MICROS_PER_USD)


def cost_micros(usd: float) -> int:
    """Turn what a call is said to have cost, in dollars, into micro-dollars.

    Raises:
        UsageError: it is negative, not a number, or beyond reason.
    """
    if not math.isfinite(usd) or not 0 <= usd <= MAX_BUDGET_USD:
        raise UsageError(f"a cost of {usd:g} dollars cannot be", hint="leave it out where nobody knows it")
    return round(usd * MICROS_PER_USD)


def check_seed(seed: int) -> None:
    """Refuse a seed that providers cannot take.

    Raises:
        UsageError: it is negative or has more than 63 bits.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"the seed is {seed}; it must be a whole number from 0 to {MAX_SEED}")


def check_latency(seconds: float) -> None:
    """Refuse a latency that is none.

    Raises:
        UsageError: it is negative, not a number, or more than an hour.
    """
    if not 0 <= seconds <= MAX_LATENCY:
        raise UsageError(f"the latency is {seconds:g} s; it must be 0 to {MAX_LATENCY:g}")


def _grants(names: Iterable[str]) -> tuple[str, ...]:
    grants = tuple(dict.fromkeys(names))
    for name in grants:
        if name not in catalogue.CATALOGUE:
            nearest = catalogue.nearest(name)
            raise UsageError(
                f"{name!r} is not a capability",
                hint=f"did you mean {nearest}?" if nearest else "tally capabilities lists them",
            )
    return grants
