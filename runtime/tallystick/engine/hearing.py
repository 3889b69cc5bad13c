"""Hearing a provider: what it is handed is a copy of its own, and whatever it does comes back as an outcome."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from tallystick.engine import outcomes
from tallystick.kernel import Clock, cancel_after
from tallystick.providers.protocol import Unknown

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


async def heard(
    clock: Clock, seconds: float, asked: Callable[[], Awaitable[object]], read: Callable[[object], T], *, silence: str
) -> T | Unknown:
    """Wait for a provider's answer, at most ``seconds``; one that raises has said nothing.

    Args:
        clock: whose seconds they are.
        seconds: how long it may take.
        asked: asks the provider.
        read: makes what it returned fit to be kept.
        silence: the reason of the unknown outcome when it does not answer in time.
    """
    outcome: T | Unknown = Unknown(reason=silence)
    with cancel_after(clock, seconds):
        try:
            outcome = read(await asked())
        except Exception as error:  # noqa: BLE001 - a provider that raises has said nothing: the outcome is unknown
            outcome = outcomes.raised(error)
    return outcome


def own_copy(payload: Any) -> Any:
    """Return a copy that a provider may do with as it likes: the journal's stays what was hashed."""
    return _decode(_encode(payload))
