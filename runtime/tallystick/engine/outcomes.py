"""What a provider handed back, made fit for the journal: nothing that was paid for is lost over a wrong type.

A provider says how a call ended in one of four ways, whose fields nobody has checked. Whatever else it says is an
unknown outcome; a cost, a usage or a kind that is none is left out.
"""

from typing import Any, get_args

import msgspec

from tallystick.contract.capability import FailureKind
from tallystick.contract.payload import PayloadError, canonical
from tallystick.providers.protocol import Outcome, Refused, Succeeded, Unknown, Unusable

TEXT_LIMIT = 2_000
_KINDS = frozenset(get_args(FailureKind))


def sound(outcome: object) -> Outcome:
    """Return an outcome as the journal can keep it, its text bounded."""
    match outcome:
        case Succeeded():
            return msgspec.structs.replace(
                outcome, cost=micros(outcome.cost), usage=_usage(outcome.usage), job=job_id(outcome.job)
            )
        case Refused():
            return msgspec.structs.replace(
                outcome,
                kind=_kind(outcome.kind),
                text=_text(outcome.text),
                cost=micros(outcome.cost),
                retry_after=_seconds(outcome.retry_after),
            )
        case Unusable():
            return msgspec.structs.replace(outcome, text=_text(outcome.text), cost=micros(outcome.cost))
        case Unknown():
            return msgspec.structs.replace(
                outcome,
                reason=_text(outcome.reason),
                kind=_kind(outcome.kind),
                cost=micros(outcome.cost),
                job=job_id(outcome.job),
            )
        case _:
            return Unknown(reason=f"the provider returned a {type(outcome).__name__}, no outcome", kind="unavailable")


def raised(error: Exception) -> Unknown:
    """Return the outcome of a call whose provider raised: it has said nothing."""
    return Unknown(
        reason=_text(f"the provider failed without an answer: {type(error).__name__}: {error}"), kind="unavailable"
    )


def micros(cost: Any) -> int | None:
    """Return a cost in micro-dollars, None where it is none."""
    return cost if type(cost) is int and 0 <= cost < 1 << 63 else None


def _usage(usage: Any) -> dict[str, Any]:
    if type(usage) is not dict:
        return {}
    try:
        canonical(usage, "usage")
    except PayloadError:
        return {}
    return usage


def job_id(job: Any) -> str | None:
    """Return a provider's id of its work, bounded; None where there is none."""
    return None if job is None else _text(job)


def _kind(kind: Any) -> FailureKind:
    return kind if kind in _KINDS else "unavailable"


def _seconds(seconds: Any) -> float | None:
    return float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None


def _text(text: Any) -> str:
    return str(text)[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8")
