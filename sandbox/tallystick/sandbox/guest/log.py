"""What a script prints: data on a channel of its own, bounded (architecture.md, section 5)."""

from typing import Any

from tallystick.sandbox.frames import MAX_LOG, Log
from tallystick.sandbox.guest.values import display

MAX_TOTAL = 1 << 20  # characters in one launch
_LINE_COST = 64  # an empty line is a frame all the same


class LogSink:
    """Collects lines until they are taken; a flood of them is cut off, once and with a word about it."""

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._room = MAX_TOTAL
        self._lines: list[str] = []

    def print(self, *values: Any, sep: str | None = " ", end: str | None = "\n", **_: Any) -> None:
        """Keep one line, made as the builtin ``print`` makes it."""
        if self._room <= 0:
            return
        text = (" " if sep is None else sep).join(map(display, values)) + ("\n" if end is None else end)
        text = display(text.removesuffix("\n"))  # what separates and ends it is the script's as well
        if len(text) > MAX_LOG:
            note = f"... ({len(text):,} characters in all)"
            text = text[: MAX_LOG - len(note)] + note
        self._lines.append(text)
        self._room -= len(text) + _LINE_COST
        if self._room <= 0:
            self._lines.append(f"(the log is full at {MAX_TOTAL:,} characters: later lines are not kept)")

    def take(self) -> list[Log]:
        """Return the lines since the last time, as frames."""
        lines, self._lines = self._lines, []
        return [Log(nonce=self._nonce, text=line) for line in lines]
