"""The payload that is hashed, journalled and dispatched: one form in bytes (contract.md, section 3; scheme d1).

The canonical encoding is MessagePack: the keys of every map sorted by code point, every integer and length in its
shortest form, every float in 64 bits. Two values have the same encoding exactly when they are equal by this rule:

- the types are equal: ``1``, ``1.0``, ``True`` and ``"1"`` are four values;
- floats are equal bit by bit: ``0.0`` and ``-0.0`` are two values, ``1e2`` and ``100.0`` are one;
- strings are equal by code points: nothing is normalised;
- a tuple is the list of its items; maps are equal whatever the order of their keys; sharing does not show.

Everything else is refused before anything is spent: other types and subclasses of these, NaN and infinities, lone
surrogates, keys that are not strings, integers outside -2**63 to 2**64 - 1, more than ``MAX_DEPTH`` levels (which a
value that holds itself always has) and more than ``MAX_BYTES`` bytes.
"""

import hashlib
import json
import math
import reprlib
from itertools import zip_longest
from typing import Any, TypeAlias

import msgspec

MAX_DEPTH = 64
"""Levels of lists and dicts that a payload may nest."""
MAX_BYTES = 1 << 20
"""Bytes that a payload may have in its canonical encoding."""
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 64) - 1

_Place: TypeAlias = "str | tuple[_Place, str | int]"  # the name of the whole, or a place and a key or index in it

_encode = msgspec.msgpack.Encoder().encode


class PayloadError(ValueError):
    """A value cannot be a payload: ``path`` says where (``payload.images[2].size``), ``hint`` what to write instead."""

    def __init__(self, place: _Place, message: str, hint: str) -> None:
        self.path = _path(place)
        self.message = f"{self.path} {message}"
        self.hint = hint
        super().__init__(self.message)


class FieldChange(msgspec.Struct, frozen=True):
    """One field in which two payloads differ; ``old`` and ``new`` are its values as source, shortened."""

    path: str
    old: str
    new: str

    def __str__(self) -> str:
        """Return the change as messages show it."""
        return f"{self.path}: {self.old} -> {self.new}"


def canonical(payload: Any, root: str = "payload", limit: int = MAX_BYTES) -> bytes:
    """Return the canonical encoding of a JSON-like value of up to ``limit`` bytes; errors call the whole ``root``.

    Raises:
        PayloadError: the value, or a part of it, cannot be a payload.
    """
    data = _encode(_Copy(root, limit).plain(payload, root, 0))
    if len(data) > limit:
        raise _too_large(root, limit)
    return data


def digest(payload: Any, root: str = "payload") -> str:
    """Return the digest of a payload: the hex SHA-256 of its canonical encoding.

    Raises:
        PayloadError: the value, or a part of it, cannot be a payload.
    """
    return hashlib.sha256(canonical(payload, root)).hexdigest()


