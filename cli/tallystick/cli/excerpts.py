"""Source as compilers show it: the place, the lines, carets under the offending region."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tallystick.cli.terminal import plain
from tallystick.engine.messages import Region

MAX_LINES = 6
#: Characters shown of one line, where the terminal has room for them.
MAX_WIDTH = 140
MIN_WIDTH = 30


class Quotation:
    """Quotes a region of a source: ``--> name:line:column``, its lines with their numbers, and carets under it.

    Lines and columns are shown counting from 1, as editors do. Long lines are shortened to what the console has room
    for, long regions to their beginning; a region that reaches beyond the source ends with it.
    """

    def __init__(self, lines: Sequence[str], region: Region, name: str, style: str = "bold red") -> None:
        self._lines = lines
        self._region = region
        self._name = name
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        region, lines = self._region, self._lines
        shown = range(region.line, min(region.end_line, region.line + MAX_LINES - 1, len(lines)) + 1)
        gutter = len(str(max(shown, default=region.line)))
        width = min(MAX_WIDTH, max(MIN_WIDTH, options.max_width - gutter - len(" | ")))
        place = f"{plain(self._name)}:{region.line}:{region.column + 1}"
        text = Text.assemble((f"{' ' * gutter}--> ", "blue"), place, no_wrap=True, overflow="crop")
        bar = f"{' ' * gutter} |"
        text.append(f"\n{bar}", "blue")
        for number in shown:
            line = lines[number - 1]
            start = region.column if number == region.line else len(line) - len(line.lstrip())
            end = region.end_column if number == region.end_line else len(line.rstrip())
            code, carets = _underlined(line, start, end, width)
            text.append(f"\n{number:>{gutter}} | ", "blue").append(code)
            text.append(f"\n{bar} ", "blue").append(carets, self._style)
        if shown and shown[-1] < min(region.end_line, len(lines)):
            text.append(f"\n{bar} ...", "blue")
        yield text


def split_lines(source: str) -> list[str]:
    """Split as Python's parser counts lines: at newlines only, not at form feeds or Unicode separators."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _underlined(line: str, start: int, end: int, width: int) -> tuple[str, str]:
    """Return the line, cut to a readable width, and the carets for its columns ``start`` to ``end``."""
    if len(line) <= width:
        first, last = 0, len(line)
    else:
        first = max(0, start - width // 3)
        last = min(len(line), first + width - 2 * len("..."))
    before, inside = _shown(line[first:start]), _shown(line[start : min(end, last)])
    code = ("..." if first else "") + before + inside + _shown(line[max(start, min(end, last)) : last])
    carets = " " * cell_len(("..." if first else "") + before) + "^" * max(1, cell_len(inside))
    return code + ("..." if last < len(line) else ""), carets


def _shown(text: str) -> str:
    return plain(text.replace("\t", "    "))
