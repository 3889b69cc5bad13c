"""How an answer ends a call: the closed table of contract.md, section 6.2, and what a profile may refine in it."""

import fnmatch
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from tallystick.contract.capability import FailureKind
from tallystick.providers.http import paths
from tallystick.providers.http.paths import Path
from tallystick.providers.http.retry_after import Wait

RefusalKind: TypeAlias = Literal["invalid_request", "unauthorized", "content_policy", "rate_limited", "unavailable"]

_ROWS: dict[RefusalKind, tuple[int, ...]] = {
    "invalid_request": (400, 404, 405, 413, 415, 422),
    "unauthorized": (401, 402, 403),
    "rate_limited": (429,),
}
_TABLE: dict[str, RefusalKind] = {str(status): kind for kind, statuses in _ROWS.items() for status in statuses}
_UNAVAILABLE = 503
_REQUEST_TIMEOUT = 408
_TEXT_LIMIT = 1_000
_PAGE_LIMIT = 300


class Errors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an API says what went wrong, and what its words mean.

    ``code`` and ``text``: paths to its own code and to its words, the first that finds something counts for the text.
    ``codes``: patterns (``*Sensitive*``) of its codes and the kind that each means; they refine what the table calls
    an invalid request, and tell why a job failed. ``answered``: whether they also hold for an answer of success,
    for an API that says 200 to everything. ``statuses``: exceptions to the table by status, a kind or "unknown".
    """

    code: tuple[str, ...] = ("error.code", "error.type", "code")
    text: tuple[str, ...] = ("error.message", "message", "error", "detail")
    codes: dict[str, RefusalKind] = {}
    answered: bool = False
    statuses: dict[Annotated[str, msgspec.Meta(pattern="^[1-5][0-9]{2}$")], RefusalKind | Literal["unknown"]] = {}

    def __post_init__(self) -> None:
        """Refuse paths that are none."""
        for text in (*self.code, *self.text):
            paths.parse(text)


class Refusal(msgspec.Struct, frozen=True):
    """The provider did certainly not do it."""

    kind: RefusalKind


class Doubt(msgspec.Struct, frozen=True):
    """Nobody knows whether the provider did it; ``kind`` is what a read-only call shows its script."""

    kind: FailureKind


def judge(errors: Errors, status: int, wait: Wait, answer: Any) -> Refusal | Doubt | None:
    """Return how an answer ends the call, or None for an answer of success.

    Args:
        errors: the profile's part.
        status: the HTTP status.
        wait: its ``Retry-After``: a 503 that names a time refuses, any other is in doubt.
        answer: the parsed answer, ``MISSING`` when it could not be read.
    """
    success = 200 <= status < 300  # noqa: PLR2004 - the statuses of success
    kind = errors.statuses.get(str(status)) or _TABLE.get(str(status))
    if kind is None and status == _UNAVAILABLE and wait.seconds is not None:
        kind = "unavailable"
    if kind == "invalid_request" or (success and kind is None and errors.answered):
        kind = meaning(errors, answer) or kind
    if kind is not None and kind != "unknown":
        return Refusal(kind)
    if success and kind is None:
        return None
    return Doubt("timeout" if status == _REQUEST_TIMEOUT else "unavailable")


def meaning(errors: Errors, answer: Any) -> RefusalKind | None:
    """Return what the provider's own code means, or None where the profile does not know it."""
    for found in (path.find(answer) for path in _parsed(errors.code)):
        if isinstance(found, str | int):
            for pattern, kind in errors.codes.items():
                if fnmatch.fnmatchcase(str(found).casefold(), pattern.casefold()):
                    return kind
    return None


def words(errors: Errors, answer: Any, body: bytes) -> str:
    """Return the provider's own text with its code, bounded; empty when it said nothing."""
    text = paths.first(_parsed(errors.text), answer)
    if not isinstance(text, str):
        text = body[: _PAGE_LIMIT + 1].decode(errors="replace")
        text = text if len(text) <= _PAGE_LIMIT else f"{text[:_PAGE_LIMIT]}…"
    code = paths.first(_parsed(errors.code), answer)
    shown = " ".join(text.split())[:_TEXT_LIMIT]
    known = isinstance(code, str | int) and str(code) not in shown
    return f"{shown} ({str(code)[:_PAGE_LIMIT]})" if known else shown


def describe(headers: Mapping[str, str]) -> str:
    """Say what headers tell of an answer that carries no words."""
    location = headers.get("location", "")
    return f"it points to {location[:_PAGE_LIMIT]}; is that the base_url to set?" if location else ""


def _parsed(texts: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(map(paths.parse, texts))
