"""Setting a prompt as a text block: the largest size at which it fits, wrapped, cut with an ellipsis if it must be."""

import functools
import re
import unicodedata

import msgspec
from PIL import ImageFont

_ELLIPSIS = "…"
_LEADING = 1.28
_SIZES = (1.0, 0.86, 0.74, 0.64, 0.55, 0.47, 0.4, 0.34)
_LOOKALIKES = str.maketrans(
    {
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{LATIN SMALL LETTER SHARP S}": "ss",
        "\N{SOFT HYPHEN}": "",
    }
)
_UNPRINTABLE = re.compile(r"[^ -~…·]+")
_MOST = 800


class Block(msgspec.Struct, frozen=True):
    """Lines of text, the font size and the distance between baselines, both in pixels."""

    lines: tuple[str, ...]
    size: int
    leading: int

    @property
    def height(self) -> int:
        """Pixels from the top of the first line to the bottom of the last."""
        return self.leading * len(self.lines)


@functools.lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's bundled font at ``size`` pixels."""
    face = ImageFont.load_default(size)
    assert isinstance(face, ImageFont.FreeTypeFont)
    return face


def fit(text: str, width: int, height: int, largest: int) -> Block:
    """Set ``text`` in a box of ``width`` x ``height`` pixels, at ``largest`` pixels or less."""
    words = legible(text[:_MOST]).split()
    smallest = max(round(largest * _SIZES[-1]), 7)
    for size in (max(round(largest * part), smallest) for part in _SIZES):
        block = _wrap(words, width, size)
        if block.height <= height:
            return block
    return _cut(block, width, height)


def legible(text: str) -> str:
    """Return ``text`` in the characters that the bundled font has: accents fall off, other scripts become ``…``."""
    plain = unicodedata.normalize("NFKD", " ".join(text.translate(_LOOKALIKES).split()))
    return _UNPRINTABLE.sub(_ELLIPSIS, "".join(c for c in plain if not unicodedata.combining(c)))


def _wrap(words: list[str], width: int, size: int) -> Block:
    face, lines, line = font(size), [], ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and face.getlength(longer) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    lines.append(line)
    return Block(tuple(_shorten(line, width, size) for line in lines), size, round(size * _LEADING))


def _cut(block: Block, width: int, height: int) -> Block:
    room = max(height // block.leading, 1)
    kept = block.lines[:room]
    return Block((*kept[:-1], _shorten(kept[-1] + _ELLIPSIS * 2, width, block.size)), block.size, block.leading)


def _shorten(line: str, width: int, size: int) -> str:
    if font(size).getlength(line) <= width:
        return line.replace(_ELLIPSIS * 2, _ELLIPSIS)
    line = line.rstrip(_ELLIPSIS)
    while line and font(size).getlength(line + _ELLIPSIS) > width:
        line = line[:-1]
    return line.rstrip() + _ELLIPSIS
