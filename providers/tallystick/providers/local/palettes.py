"""The colours of a card: ten inks-and-papers, each with a sky and five layers from far to near."""

from functools import cached_property

import msgspec

from tallystick.providers.local.dice import Dice

Colour = tuple[int, int, int]

PAPER, INK, MUTED, ACCENT, LAYER = 0, 1, 2, 3, 4
LAYERS = 5
SKY = LAYER + LAYERS
SKY_STEPS = 16
_PALETTE_SIZE = 256


class Palette(msgspec.Struct, frozen=True, dict=True):
    """Colours as hex, ``sky`` from top to horizon, ``layers`` from far to near."""

    paper: str
    ink: str
    accent: str
    sky: tuple[str, str]
    layers: tuple[str, str, str, str, str]

    @cached_property
    def drawn(self) -> tuple[Colour, ...]:
        """The colours that scenery is drawn in, by index: PAPER, INK, MUTED, ACCENT, LAYER.., SKY.."""
        paper, ink, accent = _rgb(self.paper), _rgb(self.ink), _rgb(self.accent)
        top, horizon = map(_rgb, self.sky)
        sky = (mix(top, horizon, step / (SKY_STEPS - 1)) for step in range(SKY_STEPS))
        return (paper, ink, mix(ink, paper, 0.45), accent, *map(_rgb, self.layers), *sky)

    @cached_property
    def printed(self) -> tuple[Colour, ...]:
        """At most 256 colours: the drawn ones, and the blends that smooth edges between them need.

        A picture of few colours is what keeps a PNG small and quick to write.
        """
        flat, sky = self.drawn[:SKY], self.drawn[SKY:]
        edges = [mix(a, b, part) for i, a in enumerate(flat) for b in flat[:i] for part in (0.25, 0.5, 0.75)]
        against_sky = [mix(step, other, 0.5) for step in sky for other in flat[ACCENT:]]
        return tuple(dict.fromkeys([*self.drawn, *edges, *against_sky]))[:_PALETTE_SIZE]


def mix(a: Colour, b: Colour, part: float) -> Colour:
    """Return the colour that lies ``part`` (0 to 1) of the way from ``a`` to ``b``."""
    red, green, blue = (round(x + (y - x) * part) for x, y in zip(a, b, strict=True))
    return red, green, blue


def choose(dice: Dice) -> Palette:
    """Return the palette that these dice fall on."""
    return dice.pick(_PALETTES)


def _rgb(text: str) -> Colour:
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


_PALETTES = (
    Palette("F6EFE4", "2B2A33", "FFF3D6", ("EFA182", "F9E3C6"), ("E58A6B", "C5625B", "8E4A5B", "5A3A55", "332B45")),
    Palette("EEF1EC", "16303B", "F2A65A", ("8FC1C6", "E8F0E4"), ("6FAFB3", "3F8793", "2A6276", "1D4458", "122C3C")),
    Palette("F4F1E1", "24331F", "E9B44C", ("BFD7AE", "F7F0D2"), ("A9C27F", "7FA563", "577F4D", "38603F", "21422F")),
    Palette("F5E9DF", "2A1A1F", "FCB97D", ("4A2545", "EB6A3C"), ("B23A48", "8C2F39", "66232F", "461A26", "2B121B")),
    Palette("ECEBF2", "1B1B3A", "F6E7B4", ("14152F", "55549A"), ("6A69AA", "494985", "343467", "23234C", "151534")),
    Palette("F7F0EA", "3A2A22", "5E8C86", ("E3C4B0", "F9ECE0"), ("D9A68A", "C27E60", "9F5F48", "744335", "4A2C26")),
    Palette("F5EEF2", "33203A", "F4C95D", ("C9A0C4", "F7E1E4"), ("B784B7", "93629B", "6D477D", "4C325E", "301F40")),
    Palette("F1F5F8", "1B2A3D", "F26A4F", ("AFCDE6", "F3F8FB"), ("9FBFD9", "6F9BC1", "4877A3", "2F557F", "1D3757")),
    Palette("FBF4E2", "3B2420", "2A9D8F", ("FFC857", "FFF3CF"), ("F79D5C", "F3752B", "CF4D24", "8F3A2A", "512A2A")),
    Palette("F3F0EA", "262422", "D64933", ("CFCBC2", "F4F1EA"), ("B9B4AA", "8F8A80", "68645C", "45423D", "282623")),
)
