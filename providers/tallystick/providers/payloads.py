"""What each capability takes. A payload is checked against these types; what is sent is the payload itself."""

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

Shots: TypeAlias = Annotated[int, Meta(ge=1, le=32)]
Images: TypeAlias = Annotated[int, Meta(ge=1, le=4)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1, description="int from 0")]
Size: TypeAlias = Annotated[str, Meta(pattern="^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$", description='str like "1024x1024"')]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=600, description="number of seconds up to 600")]
Tokens: TypeAlias = Annotated[int, Meta(ge=1)]
Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
JsonSchema: TypeAlias = Annotated[dict[str, Any], Meta(description="JSON schema")]
Sha256: TypeAlias = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", description='"sha256:<64 hex digits>"')]


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reference to stored bytes, ``{"$artifact": "sha256:<hex>", "media_type": str, "bytes": int}``."""

    sha256: Sha256 = msgspec.field(name="$artifact")
    media_type: str
    bytes: Annotated[int, Meta(ge=0)]


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every payload type has in common: a field that it does not name is refused."""


class StoryboardPlan(Payload, frozen=True, kw_only=True):
    """A brief to be cut into shots."""

    brief: str
    shots: Shots
    style: str | UnsetType = UNSET


class ImageGenerate(Payload, frozen=True, kw_only=True):
    """A picture, or up to four, from a prompt."""

    prompt: str
    size: Size | UnsetType = UNSET
    n: Images | UnsetType = UNSET
    seed: Seed | UnsetType = UNSET
    reference: Artifact | UnsetType = UNSET


class ImageEdit(Payload, frozen=True, kw_only=True):
    """A picture changed as the prompt says, within the mask where one is given."""

    image: Artifact
    prompt: str
    mask: Artifact | UnsetType = UNSET


class ReviewVisual(Payload, frozen=True, kw_only=True):
    """A picture to be judged by criteria."""

    image: Artifact
    criteria: str


class TextGenerate(Payload, frozen=True, kw_only=True):
    """Text from a prompt; with ``schema``, data of that shape as well."""

    prompt: str
    system: str | UnsetType = UNSET
    max_tokens: Tokens | UnsetType = UNSET
    temperature: Temperature | UnsetType = UNSET
    schema: JsonSchema | UnsetType = UNSET


class SpeechGenerate(Payload, frozen=True, kw_only=True):
    """Text to be read aloud."""

    text: str
    voice: str | UnsetType = UNSET


class MusicGenerate(Payload, frozen=True, kw_only=True):
    """Music of a given length from a prompt."""

    prompt: str
    duration_s: Seconds


class VideoGenerate(Payload, frozen=True, kw_only=True):
    """A clip of a given length from a prompt, and from a first picture where one is given."""

    prompt: str
    image: Artifact | UnsetType = UNSET
    duration_s: Seconds
    resolution: str | UnsetType = UNSET


class VideoEdit(Payload, frozen=True, kw_only=True):
    """A clip changed as the prompt says."""

    video: Artifact
    prompt: str
