"""The two values that a script meets when a call fails (contract.md, section 6.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class CapabilityError(Exception):
    """A call failed in a way that a script may catch.

    Attributes:
        kind: one of the failure kinds, ``rate_limited`` say.
        text: the provider's own words, bounded; the same on every replay.
    """

    call_id: int | None = None  # which call failed; None when the script raised it, or the call was never sent

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Failed:
    """What stands in the results of a tolerant fanout for a branch that failed: falsy, with ``kind`` and ``text``.

    It refuses to become text: a prompt that is built from results must never be paid for with the words of an
    error in it. ``print`` and ``ctx.log`` may show it.
    """

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        if not _display.on:
            self._refuse()
        return f"Failed({self.kind!r}, {self.text!r})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def _refuse(self) -> NoReturn:
        raise TypeError(
            f"a failed branch was turned into text (it failed with {self.kind}: {self.text}); look at it first, "
            "'if result: ...', and use result.kind or result.text where its error is what you want"
        )


class _Display:
    """Whether text is being made for a reader rather than for a payload."""

    on = False


_display = _Display()


@contextmanager
def displaying() -> Iterator[None]:
    """Let ``Failed`` values be rendered: what is made here goes to the log or to a crash report."""
    before, _display.on = _display.on, True
    try:
        yield
    finally:
        _display.on = before


def display(value: Any) -> str:
    """Return ``str(value)`` for a reader, encodable whatever it holds."""
    with displaying():
        text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
