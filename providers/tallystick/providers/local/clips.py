"""Moving pictures without a model: a slow pan across a scene, or across the picture it starts from. Animated GIF."""

import hashlib
import io

import msgspec
from PIL import Image

from tallystick.providers.local import palettes, pictures
from tallystick.providers.local.dice import Dice

MEDIA_TYPE = "image/gif"

_SIZE = (480, 270)
_OVERSIZE = 1.25
_FRAMES_A_SECOND = 6
_MOST_FRAMES = 48
_COLOURS = 96
_TICK_MS = 10
_DEFAULT_S = 4.0


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """What to show: the prompt, the seed of every choice, the length in seconds, and an encoded picture to start from.

    Without a length the clip is as long as its source, where that moves.
    """

    text: str
    seed: str
    seconds: float | None = None
    source: bytes | None = None


def render(clip: Clip) -> tuple[bytes, float]:
    """Return GIF bytes and their length in seconds, exact to the hundredth that the format counts in."""
    dice = Dice(clip.seed)
    palette = palettes.choose(dice)
    source = pictures.open_picture(clip.source)
    width, height = (round(side * _OVERSIZE) for side in _SIZE)
    if source is None:
        still = pictures.scene(clip.text, (width, height), palette, dice)
    else:
        still = pictures.graded(source, (width, height), palette, dice)
    still = still.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    seconds = clip.seconds or _length(clip.source) or _DEFAULT_S
    ticks = max(round(seconds * 1000 / _TICK_MS), 2)
    count = min(max(round(seconds * _FRAMES_A_SECOND), 2), _MOST_FRAMES, ticks)
    frames = _pan(still, count, dice)
    shown = [ticks * (i + 1) // count - ticks * i // count for i in range(count)]
    buffer = io.BytesIO()
    frames[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[_TICK_MS * count for count in shown],
        loop=0,
        optimize=False,
        # Two samples of a plain source may look alike; they are two samples all the same.
        comment=hashlib.sha256(clip.seed.encode()).hexdigest().encode(),
    )
    return buffer.getvalue(), ticks * _TICK_MS / 1000


def _pan(still: Image.Image, count: int, dice: Dice) -> list[Image.Image]:
    room_x, room_y = still.width - _SIZE[0], still.height - _SIZE[1]
    back, tilt = dice.whole(0, 1), dice.between(0, 1)
    frames = []
    for number in range(count):
        way = abs(back - number / (count - 1))
        left, top = round(room_x * way), round(room_y * (tilt + (0.5 - tilt) * way))
        frames.append(still.crop((left, top, left + _SIZE[0], top + _SIZE[1])))
    return frames


def _length(data: bytes | None) -> float | None:
    """Return the length of a moving picture in seconds, None where ``data`` is none that we can read."""
    if pictures.open_picture(data) is None or data is None:
        return None
    with Image.open(io.BytesIO(data)) as moving:
        total = 0.0
        for number in range(getattr(moving, "n_frames", 1)):
            moving.seek(number)
            total += moving.info.get("duration", 0) / 1000
    return total or None
