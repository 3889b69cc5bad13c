"""What a card shows: six motifs in flat layers, chosen by a word of the prompt where one fits, else by the dice."""

import math
import re
from collections.abc import Callable

from PIL import Image, ImageDraw

from tallystick.providers.local.dice import Dice
from tallystick.providers.local.palettes import ACCENT, LAYER, LAYERS, SKY, SKY_STEPS

_Motif = Callable[[ImageDraw.ImageDraw, int, int, Dice], None]


def draw(prompt: str, width: int, height: int, dice: Dice) -> Image.Image:
    """Return a picture of ``width`` x ``height`` pixels whose values are colour indices (palettes.py)."""
    picture = Image.new("P", (width, height))
    pen = ImageDraw.Draw(picture)
    for step in range(SKY_STEPS):
        pen.rectangle((0, height * step // SKY_STEPS, width, height), fill=SKY + step)
    _motif(prompt, dice)(pen, width, height, dice)
    return picture


def _motif(prompt: str, dice: Dice) -> _Motif:
    """Return the motif of the prompt's first telling word."""
    fallback = dice.pick(_MOTIFS)
    words = re.findall(r"[a-z]+", prompt.lower())
    return next((_SIGNS[word] for word in words if word in _SIGNS), fallback)


def _disc(pen: ImageDraw.ImageDraw, x: float, y: float, radius: float, fill: int) -> None:
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def _sun(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    radius = min(width, height) * dice.between(0.09, 0.17)
    _disc(pen, width * dice.between(0.2, 0.8), height * dice.between(0.2, 0.45), radius, ACCENT)


def _ridges(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    _sun(pen, width, height, dice)
    step = max(width // 128, 1)
    for layer in range(LAYERS):
        base = height * (0.42 + 0.13 * layer + dice.between(-0.02, 0.02))
        swells = [
            (height * dice.between(0.02, 0.09) / k, k * dice.between(2, 5), dice.between(0, 7)) for k in (1, 2, 4)
        ]
        crest = [
            (x, base + sum(size * math.sin(speed * x / width + shift) for size, speed, shift in swells))
            for x in range(0, width + step, step)
        ]
        pen.polygon([(0, height), *crest, (width, height)], fill=LAYER + layer)


def _waves(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    _sun(pen, width, height, dice)
    across = dice.whole(5, 8)
    radius = width / across / 2 * 1.08
    top = height * dice.between(0.42, 0.55)
    rows = math.ceil((height - top) / (radius * 0.5)) + 2
    for row in range(rows):
        y = top + row * radius * 0.5 + radius
        near = row * (LAYERS - 1) // max(rows - 1, 1)
        for column in range(-1, across + 1):
            x = (column + (0.5 if row % 2 else 0)) * width / across + width / across / 2
            for ring, shade in enumerate((LAYER + near, SKY + SKY_STEPS - 1, LAYER + near, LAYER + max(near - 1, 0))):
                _disc(pen, x, y, radius * (1, 0.8, 0.7, 0.42)[ring], shade)


def _tiles(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    across = dice.whole(4, 6) if width >= height else dice.whole(3, 4)
    down = max(round(height * across / width), 1)
    wide, high = width / across, height / down
    inks = (*range(LAYER, LAYER + LAYERS), ACCENT, SKY + SKY_STEPS - 1)
    for number in range(across * down):
        x, y = number % across * wide, number // across * high
        ground = dice.pick(inks)
        shape = dice.pick([ink for ink in inks if ink != ground])
        pen.rectangle((x, y, x + wide, y + high), fill=ground)
        match dice.whole(0, 3):
            case 0:
                _disc(pen, x + wide / 2, y + high / 2, min(wide, high) * 0.32, shape)
            case 1:
                half = 180 * dice.whole(0, 1)
                pen.pieslice((x, y, x + wide, y + high), half, half + 180, fill=shape)
            case _:
                right, low, turn = dice.pick(((0, 0, 0), (1, 0, 90), (1, 1, 180), (0, 1, 270)))
                hub_x, hub_y = x + right * wide, y + low * high
                pen.pieslice((hub_x - wide, hub_y - high, hub_x + wide, hub_y + high), turn, turn + 90, fill=shape)


def _arches(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    _sun(pen, width, height, dice)
    ground = height * dice.between(0.78, 0.86)
    turned = dice.whole(0, 1)
    for place, size in ((0.27, 0.3), (0.66, 0.44)):
        x, reach = width * abs(place - turned), min(width, height) * size * dice.between(0.9, 1.05)
        crown = ground - reach * dice.between(0.5, 0.9)
        shades = (LAYER + 3, LAYER + 1, SKY + SKY_STEPS - 1, LAYER, LAYER + 2)
        for ring, shade in enumerate(shades):
            radius = reach * (1 - ring * 0.19)
            _disc(pen, x, crown, radius, shade)
            pen.rectangle((x - radius, crown, x + radius, ground), fill=shade)
    pen.rectangle((0, ground, width, height), fill=LAYER + LAYERS - 1)


def _orbits(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    pen.rectangle((0, 0, width, height), fill=LAYER + LAYERS - 1)
    unit = min(width, height)
    for _ in range(dice.whole(40, 80)):
        spark = unit * dice.between(0.001, 0.004)
        _disc(pen, width * dice.unit(), height * dice.unit(), spark, SKY + SKY_STEPS - 1)
    x, y = width * dice.between(0.3, 0.7), height * dice.between(0.35, 0.65)
    line = max(round(unit * 0.004), 1)
    for ring in range(6, 1, -1):
        reach = unit * 0.105 * ring
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), outline=LAYER + 1, width=line)
        angle = dice.between(0, math.tau)
        size = unit * dice.between(0.014, 0.042)
        shade = dice.pick((LAYER, LAYER + 1, LAYER + 2, SKY + SKY_STEPS - 1))
        _disc(pen, x + reach * math.cos(angle), y + reach * math.sin(angle), size, shade)
    _disc(pen, x, y, unit * dice.between(0.09, 0.14), ACCENT)


def _city(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    _sun(pen, width, height, dice)
    for layer in range(1, LAYERS):
        x = -width * dice.between(0, 0.1)
        while x < width:
            wide = width * dice.between(0.06, 0.13)
            roof = height * (0.28 + 0.12 * layer + dice.between(-0.12, 0.1))
            pen.rectangle((x, roof, x + wide, height), fill=LAYER + layer)
            if dice.chance(0.3):
                pen.polygon([(x, roof), (x + wide / 2, roof - wide * 0.4), (x + wide, roof)], fill=LAYER + layer)
            if layer >= LAYERS - 2:
                _windows(pen, (x, roof, wide, height), layer, dice)
            x += wide * dice.between(0.95, 1.25)


def _windows(pen: ImageDraw.ImageDraw, house: tuple[float, float, float, float], layer: int, dice: Dice) -> None:
    x, roof, wide, ground = house
    pane = wide / 7
    for row in range(int((ground - roof) / (pane * 2.2))):
        for column in range(3):
            if dice.chance(0.45):
                left, top = x + pane * (1 + 2 * column), roof + pane * (1 + 2.2 * row)
                lit = ACCENT if dice.chance(0.6) else LAYER + layer - 2
                pen.rectangle((left, top, left + pane, top + pane * 1.2), fill=lit)


def _garden(pen: ImageDraw.ImageDraw, width: int, height: int, dice: Dice) -> None:
    _sun(pen, width, height, dice)
    for layer in range(1, LAYERS):
        for _ in range(dice.whole(4, 6)):
            x = width * dice.between(0.02, 0.98)
            top = height * (0.2 + 0.11 * layer + dice.between(-0.08, 0.12))
            stem = max(width * 0.004, 1)
            pen.rectangle((x - stem, top, x + stem, height), fill=LAYER + layer)
            size = height * dice.between(0.035, 0.06)
            for leaf in range(1, 5):
                y, side = top + size * (1.2 + 1.5 * leaf), -1 if leaf % 2 else 1
                tip = (x + side * size * 1.9, y - size * 1.1)
                pen.polygon(
                    [(x, y), (x + side * size * 0.6, y - size * 1.1), tip, (x + side * size * 1.3, y - size * 0.1)],
                    fill=LAYER + layer,
                )
            bloom = ACCENT if dice.chance(0.35) else LAYER + layer - 1
            for petal in range(6):
                angle = math.tau * petal / 6
                _disc(pen, x + size * 0.75 * math.cos(angle), top + size * 0.75 * math.sin(angle), size * 0.55, bloom)
            _disc(pen, x, top, size * 0.45, LAYER + layer)
    pen.rectangle((0, height * 0.95, width, height), fill=LAYER + LAYERS - 1)


_MOTIFS: tuple[_Motif, ...] = (_waves, _city, _garden, _orbits, _arches, _tiles, _ridges)

_SIGNS: dict[str, _Motif] = {
    word: motif
    for motif, words in (
        (_waves, "sea ocean wave waves water ferry boat ship harbour harbor river lake rain beach swim reflection"),
        (_city, "city street town window windows shop storefront house building cafe office doorway angle"),
        (_garden, "garden flower flowers tree trees forest leaf leaves meadow spring plant picnic tracking"),
        (_orbits, "space star stars planet moon night galaxy orbit universe lamplight shoulder"),
        (_arches, "close detail portrait mascot character mug cup bottle rim product packshot hands"),
        (_tiles, "pattern logo icon poster banner abstract geometric catalogue flat above medium"),
        (_ridges, "mountain mountains hill hills valley desert landscape wide horizon sky dawn sunset silhouette"),
    )
    for word in words.split()
}
