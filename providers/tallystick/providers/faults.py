"""Failures on demand: ``image.generate:4:invalid_request`` fails the 4th execution of that capability in a run."""

import functools
import re
from typing import Literal, TypeAlias, get_args

import msgspec

from tallystick.contract.capability import FailureKind
from tallystick.providers import catalogue, shapes
from tallystick.providers.protocol import Refused, Unknown, Unusable

FaultKind: TypeAlias = FailureKind | Literal["unknown"]

KINDS: tuple[FaultKind, ...] = (*get_args(FailureKind), "unknown")

_EXECUTION = re.compile(r"[1-9][0-9]{0,8}")
_TEXTS: dict[FaultKind, str] = {
    "invalid_request": "the request is not one that this model takes",
    "unauthorized": "the key is not valid for this model",
    "content_policy": "the prompt was rejected by the content policy",
    "rate_limited": "too many requests",
    "unavailable": "the model is overloaded",
    "unusable": "the answer is empty",
    "timeout": "no answer in time",
    "unknown": "the connection was reset before the answer came",
}


class Fault(msgspec.Struct, frozen=True):
    """One scripted failure: which execution of a capability (counted from 1) fails, as what, and with which words."""

    capability: str
    execution: int
    kind: FaultKind
    text: str

    def outcome(self, price: int | None) -> Refused | Unusable | Unknown:
        """Return how the call ends (contract.md, 6.2); an unusable answer is billed at ``price`` micro-dollars."""
        match self.kind:
            case "unknown":
                return Unknown(reason=self.text)
            case "timeout":
                return Unknown(reason=self.text, kind="timeout")
            case "unusable":
                return Unusable(raw={}, text=self.text, cost=price)
            case kind:
                return Refused(kind=kind, text=self.text)


@functools.lru_cache(maxsize=256)
def parse_fault(text: str) -> Fault:
    """Read ``capability:execution:kind``, with the failure's own words after one more colon if wanted.

    Raises:
        ValueError: the text says no such thing; the message says which part is wrong and what may stand there.
    """
    capability, *rest = text.split(":", 3)
    if len(rest) < 2:  # noqa: PLR2004 - execution and kind
        raise ValueError(
            f'"{text}" is not a failure to order; write capability:execution:kind, say image.generate:4:invalid_request'
        )
    execution, kind, *words = rest
    catalogue.spec(capability)
    if not _EXECUTION.fullmatch(execution):
        raise ValueError(f'"{text}": the execution is "{execution}", and must be a whole number from 1')
    if kind not in _TEXTS:
        meant = shapes.nearest(kind, KINDS)
        hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(KINDS)}"
        raise ValueError(f'"{text}": there is no failure "{kind}"; {hint}')
    return Fault(capability, int(execution), kind, words[0] if words and words[0] else _TEXTS[kind])


def ordered(faults: tuple[str, ...], capability: str, execution: int) -> Fault | None:
    """Return the failure that was ordered for this execution, the first of several."""
    parsed = map(parse_fault, faults)
    return next((one for one in parsed if (one.capability, one.execution) == (capability, execution)), None)
