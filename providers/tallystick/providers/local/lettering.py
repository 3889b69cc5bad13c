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
        if block.height <= height and all(font(size).getlength(line) <= width for line in block.lines):
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
    return Block((*lines, line), size, round(size * _LEADING))


def _cut(block: Block, width: int, height: int) -> Block:
    room = max(height // block.leading, 1)
    lines = [_shorten(line, width, block.size) for line in block.lines[:room]]
    if len(block.lines) > room:
        lines[-1] = _shorten(f"{lines[-1].rstrip(_ELLIPSIS)} {_ELLIPSIS}", width, block.size)
    return Block(tuple(lines), block.size, block.leading)


def _shorten(line: str, width: int, size: int) -> str:
    """Return ``line``, ending in an ellipsis in place of what is too wide."""
    length = font(size).getlength(line)
    if length <= width:
        return line
    kept = line[: int(len(line) * width / length) + 1].rstrip(_ELLIPSIS)
    while kept and font(size).getlength(kept + _ELLIPSIS) > width:
        kept = kept[:-1]
    return kept.rstrip() + _ELLIPSIS
