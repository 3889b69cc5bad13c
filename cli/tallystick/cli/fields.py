"""Names and values in two columns."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tallystick.cli.terminal import plain

MIN_WIDTH = 30

_STYLES = {"error": "red", "warning": "yellow", "next": "cyan"}


class Fields:
    """Names and values (str, foreign text allowed); empty values are left out.

    On a terminal long values are wrapped under their beginning; in a pipe a line stays a line.
    """

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        self._rows = [(name, plain(value)) for name, value in rows if value]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max((len(name) for name, _ in self._rows), default=0)
        for name, value in self._rows:
            label = f"  {name:<{width}}  "
            text = Text(value, _STYLES.get(name, ""))
            room = max(MIN_WIDTH, options.max_width - len(label))
            for line in text.wrap(console, room) if console.is_terminal else text.split("\n"):
                yield Text.assemble((label, "dim"), line)
                label = " " * len(label)
