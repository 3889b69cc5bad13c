"""Whether a call may be paid for: a run's budget in dollars and tokens, the daemon's cap (contract.md, section 1).

What is reserved for a call bounds it only as far as its provider keeps to it. So a run may overshoot its budget by no
more than what calls cost beyond their reservations; the first one that does stops further calls of its capability.
"""

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import Envelope, Reservation, usd
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import CallRequest, Stop, fits_budget, over_budget

OVER_TOKENS, OVER_CAP, OVER_PRICE, UNPRICED = "TS-P013", "TS-P014", "TS-P015", "TS-P016"


class Cap(msgspec.Struct, frozen=True):
    """What all runs together may spend in a day, and how that stands, in micro-dollars.

    ``spent`` counts calls whose cost nobody knows at their reservations; ``in_flight`` is reserved for calls now.
    """

    limit: int
    spent: int
    in_flight: int

    def fits(self, want: int) -> bool:
        """Whether a reservation fits under it."""
        return self.spent + self.in_flight + want <= self.limit


def fits_tokens(envelope: Envelope, history: History, want: int) -> bool:
    """Whether ``want`` further tokens fit beside those that a run has used or holds; the twin of ``fits_budget``."""
    return envelope.budget_tokens is None or history.tokens + history.tokens_held + want <= envelope.budget_tokens


class Shortfall(msgspec.Struct, frozen=True):
    """Why a call cannot be made now; ``final`` when no call in flight can make room, whatever it turns out to cost."""

    stop: Stop
    final: bool


def shortfall(
    call: CallRequest,
    want: Reservation,
    *,
    envelope: Envelope,
    history: History,
    in_flight: Reservation,
    cap: Cap | None,
) -> Shortfall | None:
    """Say why the reservation for a call does not fit; None when it does.

    Args:
        call: the call.
        want: what is to be reserved for it.
        envelope: the limits of the run.
        history: what the run has spent, and holds for calls whose cost nobody knows.
        in_flight: what is reserved for the run's calls in flight.
        cap: how the daemon's cap stands, None where there is none.
    """
    spent, held = history.spent, history.held + in_flight.usd
    if not fits_budget(envelope, spent, held, want.usd):
        final = not in_flight.usd or not fits_budget(envelope, spent, history.held, want.usd)
        return Shortfall(over_budget(call, want.usd, envelope, spent, held), final)
    if not fits_tokens(envelope, history, in_flight.tokens + want.tokens):
        final = not in_flight.tokens or not fits_tokens(envelope, history, want.tokens)
        return Shortfall(_over_tokens(call, want.tokens, envelope.budget_tokens or 0, history, in_flight.tokens), final)
    if envelope.budget is not None and not want.usd:
        unpriced = _unpriced(history, call.capability)
        if unpriced is not None:
            return Shortfall(_no_price(call, unpriced), final=True)
    if cap is not None and not cap.fits(want.usd):
        return Shortfall(_over_cap(call, want.usd, cap), not cap.in_flight or cap.spent + want.usd > cap.limit)
    return None


def over_price(call: CallRequest, dear: Attempt) -> Stop:
    """Return the stop of a call whose capability has just cost more than its ceiling allows."""
    reserved, cost = dear.started.reserved, dear.cost or 0
    return Stop(
        OVER_PRICE,
        f"attempt {dear.started.attempt} at {dear.started.identity} cost {usd(cost)}, more than the ceiling of "
        f"{usd(reserved)} for {call.capability}; its answer is kept, and {call.identity} was not made",
        f'look at the bill; resume to go on all the same, or raise ceiling under [capabilities."{call.capability}"]',
        call.identity,
    )


def _over_tokens(call: CallRequest, want: int, limit: int, history: History, in_flight: int) -> Stop:
    held = history.tokens_held + in_flight
    return Stop(
        OVER_TOKENS,
        f"{call.capability} at {call.identity} needs {want:,} tokens, but the budget of {limit:,} has "
        f"{history.tokens:,} used and {held:,} reserved; the call was not made",
        f"resume with --budget-tokens {history.tokens + held + want} or more; what is committed replays for free",
        call.identity,
    )


def _over_cap(call: CallRequest, want: int, cap: Cap) -> Stop:
    return Stop(
        OVER_CAP,
        f"{call.capability} at {call.identity} needs {usd(want)}, but all runs together may spend {usd(cap.limit)} a "
        f"day and have {usd(cap.spent)} spent and {usd(cap.in_flight)} reserved today; the call was not made",
        "resume after midnight UTC, or raise cap_usd under [budget] in the configuration; what is committed replays "
        "for free",
        call.identity,
    )


def _unpriced(history: History, capability: str) -> Attempt | None:
    """Return a call that came without a price and that nothing is set aside for."""
    return next(
        (
            attempt
            for attempt in history.attempts.values()
            if attempt.started.capability == capability
            and attempt.cost is None
            and not attempt.started.reserved
            and attempt.state != "in_flight"
        ),
        None,
    )


def _no_price(call: CallRequest, unpriced: Attempt) -> Stop:
    number = unpriced.started.attempt
    return Stop(
        UNPRICED,
        f"{call.capability} has no price: nobody knows what attempt {number} has cost, and nothing is set aside for a "
        f"call, so the budget cannot hold; {call.identity} was not made",
        f'set estimate under [capabilities."{call.capability}"], and tell what the attempt has cost: tally reconcile '
        f"RUN {number} --cost DOLLARS; then resume",
        call.identity,
    )
