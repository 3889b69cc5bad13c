"""Text beside a label, and names and values in two columns.

On a terminal a long text is wrapped under its beginning; in a pipe a line stays a line.
"""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tallystick.cli.terminal import plain

MIN_WIDTH = 20

_STYLES = {"error": "red", "warning": "yellow", "next": "cyan"}


class Labelled:
    """A text that hangs from a label; further lines of it are indented by ``indent``, the label's width by default."""

    def __init__(self, label: Text, text: Text, indent: int | None = None) -> None:
        self._indent = len(label) if indent is None else indent
        self._margin = label[: self._indent]
        self._text = Text.assemble(label[self._indent :], text) if self._indent < len(label) else text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(MIN_WIDTH, options.max_width - self._indent)
        margin = self._margin
        for line in self._text.wrap(console, room) if console.is_terminal else self._text.split("\n"):
            line.rstrip()
            yield Text.assemble(margin, line)
            margin = Text(" " * self._indent)


class Fields:
    """Names and values (str, foreign text allowed); empty values are left out."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        self._rows = [(name, plain(value)) for name, value in rows if value]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max((len(name) for name, _ in self._rows), default=0)
        for name, value in self._rows:
            yield Labelled(Text(f"  {name:<{width}}  ", "dim"), Text(value, _STYLES.get(name, "")))
