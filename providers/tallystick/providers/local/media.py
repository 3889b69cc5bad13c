"""Pictures, sounds and clips for payloads: blocking work, for a worker thread."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tallystick.providers.local import clips, pictures, sounds
from tallystick.providers.local.dice import Dice
from tallystick.providers.protocol import Blob

_DEFAULT_SIZE = (1024, 1024)
_SMALLEST, _LARGEST = 16, 4096


def make(
    capability: str, payload: Mapping[str, Any], seed: int, sources: Mapping[str, bytes]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the result of a media capability with ``Blob`` leaves, and its usage.

    Args:
        capability: one of image, speech, music and video.
        payload: checked against the catalogue.
        seed: of every choice, together with the payload.
        sources: the bytes behind the payload's artifacts, by field.

    Raises:
        ValueError: the size asked for is out of bounds.
    """
    name = msgspec.json.encode([capability, payload, seed], order="deterministic").decode()
    match capability:
        case "image.generate" | "image.edit":
            return _pictures(payload, seed, name, sources)
        case "speech.generate":
            sound, seconds = sounds.speech(payload["text"], Dice(name))
            return _audio(sound, seconds)
        case "music.generate":
            sound, seconds = sounds.music(payload["duration_s"], Dice(name))
            return _audio(sound, seconds)
    source = sources.get("video", sources.get("image"))
    clip = clips.Clip(text=payload["prompt"], seed=name, seconds=payload.get("duration_s"), source=source)
    moving, seconds = clips.render(clip)
    return {"video": Blob(moving, clips.MEDIA_TYPE), "duration_s": seconds}, {"seconds": seconds}


def _pictures(
    payload: Mapping[str, Any], seed: int, name: str, sources: Mapping[str, bytes]
) -> tuple[dict[str, Any], dict[str, Any]]:
    width, height = _size(payload, sources.get("image"))
    count = payload.get("n", 1)
    images = []
    for number in range(count):
        order = f" · {number + 1} of {count}" if count > 1 else ""
        card = pictures.Card(
            text=payload["prompt"],
            caption=f"{width} x {height} · seed {seed:x}{order}",
            width=width,
            height=height,
            seed=f"{name} {number}",
            source=sources.get("image"),
            pinned=sources.get("reference"),
        )
        images.append(Blob(pictures.render(card), pictures.MEDIA_TYPE))
    return {"images": images, "width": width, "height": height}, {"images": count}


def _size(payload: Mapping[str, Any], source: bytes | None) -> tuple[int, int]:
    """Return width and height: those asked for, else those of the source within our bounds, else the default."""
    if "size" not in payload:
        picture = pictures.open_picture(source)
        if picture is None:
            return _DEFAULT_SIZE
        picture.thumbnail((_LARGEST, _LARGEST))
        return max(picture.width, _SMALLEST), max(picture.height, _SMALLEST)
    width, height = map(int, payload["size"].split("x"))
    if min(width, height) < _SMALLEST or max(width, height) > _LARGEST:
        raise ValueError(f"size {width}x{height} is not supported; sides may be {_SMALLEST} to {_LARGEST} pixels")
    return width, height


def _audio(sound: bytes, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"audio": Blob(sound, sounds.MEDIA_TYPE), "duration_s": seconds}, {"seconds": seconds}
