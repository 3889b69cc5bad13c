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
from typing import Any, TypeAlias

import msgspec

MAX_DEPTH = 64
"""Levels of lists and dicts that a payload may nest."""
MAX_BYTES = 1 << 20
"""Bytes that a payload may have in its canonical encoding."""
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 64) - 1

Place: TypeAlias = "str | tuple[Place, str | int]"
"""Where a value stands: the name of the whole, or a place and the key or index in it."""

_encode = msgspec.msgpack.Encoder().encode


class PayloadError(ValueError):
    """A value cannot be a payload: ``path`` says where (``payload.images[2].size``), ``hint`` what to write instead."""

    def __init__(self, path: str, message: str, hint: str) -> None:
        super().__init__(f"{path} {message}")
        self.path = path
        self.message = message
        self.hint = hint


def canonical(payload: Any, root: str = "payload") -> bytes:
    """Return the canonical encoding of a JSON-like value; ``root`` is what an error calls the whole.

    Raises:
        PayloadError: the value, or a part of it, cannot be a payload.
    """
    data = _encode(_Copy(root).plain(payload, root, 0))
    if len(data) > MAX_BYTES:
        raise _too_large(root)
    return data


def digest(payload: Any) -> str:
    """Return the payload's digest: the hex SHA-256 of its canonical encoding.

    Raises:
        PayloadError: the value, or a part of it, cannot be a payload.
    """
    return hashlib.sha256(canonical(payload)).hexdigest()


class _Copy:
    """Copies a value with sorted keys, checking every part. ``room`` bounds the work on values that share parts."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.room = MAX_BYTES

    def plain(self, value: Any, place: Place, depth: int) -> Any:
        kind = type(value)
        self.room -= 1
        if self.room < 0:
            raise _too_large(self.root)
        if kind is str:
            self.check_text(value, place)
        elif kind is dict:
            check_depth(place, depth)
            for key in value:
                if type(key) is not str:
                    raise PayloadError(
                        path_text(place),
                        f"has the key {_short(key)}, which is not a plain string",
                        "make every key a string: str(key)",
                    )
                self.check_text(key, place)
            return {key: self.plain(value[key], (place, key), depth + 1) for key in sorted(value)}
        elif kind is list or kind is tuple:
            check_depth(place, depth)
            return [self.plain(item, (place, index), depth + 1) for index, item in enumerate(value)]
        elif kind is int:
            if not MIN_INTEGER <= value <= MAX_INTEGER:
                raise PayloadError(path_text(place), "is an integer of more than 64 bits", "pass it as a string")
        elif kind is float:
            if not math.isfinite(value):
                raise PayloadError(path_text(place), f"is {value}, not a finite number", "pass None, or leave it out")
        elif kind is not bool and value is not None:
            raise PayloadError(path_text(place), f"is a {kind.__name__}, not plain JSON-like data", _hint(kind))
        return value
