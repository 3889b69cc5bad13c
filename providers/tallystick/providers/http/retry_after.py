"""The ``Retry-After`` of an answer: seconds, or a date, or nothing that anybody should wait for."""

import re
from email.utils import parsedate_to_datetime

import msgspec

LONGEST = 7 * 24 * 3600.0
"""Seconds: a longer wait is reported as this one, with what the provider said in the text."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Wait(msgspec.Struct, frozen=True):
    """How long to wait, in seconds (None where the provider did not say so), and a remark for people, or nothing."""

    seconds: float | None = None
    note: str = ""


def read(value: str | None, date: str | None, now: float) -> Wait:
    """Read the header.

    Args:
        value: the ``Retry-After`` header.
        date: the ``Date`` header of the same answer: a date is taken relative to the provider's own clock.
        now: Unix time here, for an answer without ``Date``.
    """
    if value is None:
        return Wait()
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return _bounded(float(text), text)
    until = _timestamp(text)
    if until is None:
        return Wait(note=f'its Retry-After "{text[:40]}" says nothing')
    sent = _timestamp(date or "")
    return _bounded(max(0.0, until - (now if sent is None else sent)), text)


def _bounded(seconds: float, text: str) -> Wait:
    if seconds <= LONGEST:
        return Wait(seconds)
    return Wait(LONGEST, f'it asks to wait for "{text[:40]}", which is taken as 7 days')


def _timestamp(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
