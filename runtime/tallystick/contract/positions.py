"""From the parser's positions to byte offsets, spans and text (contract.md, sections 2 and 5).

The parser ends a line at LF, CRLF or CR, and at nothing else, and counts columns in bytes of UTF-8; a ``Span``
counts columns in characters.
"""

import re
from typing import Protocol

from tallystick.contract.source import Span

BOM = "\ufeff"
_LINE_END = re.compile(rb"\r\n?|\n")


class Located(Protocol):
    """A node of a syntax tree that knows where it stands: lines from 1, columns in bytes from 0."""

    @property
    def lineno(self) -> int:
        """The line it begins on."""

    @property
    def col_offset(self) -> int:
        """The column it begins at."""

    @property
    def end_lineno(self) -> int | None:
        """The line it ends on."""

    @property
    def end_col_offset(self) -> int | None:
        """The column just behind it."""


class SourceMap:
    """A text in UTF-8, without a BOM, and where its lines begin."""

    __slots__ = ("_plain", "_starts", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._plain = data.isascii()
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(data))]

    @staticmethod
    def of(source: str) -> "SourceMap":
        """Return the map of ``source``, whose BOM, if it has one, is no part of the first line.

        Raises:
            UnicodeEncodeError: the source holds lone surrogates.
        """
        return SourceMap(source.removeprefix(BOM).encode())

    def start(self, node: Located) -> int:
        """Return the byte offset at which ``node`` begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        """Return the byte offset just behind ``node``."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def span(self, node: Located) -> Span:
        """Return where ``node`` stands, columns in characters."""
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or 0
        if self._plain:
            return Span(node.lineno, node.col_offset, end_line, end_column)
        return Span(
            node.lineno,
            self._characters(node.lineno, node.col_offset),
            end_line,
            self._characters(end_line, end_column),
        )

    def text(self, span: Span) -> str:
        """Return the source text of ``span``."""
        return self.data[self._bytes(span.line, span.column) : self._bytes(span.end_line, span.end_column)].decode()

    def _line(self, line: int) -> bytes:
        end = self._starts[line] if line < len(self._starts) else len(self.data)
        return self.data[self._starts[line - 1] : end]

    def _characters(self, line: int, column: int) -> int:
        return len(self._line(line)[:column].decode(errors="ignore"))

    def _bytes(self, line: int, column: int) -> int:
        before = column if self._plain else len(self._line(line).decode()[:column].encode())
        return self._starts[line - 1] + before
