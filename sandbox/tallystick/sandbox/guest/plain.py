"""Payloads and results by value: plain types only, copied when they are handed over (contract.md, section 3).

A copy is what the digest, the journal and the provider see; nothing that the script does to its own objects
afterwards can reach it. Types are compared exactly: a subclass could answer twice with two different values.
"""

from math import isfinite
from typing import Any

import msgspec

from tallystick.sandbox.frames import MAX_DEPTH, MAX_PAYLOAD, MAX_RESULT, MAX_VALUES
from tallystick.sandbox.guest.values import Failed

MIN_INT, MAX_INT = -(1 << 63), (1 << 64) - 1

_ADVICE: dict[str, str] = {
    "set": "sets have no order; write sorted(...)",
    "frozenset": "sets have no order; write sorted(...)",
    "bytes": "bytes travel as artifacts, text as str: write .decode()",
    "bytearray": "bytes travel as artifacts, text as str: write .decode()",
    "complex": "write [z.real, z.imag]",
    "range": "write list(...)",
    "generator": "write list(...), or a list comprehension",
    "map": "write list(...)",
    "filter": "write list(...)",
    "zip": "write [list(row) for row in zip(...)]",
    "enumerate": "write [list(row) for row in enumerate(...)]",
    "reversed": "write list(...)",
    "dict_keys": "write sorted(...) or list(...)",
    "dict_values": "write list(...)",
    "dict_items": "write [list(row) for row in d.items()]",
    "coroutine": "await it first",
    "Request": "await it first",
    "function": "call it",
    "method": "call it",
    "builtin_function_or_method": "call it",
    "date": "write .isoformat()",
    "datetime": "write .isoformat()",
    "Decimal": "write str(...) or float(...)",
}

_MOST_BYTES = 9  # that one character, or one value beside its characters, takes when it is encoded

_encode = msgspec.msgpack.Encoder().encode


class NotPlainError(Exception):
    """A value is not JSON-like. The message names the field, what is wrong with it, and what to write instead."""


def snapshot_payload(payload: Any) -> Any:
    """Return a copy of a call's payload in plain types; tuples become lists.

    Args:
        payload: null, booleans, integers of 64 bits, finite floats, text, lists, tuples, dicts with text keys.

    Raises:
        NotPlainError: something in it is of another type, or it is too large or too deep.
    """
    return _snapshot(payload, "payload", MAX_PAYLOAD)


def snapshot_result(result: Any) -> Any:
    """Return a copy of what a script returned, as ``snapshot_payload`` does.

    Raises:
        NotPlainError: something in it is of another type, or it is too large or too deep.
    """
    return _snapshot(result, "result", MAX_RESULT)


def _snapshot(value: Any, name: str, limit: int) -> Any:
    copier = _Copier(limit)
    try:
        copy = copier.copy(value, 0)
    except _FieldError as error:
        raise NotPlainError(f"{name}{''.join(reversed(error.steps))} {error.text}") from None
    if copier.characters + copier.values > limit // _MOST_BYTES and len(_encode(copy)) > limit:
        raise NotPlainError(f"{name} {_too_large(limit)}")
    return copy


class _FieldError(Exception):
    """What is wrong with one field; each level of the walk adds its step on the way out."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.steps: list[str] = []


class _Copier:
    """One walk, with its budget: a small value with shared parts can be a vast one when it is written out."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values = 0
        self.characters = 0

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self.values += 1
        if self.values > MAX_VALUES:
            raise _FieldError(f"is one value too many: a payload or result holds at most {MAX_VALUES:,}")
        if kind is str:
            self._text(value)
            return value
        if value is None or kind is bool:
            return value
        if kind is int:
            if not MIN_INT <= value <= MAX_INT:
                raise _FieldError("is an integer of more than 64 bits; write str(...)")
            return value
        if kind is float:
            if not isfinite(value):
                raise _FieldError(f"is {value}; only finite numbers can be sent, write None where there is none")
            return value
        if depth >= MAX_DEPTH:
            raise _FieldError(f"is nested deeper than {MAX_DEPTH} levels, or holds itself")
        if kind is dict:
            return self._dict(value, depth + 1)
        if kind is list or kind is tuple:
            return self._list(value, depth + 1)
        raise _FieldError(_unplain(value))

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise _FieldError(f"has the key {_short(key)}, which is no str; write str(...) for it")
            self._text(key)
            try:
                result[key] = self.copy(item, depth)
            except _FieldError as error:
                error.steps.append(f".{key}" if key.isidentifier() else f"[{_short(key)}]")
                raise
        return result

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        result: list[Any] = []
        for item in value:
            try:
                result.append(self.copy(item, depth))
            except _FieldError as error:
                error.steps.append(f"[{len(result)}]")
                raise
        return result

    def _text(self, value: str) -> None:
        self.characters += len(value)
        if self.characters > self.limit:
            raise _FieldError(_too_large(self.limit))
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _FieldError("holds half a surrogate pair, which is no text; leave that character out") from None


def _too_large(limit: int) -> str:
    return f"takes more than {limit:,} bytes, which is the limit; pass large data as an artifact"


def _unplain(value: Any) -> str:
    if isinstance(value, Failed):
        return (
            f"is a failed branch ({value.kind}: {value.text}); look at it first, 'if result: ...', "
            "and send result.kind or result.text where its error is what you want"
        )
    if isinstance(value, BaseException):
        return "is an exception; send its .kind or .text, or str(...)"
    for plain in (str, int, float, dict, list, tuple):
        if isinstance(value, plain):
            return f"is a {type(value).__name__}, which only derives from {plain.__name__}; write {plain.__name__}(...)"
    kind = type(value).__name__
    advice = _ADVICE.get(kind, "send plain data: None, bool, int, float, str, list or dict")
    return f"is a {kind}; {advice}"


def _short(key: Any) -> str:
    text = repr(key) if type(key) in {str, int, float, bool, type(None)} else f"of type {type(key).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a field's name, not a text
