"""NamedSource as compilers show it: the place, the lines, carets under the offending span."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from tallystick.cli.terminal import plain
from tallystick.contract.source import Span

MAX_LINES = 6
#: Characters shown of one line, and how many of them may stand before the span.
MAX_WIDTH, LEAD = 140, 50


def excerpt(lines: Sequence[str], span: Span, name: str, style: str = "bold red") -> Text:
    """Return ``--> name:line:column``, the spanned lines with their numbers, and carets under the span.

    Lines and columns count from 1, as editors do; long lines and long spans are shortened; a span that reaches
    beyond the source is cut at its end.
    """
    shown = range(span.line, min(span.end_line, span.line + MAX_LINES - 1, len(lines)) + 1)
    gutter = len(str(max(shown, default=span.line)))
    text = Text.assemble((f"{' ' * gutter}--> ", "blue"), f"{plain(name)}:{span.line}:{span.column + 1}")
    bar = f"{' ' * gutter} |"
    text.append(f"\n{bar}", "blue")
    for number in shown:
        line = lines[number - 1]
        start = span.column if number == span.line else len(line) - len(line.lstrip())
        end = span.end_column if number == span.end_line else len(line.rstrip())
        code, carets = _underlined(line, start, end)
        text.append(f"\n{number:>{gutter}} | ", "blue").append(code)
        text.append(f"\n{bar} ", "blue").append(carets, style)
    if shown and shown[-1] < min(span.end_line, len(lines)):
        text.append(f"\n{bar} ...", "blue")
    return text


def split_lines(source: str) -> list[str]:
    """Split as Python's parser counts lines: at newlines only, not at form feeds or Unicode separators."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _underlined(line: str, start: int, end: int) -> tuple[str, str]:
    """Return the line, cut to a readable width, and the carets for its columns ``start`` to ``end``."""
    first = max(0, start - LEAD) if len(line) > MAX_WIDTH else 0
    last = min(len(line), first + MAX_WIDTH)
    before, inside = _shown(line[first:start]), _shown(line[start : min(end, last)])
    code = ("..." if first else "") + before + inside + _shown(line[max(start, min(end, last)) : last])
    carets = " " * cell_len(("..." if first else "") + before) + "^" * max(1, cell_len(inside))
    return code + ("..." if last < len(line) else ""), carets


def _shown(text: str) -> str:
    return plain(text.replace("\t", "    "))
