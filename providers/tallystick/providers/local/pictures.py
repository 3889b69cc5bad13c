"""A prompt as a printed card: scenery on top or at the side, the prompt set beneath it, a small caption. PNG."""

import functools
import io

import msgspec
from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError

from tallystick.providers.local import lettering, palettes, scenery
from tallystick.providers.local.dice import Dice
from tallystick.providers.local.palettes import INK, LAYER, MUTED, PAPER, Palette

MEDIA_TYPE = "image/png"

_WIDE = 1.4
_TEXT_FROM = 160
_DRAWN_PIXELS = 8_000_000
_SOURCE_PIXELS = 40_000_000
_WASH = 0.22
_COMPRESSION = 2

Box = tuple[int, int, int, int]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What to print: the prompt, the caption, the size in pixels, the seed of every choice.

    ``source`` takes the place of the scenery (an edit), ``pinned`` is set small upon it (a reference): encoded
    pictures as bytes.
    """

    text: str
    caption: str
    width: int
    height: int
    seed: str
    source: bytes | None = None
    pinned: bytes | None = None


def render(card: Card) -> bytes:
    """Return the card as PNG bytes; the same card gives the same bytes."""
    dice = Dice(card.seed)
    palette = palettes.choose(dice)
    art_box, text_box = _layout(card.width, card.height)
    art_size = (art_box[2] - art_box[0], art_box[3] - art_box[1])
    source, pinned = open_picture(card.source), open_picture(card.pinned)
    page = Image.new("RGB", (card.width, card.height), palette.drawn[PAPER])
    art = scene(card.text, art_size, palette, dice) if source is None else graded(source, art_size, palette, dice)
    page.paste(art, art_box)
    pen = ImageDraw.Draw(page)
    if pinned is not None:
        _pin(page, pen, pinned, art_box, palette)
    if text_box is not None:
        _set_text(pen, card, text_box, palette)
    return encode(page, palette if source is None and pinned is None else None)


def scene(prompt: str, size: tuple[int, int], palette: Palette, dice: Dice) -> Image.Image:
    """Return scenery of ``size`` in RGB, drawn at twice its size where that is affordable, for smooth edges."""
    width, height = size
    scale = min(2.0, (_DRAWN_PIXELS / (width * height)) ** 0.5)
    drawn = scenery.draw(prompt, max(round(width * scale), 1), max(round(height * scale), 1), dice)
    drawn.putpalette([channel for colour in palette.drawn for channel in colour])
    picture = drawn.convert("RGB")
    return (
        picture.reduce(2)
        if picture.size == (width * 2, height * 2)
        else picture.resize(size, Image.Resampling.BILINEAR)
    )


def graded(source: Image.Image, size: tuple[int, int], palette: Palette, dice: Dice) -> Image.Image:
    """Return the source cut to ``size``, its top kept, with a wash of one of the palette's colours."""
    wash = Image.new("RGB", size, palette.drawn[dice.whole(LAYER, LAYER + 2)])
    return Image.blend(ImageOps.fit(source, size, centering=(0.5, 0.0)), wash, _WASH)


def open_picture(data: bytes | None) -> Image.Image | None:
    """Return the picture in ``data`` in RGB (the first frame of several), None where it is none that we can read."""
    if data is None:
        return None
    try:
        picture = Image.open(io.BytesIO(data))
        if picture.width * picture.height > _SOURCE_PIXELS:
            return None
        return picture.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def encode(page: Image.Image, palette: Palette | None) -> bytes:
    """Return PNG bytes in at most 256 colours: those of ``palette``, or for None the picture's own best ones."""
    if palette is None:
        printed = page.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.FLOYDSTEINBERG)
    else:
        printed = page.quantize(palette=_colour_table(palette), dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    printed.save(buffer, "PNG", compress_level=_COMPRESSION)
    return buffer.getvalue()


@functools.lru_cache(maxsize=16)
def _colour_table(palette: Palette) -> Image.Image:
    table = Image.new("P", (1, 1))
    table.putpalette([channel for colour in palette.printed for channel in colour])
    return table


def _layout(width: int, height: int) -> tuple[Box, Box | None]:
    """Return the box of the art and the box of the text; small pictures are art alone."""
    if min(width, height) < _TEXT_FROM:
        return (0, 0, width, height), None
    margin = round(min(width, height) * 0.055)
    if width > height * _WIDE:
        edge = round(width * 0.66)
        return (margin, margin, edge, height - margin), (edge + margin, margin, width - margin, height - margin)
    edge = round(height - max(min(width, height) * 0.27, height * 0.22))
    return (margin, margin, width - margin, edge), (margin, edge + margin // 2, width - margin, height - margin)


def _pin(page: Image.Image, pen: ImageDraw.ImageDraw, picture: Image.Image, art: Box, palette: Palette) -> None:
    """Set a small print of ``picture`` with a paper border into the lower right corner of the art."""
    side = round(min(art[2] - art[0], art[3] - art[1]) * 0.3)
    border, gap = max(side // 24, 1), max(side // 6, 2)
    left, top = art[2] - gap - side, art[3] - gap - side
    pen.rectangle(
        (left - border, top - border, left + side + border - 1, top + side + border - 1), palette.drawn[PAPER]
    )
    page.paste(ImageOps.fit(picture, (side, side)), (left, top))


def _set_text(pen: ImageDraw.ImageDraw, card: Card, box: Box, palette: Palette) -> None:
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    small = max(round(min(card.width, card.height) * 0.0195), 8)
    caption_top = bottom - round(small * 1.15)
    rule = max(small // 4, 2)
    largest = round(min(card.width, card.height) * 0.062)
    tall = height > width
    pen.rectangle((left, top, left + width * (0.22 if tall else 0.08), top + rule - 1), palette.drawn[LAYER + 1])
    first_line = top + round(small * 1.2)
    block = lettering.fit(card.text, width, caption_top - small - first_line, largest)
    for number, line in enumerate(block.lines):
        place = (left, first_line + number * block.leading)
        pen.text(place, line, palette.drawn[INK], lettering.font(block.size))
    caption = lettering.fit(card.caption, width, small * 2, small)
    pen.text((left, caption_top), caption.lines[0], palette.drawn[MUTED], lettering.font(caption.size))
    for mark in range(3):
        x = right - small * 1.25 * mark
        pen.rectangle((x - small, caption_top, x - 1, caption_top + small - 1), palette.drawn[LAYER + 4 - 2 * mark])
