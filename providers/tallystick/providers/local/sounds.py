"""Real sound without a model: speech as one soft tone a syllable, music as a slow walk over a pentatonic scale. WAV."""

import array
import functools
import io
import math
import re
import sys
import wave

from tallystick.providers.local.dice import Dice

MEDIA_TYPE = "audio/wav"

_RATE = 8_000
_LOUD = 9_000
_SCALE = (0, 2, 4, 7, 9, 12, 14, 16)
_SYLLABLE_S = 0.2
_VOWELS = re.compile(r"[aeiouyäöü]+", re.IGNORECASE)
_LONGEST_S = 600.0


def speech(text: str, dice: Dice) -> tuple[bytes, float]:
    """Return WAV bytes and their length in seconds: a syllable takes a fifth of a second, a gap ends each word."""
    base = dice.between(110, 190)
    frames = array.array("h")
    for word in text.split():
        for _ in range(max(len(_VOWELS.findall(word)), 1)):
            frames.extend(_note(round(base * dice.between(0.92, 1.12)), _SYLLABLE_S))
        frames.extend(_silence(_SYLLABLE_S))
        if len(frames) > _LONGEST_S * _RATE:
            break
    return _wav(frames), len(frames) / _RATE


def music(seconds: float, dice: Dice) -> tuple[bytes, float]:
    """Return WAV bytes of the asked length (to a sample), and that length in seconds."""
    root, beat = dice.between(180, 260), dice.pick((0.25, 0.3, 0.4, 0.5))
    wanted = max(round(seconds * _RATE), 1)
    frames, step = array.array("h"), dice.whole(0, len(_SCALE) - 1)
    while len(frames) < wanted:
        step = min(max(step + dice.whole(-2, 2), 0), len(_SCALE) - 1)
        frames.extend(_note(round(root * 2 ** (_SCALE[step] / 12)), beat * dice.pick((1, 1, 2))))
    return _wav(frames[:wanted]), wanted / _RATE


@functools.lru_cache(maxsize=256)
def _note(pitch: int, seconds: float) -> "array.array[int]":
    count = round(seconds * _RATE)
    turn = math.tau * pitch / _RATE
    return array.array(
        "h",
        (
            round(_LOUD * math.sin(math.pi * i / count) ** 0.7 * (math.sin(turn * i) + 0.3 * math.sin(2 * turn * i)))
            for i in range(count)
        ),
    )


def _silence(seconds: float) -> "array.array[int]":
    return array.array("h", bytes(2 * round(seconds * _RATE)))


def _wav(frames: "array.array[int]") -> bytes:
    if sys.byteorder == "big":
        frames.byteswap()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_RATE)
        sound.writeframes(frames.tobytes())
    return buffer.getvalue()
