"""The catalogue of capabilities as data: what each takes and answers, what it does to the world, what it may cost.

Prices are estimates in micro-dollars; configuration overrides them (architecture.md, section 6).
"""

from typing import Any

import msgspec

from tallystick.contract.capability import CapabilitySpec, Effect
from tallystick.providers import payloads, results, shapes


class PayloadRefusedError(ValueError):
    """A payload that its capability does not take: ``path`` says where, ``message`` what is allowed."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class ResultRefusedError(ValueError):
    """A result that is not what its capability promises: ``path`` says where, ``message`` what was promised."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class UnknownCapabilityError(PayloadRefusedError):
    """No capability has this name; ``message`` names the nearest one."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the catalogue; ``estimate`` in micro-dollars, ``tokens`` that a call is expected to use.

    ``bound`` is True for a capability that is served without any configuration; the others need a provider.
    """

    name: str
    description: str
    effect: Effect
    estimate: int
    payload: type[msgspec.Struct]
    result: type[msgspec.Struct]
    tokens: int = 0
    bound: bool = False


class Shape(msgspec.Struct, frozen=True):
    """A capability's payload and result, written as in a script."""

    payload: str
    result: str


CATALOGUE: dict[str, Capability] = {
    capability.name: capability
    for capability in (
        Capability(
            name="storyboard.plan",
            description="cut a brief into shots",
            effect="read_only",
            estimate=2_000,
            payload=payloads.StoryboardPlan,
            result=results.Storyboard,
            tokens=2_000,
            bound=True,
        ),
        Capability(
            name="image.generate",
            description="make pictures from a prompt",
            effect="side_effecting",
            estimate=20_000,
            payload=payloads.ImageGenerate,
            result=results.Pictures,
            bound=True,
        ),
        Capability(
            name="image.edit",
            description="change a picture as a prompt says",
            effect="side_effecting",
            estimate=20_000,
            payload=payloads.ImageEdit,
            result=results.Pictures,
        ),
        Capability(
            name="review.visual",
            description="judge a picture by criteria",
            effect="read_only",
            estimate=2_000,
            payload=payloads.ReviewVisual,
            result=results.Review,
            tokens=2_000,
            bound=True,
        ),
        Capability(
            name="text.generate",
            description="write text, or data of a given schema",
            effect="read_only",
            estimate=1_000,
            payload=payloads.TextGenerate,
            result=results.Text,
            tokens=2_000,
            bound=True,
        ),
        Capability(
            name="speech.generate",
            description="read a text aloud",
            effect="side_effecting",
            estimate=15_000,
            payload=payloads.SpeechGenerate,
            result=results.Audio,
        ),
        Capability(
            name="music.generate",
            description="make music of a given length",
            effect="side_effecting",
            estimate=50_000,
            payload=payloads.MusicGenerate,
            result=results.Audio,
        ),
        Capability(
            name="video.generate",
            description="make a clip of a given length",
            effect="side_effecting",
            estimate=500_000,
            payload=payloads.VideoGenerate,
            result=results.Video,
        ),
        Capability(
            name="video.edit",
            description="change a clip as a prompt says",
            effect="side_effecting",
            estimate=600_000,
            payload=payloads.VideoEdit,
            result=results.Video,
        ),
    )
}


def spec(name: str) -> CapabilitySpec:
    """Return what the contract needs to know of a capability.

    Raises:
        UnknownCapabilityError: the catalogue has no such name.
    """
    capability = _lookup(name)
    return CapabilitySpec(capability.name, capability.effect, capability.estimate, tokens=capability.tokens)


def shape(name: str) -> Shape:
    """Return the payload and the result of a capability as text.

    Raises:
        UnknownCapabilityError: the catalogue has no such name.
    """
    capability = _lookup(name)
    return Shape(shapes.shape(capability.payload), shapes.shape(capability.result))


def nearest(name: str) -> str | None:
    """Return the capability that ``name`` was probably meant to be."""
    return shapes.nearest(name, CATALOGUE)


def validate_payload(name: str, payload: Any) -> None:
    """Check a payload against its capability; it is not changed and nothing is filled in.

    Raises:
        UnknownCapabilityError: the catalogue has no such name.
        PayloadRefusedError: a field is unknown, missing, of another type or out of its limits.
    """
    fault = shapes.misfit(_lookup(name).payload, payload)
    if fault is not None:
        raise PayloadRefusedError(fault[0], _sentence(f"{name}: the payload", *fault))


def validate_result(name: str, result: Any) -> None:
    """Check a result, its artifacts already replaced by references.

    Raises:
        UnknownCapabilityError: the catalogue has no such name.
        ResultRefusedError: a field is missing, of another type or out of its limits.
    """
    fault = shapes.misfit(_lookup(name).result, result)
    if fault is not None:
        raise ResultRefusedError(fault[0], _sentence(f"{name}: the result", *fault))


def _lookup(name: str) -> Capability:
    capability = CATALOGUE.get(name)
    if capability is None:
        meant = nearest(name)
        hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(CATALOGUE)}"
        raise UnknownCapabilityError("", f'there is no capability "{name}"; {hint}')
    return capability


def _sentence(subject: str, path: str, fault: str) -> str:
    return f'{subject}\'s "{path}" {fault}' if path else f"{subject} {fault}"
