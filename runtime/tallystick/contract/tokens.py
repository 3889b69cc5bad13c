"""Tokens in what providers say of a call's use."""

from collections.abc import Mapping
from typing import Any

_TOTALS = ("total_tokens", "totalTokenCount")
_PARTS = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("promptTokenCount", "candidatesTokenCount"),
)


def tokens_of(usage: Mapping[str, Any]) -> int | None:
    """Return how many tokens a call has used, None where its provider does not say.

    A total counts before its parts; a part that is missing counts as none where the other one is told.
    """
    for name in _TOTALS:
        total = _count(usage.get(name))
        if total is not None:
            return total
    for names in _PARTS:
        parts = [part for name in names if (part := _count(usage.get(name))) is not None]
        if parts:
            return sum(parts)
    return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
