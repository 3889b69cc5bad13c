"""What each capability answers. A result may carry more fields than these; the ones here are certain."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tallystick.providers.payloads import Artifact

Pixels = Annotated[int, Meta(ge=1, description="int")]
Length = Annotated[float, Meta(ge=0, description="number")]


class Shot(msgspec.Struct, frozen=True):
    """One shot of a storyboard; ``duration_s`` in seconds."""

    id: str
    prompt: str
    duration_s: Length


class Storyboard(msgspec.Struct, frozen=True):
    """The result of storyboard.plan."""

    shots: list[Shot]


class Pictures(msgspec.Struct, frozen=True):
    """The result of image.generate and image.edit: at least one picture, and their size in pixels."""

    images: Annotated[list[Artifact], Meta(min_length=1)]
    width: Pixels
    height: Pixels


class Review(msgspec.Struct, frozen=True):
    """The result of review.visual: whether the picture will do, how well (0 to 1), and why."""

    ok: bool
    score: Annotated[float, Meta(ge=0, le=1)]
    notes: str


class Text(msgspec.Struct, frozen=True):
    """The result of text.generate; ``data`` is null unless a schema was given."""

    text: str
    data: Annotated[Any, Meta(description="any or null")]


class Audio(msgspec.Struct, frozen=True):
    """The result of speech.generate and music.generate; ``duration_s`` in seconds."""

    audio: Artifact
    duration_s: Length


class Video(msgspec.Struct, frozen=True):
    """The result of video.generate and video.edit; ``duration_s`` in seconds."""

    video: Artifact
    duration_s: Length
