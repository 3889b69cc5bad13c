"""Choices that look random and never are: the same seeds give the same choices, on every machine and version."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_DRAW_BYTES = 8


class Dice:
    """An endless stream of draws, a pure function of its seeds (JSON-like values).

    The standard library's generator is not used because the sequence must be ours to keep: a picture that was paid
    for yesterday must come out the same after an upgrade of Python.
    """

    def __init__(self, *seeds: Any) -> None:
        self._key = hashlib.blake2b(msgspec.json.encode(seeds, order="deterministic")).digest()
        self._block = 0
        self._pool = b""

    def bits(self) -> int:
        """Return the next 64 bits as a whole number."""
        if not self._pool:
            self._pool = hashlib.blake2b(self._block.to_bytes(_DRAW_BYTES, "big"), key=self._key).digest()
            self._block += 1
        draw, self._pool = self._pool[:_DRAW_BYTES], self._pool[_DRAW_BYTES:]
        return int.from_bytes(draw, "big")

    def unit(self) -> float:
        """Return a number from 0 (included) to 1 (excluded)."""
        return (self.bits() >> 11) / (1 << 53)

    def between(self, low: float, high: float) -> float:
        """Return a number from ``low`` to ``high``."""
        return low + (high - low) * self.unit()

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.bits() % (high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with a probability from 0 to 1."""
        return self.unit() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of ``choices``."""
        return choices[self.bits() % len(choices)]