class _Copy:
    """Copies a value with its keys sorted, and checks every part. ``room`` bounds the work where parts are shared."""

    def __init__(self, root: str, limit: int) -> None:
        self.root = root
        self.limit = limit
        self.room = limit

    def plain(self, value: Any, place: _Place, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            self.take(value, place)
            return value
        self.room -= 1
        if kind is dict:
            self.enter(place, depth)
            for key in value:
                if type(key) is not str:
                    shown = _short.repr(key)
                    raise PayloadError(place, f"has the key {shown}, which is not a string", f"write str({shown})")
                self.take(key, place)
            return {key: self.plain(value[key], (place, key), depth + 1) for key in sorted(value)}
        if kind is list or kind is tuple:
            self.enter(place, depth)
            return [self.plain(item, (place, index), depth + 1) for index, item in enumerate(value)]
        if kind is float:
            if not math.isfinite(value):
                raise PayloadError(place, f"is {value}, which is not a finite number", "pass None or leave it out")
        elif kind is int:
            if not MIN_INTEGER <= value <= MAX_INTEGER:
                raise PayloadError(place, "is an integer of more than 64 bits", "pass it as a string")
        elif value is not None and kind is not bool:
            raise PayloadError(place, f"is of type {kind.__name__}, which is not plain JSON-like data", _advice(kind))
        return value

    def take(self, text: str, place: _Place) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise _too_large(self.root, self.limit)
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise PayloadError(
                    place, "holds a lone surrogate, which is no character", "remove it, or write the whole character"
                ) from None

    def enter(self, place: _Place, depth: int) -> None:
        if self.room < 0:
            raise _too_large(self.root, self.limit)
        if depth >= MAX_DEPTH:
            raise PayloadError(
                place, f"is nested deeper than {MAX_DEPTH} levels", "flatten it, and check that nothing holds itself"
            )


def _too_large(root: str, limit: int) -> PayloadError:
    return PayloadError(
        root, f"is larger than {limit:,} bytes", "pass large content as a reference to an artifact, or in parts"
    )


_ADVICE = {
    "set": "a set has no order: pass sorted(...)",
    "frozenset": "a set has no order: pass sorted(...)",
    "bytes": "pass a reference to an artifact, or text",
    "bytearray": "pass a reference to an artifact, or text",
    "memoryview": "pass a reference to an artifact, or text",
    "date": "pass its .isoformat()",
    "time": "pass its .isoformat()",
    "timedelta": "pass its .total_seconds()",
    "Decimal": "pass str(...), or float(...)",
    "Fraction": "pass str(...), or float(...)",
    "complex": "pass a list of two numbers",
    "coroutine": "it was not awaited: write await before the call",
    "function": "call it and pass its result",
    "BaseException": "pass its text: str(...)",
    "Failed": "the branch failed: look at it before its value is used",
    "Enum": "pass its .value",
    "dict": "pass a plain copy: dict(...)",
    "list": "pass a plain copy: list(...)",
    "tuple": "pass a plain copy: list(...)",
    "str": "pass a plain copy: str(...)",
    "int": "pass a plain copy: int(...)",
    "float": "pass a plain copy: float(...)",
    "UUID": "pass str(...)",
    "PurePath": "pass str(...)",
    **dict.fromkeys(("generator", "range", "map", "filter", "zip", "enumerate", "reversed", "deque"), "pass list(...)"),
    **dict.fromkeys(("dict_keys", "dict_values", "dict_items"), "pass list(...)"),
}


def _advice(kind: type) -> str:
    """Return what to pass instead of a value of this type. Types are known by name: none is imported for it."""
    known = (_ADVICE[base.__name__] for base in kind.__mro__ if base.__name__ in _ADVICE)
    return next(known, "pass None, booleans, numbers, strings, lists and dicts")


_SHOWN = 60  # characters of a value that a message shows
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = _SHOWN
_short.maxlevel = _short.maxlist = _short.maxdict = 3
_MISSING = object()


def difference(old: Any, new: Any, root: str = "payload", limit: int = 8) -> list[FieldChange]:
    """Return the first ``limit`` fields in which two payloads differ; none exactly when their digests are equal."""
    changes: list[FieldChange] = []

    def compare(old: Any, new: Any, place: _Place) -> None:
        if len(changes) >= limit:
            return
        if isinstance(old, dict) and isinstance(new, dict):
            for key in sorted(old.keys() | new.keys()):
                compare(old.get(key, _MISSING), new.get(key, _MISSING), (place, key))
        elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
            for index, (before, after) in enumerate(zip_longest(old, new, fillvalue=_MISSING)):
                compare(before, after, (place, index))
        elif type(old) is not type(new) or old != new or (old == 0 and repr(old) != repr(new)):  # 0.0 is not -0.0
            changes.append(FieldChange(_path(place), *_shown(old, new)))

    compare(old, new, root)
    return changes


def _shown(old: Any, new: Any) -> tuple[str, str]:
    """Show two values; of two long strings the stretch where they part."""
    if isinstance(old, str) and isinstance(new, str):
        parting = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        start = 0 if max(len(old), len(new)) <= _SHOWN else max(0, parting - _SHOWN // 3)
        return _excerpt(old, start), _excerpt(new, start)
    return _literal(old), _literal(new)


def _literal(value: Any) -> str:
    return "(absent)" if value is _MISSING else _short.repr(value)


def _excerpt(text: str, start: int) -> str:
    end = start + _SHOWN
    return repr(f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}")


def _path(place: _Place) -> str:
    steps: list[str] = []
    while isinstance(place, tuple):
        place, step = place
        if isinstance(step, int):
            steps.append(f"[{step}]")
        elif step.isidentifier() and len(step) <= _SHOWN:
            steps.append(f".{step}")
        else:
            steps.append(f"[{json.dumps(step if len(step) <= _SHOWN else step[:_SHOWN] + '…', ensure_ascii=False)}]")
    return place + "".join(reversed(steps))
