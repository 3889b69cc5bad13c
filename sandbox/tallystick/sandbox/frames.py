"""The frames between host and guest: 4 bytes of length (big-endian), then one msgpack message.

Both sides import this module, and it imports nothing but the standard library and msgspec. The guest is
untrusted: the host decodes with a size cap and a closed union, and anything else ends the launch.
"""

import re
import struct
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

HEAD = struct.Struct(">I")
MAX_FRAME = 4 << 20
MAX_PAYLOAD = 1 << 20
MAX_RESULT = 3 << 20
MAX_VALUES = 50_000  # in one payload or result: one byte of a frame can be 60 bytes of memory on the host
MAX_DEPTH = 64
MAX_STEPS = 64
MAX_NAME = 256
MAX_SITE = 4096
MAX_STEP = MAX_SITE + 32  # a race's step holds its site, its occurrence and the branch
MAX_LOG = 16_384
MAX_TEXT = 16_384
MAX_WHERE = 64
WINDOW = 256
MAX_COUNT = (1 << 31) - 1

CallId: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Step: TypeAlias = Count | Annotated[str, msgspec.Meta(max_length=MAX_STEP)]
StepPath: TypeAlias = Annotated[tuple[Step, ...], msgspec.Meta(max_length=MAX_STEPS)]
Site: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_SITE)]
Nonce: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]


_RACE_STEP = re.compile(r".*/race[0-9]+:[0-9]+:[0-9]+", re.DOTALL)


def race_step(site: str, occurrence: int, branch: int) -> str:
    """Return what the branch of a race adds to the path of its calls: no other branch can be called that."""
    return f"{site}:{occurrence}:{branch}"


def is_race_step(step: int | str) -> bool:
    """Whether a step of a path has the form that branches of races have."""
    return isinstance(step, str) and _RACE_STEP.fullmatch(step) is not None


class FrameError(Exception):
    """The peer broke the protocol: the launch must end."""


class OutputError(FrameError):
    """The guest sent more than it may."""


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="t"):
    """What every frame carries. The nonce binds it to one launch; nothing rests on it alone."""

    nonce: Nonce


class Boot(Frame, frozen=True, tag="boot"):
    """Driver: the limits a guest takes on and the locks it closes before it answers ``Ready``.

    ``parent`` is the process that it must not outlive, 0 where it cannot see it. ``memory`` and ``stderr`` are bytes,
    ``cpu_seconds`` seconds. ``confine`` False leaves every lock to the driver (a container); ``allow_missing`` names
    locks that an operator does without where the kernel lacks them.
    """

    parent: int
    memory: int
    cpu_seconds: int
    open_files: int
    stderr: int
    confine: bool = True
    allow_missing: tuple[str, ...] = ()


class Start(Frame, frozen=True, tag="start"):
    """Host: run this annotated script. ``window`` is how many calls may be in flight at once."""

    source: str
    args: Any
    window: Annotated[int, msgspec.Meta(ge=1)] = WINDOW


class Reply(Frame, frozen=True, tag="reply"):
    """Host: the result of a call."""

    id: CallId
    value: Any = None


class Failure(Frame, frozen=True, tag="failure"):
    """Host: a call failed in a way that the script may catch, as ``CapabilityError(kind, text)``."""

    id: CallId
    kind: str
    text: str


class Decided(Frame, frozen=True, tag="decided"):
    """Host: the winner of a race, from the journal; None while nobody has won it."""

    id: CallId
    winner: int | None = None


class Sync(Frame, frozen=True, tag="sync"):
    """Host: say when everything sent before this has been taken and every branch waits (for a plan)."""

    id: CallId


class Synced(Frame, frozen=True, tag="synced"):
    """Guest: it has, and they do; every frame that followed from it was sent before this one."""

    id: CallId


class Ready(Frame, frozen=True, tag="ready"):
    """Guest: confined and waiting for a script. ``landlock`` is the kernel's ABI in force, 0 for none."""

    landlock: int = 0
    seccomp: bool = False
    python: Annotated[str, msgspec.Meta(max_length=64)] = ""


class Call(Frame, frozen=True, tag="call"):
    """Guest: ``ctx.run`` was awaited. ``seen`` lists the ids of failed calls that this branch has seen (6.3)."""

    id: CallId
    site: Site
    path: StepPath
    occurrence: Count
    capability: Name
    payload: Any
    take: Name | None = None
    seen: Annotated[tuple[CallId, ...], msgspec.Meta(max_length=65536)] = ()


class Race(Frame, frozen=True, tag="race"):
    """Guest: ``ctx.race`` was awaited; which of its ``width`` branches won it before, if one did?"""

    id: CallId
    site: Site
    path: StepPath
    occurrence: Count
    width: Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)]


class Won(Frame, frozen=True, tag="won"):
    """Guest: the branch at ``winner`` is the first of race ``id`` to succeed; nothing goes on before it is decided."""

    id: CallId
    winner: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


class Log(Frame, frozen=True, tag="log"):
    """Guest: the script printed or logged a line."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_LOG)]


class Done(Frame, frozen=True, tag="done"):
    """Guest: ``orchestrate`` returned this."""

    value: Any = None


class Crash(Frame, frozen=True, tag="crash"):
    """Guest: the script ended with an exception.

    ``where`` lists (line, function) of the script's own frames, innermost last; ``capability_error`` is the call
    id when the exception is an uncaught failed call.
    """

    kind: Name
    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
    where: Annotated[tuple[tuple[Count, Name], ...], msgspec.Meta(max_length=MAX_WHERE)] = ()
    phase: Literal["load", "run", "result"] = "run"
    capability_error: CallId | None = None


ToGuest: TypeAlias = Start | Reply | Failure | Decided | Sync
ToHost: TypeAlias = Ready | Call | Race | Won | Synced | Log | Done | Crash

_encoder = msgspec.msgpack.Encoder()
_boot = msgspec.msgpack.Decoder(Boot)
_to_guest = msgspec.msgpack.Decoder(ToGuest)
_to_host = msgspec.msgpack.Decoder(ToHost)


def pack(frame: Frame) -> bytes:
    """Return one frame's bytes, length first.

    Raises:
        FrameError: the frame is larger than ``MAX_FRAME``, or its value cannot be encoded.
    """
    try:
        body = _encoder.encode(frame)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FrameError(f"a {type(frame).__name__} frame cannot be encoded: {error}") from None
    if len(body) > MAX_FRAME:
        raise FrameError(f"a {type(frame).__name__} frame of {len(body):,} bytes is over the limit of {MAX_FRAME:,}")
    return HEAD.pack(len(body)) + body


def decode_boot(body: bytes) -> Boot:
    """Decode the first frame that a guest gets."""
    return _boot.decode(body)


def decode_to_guest(body: bytes) -> ToGuest:
    """Decode a host frame's body; the guest trusts its host."""
    return _to_guest.decode(body)


def decode_to_host(body: bytes) -> ToHost:
    """Decode a guest frame's body.

    Raises:
        FrameError: it is not one of the frames a guest may send.
    """
    try:
        return _to_host.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FrameError(f"not a frame: {error}") from None


class Splitter:
    """Bytes in, whole frame bodies out."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of a stream and return the bodies that are complete.

        Raises:
            FrameError: a frame announces more than the limit; nothing of it was buffered.
        """
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        at = 0
        while len(buffer) - at >= HEAD.size:
            (size,) = HEAD.unpack_from(buffer, at)
            if size > self._max_frame:
                raise FrameError(f"a frame announces {size:,} bytes; the limit is {self._max_frame:,}")
            if len(buffer) - at - HEAD.size < size:
                break
            at += HEAD.size
            bodies.append(bytes(buffer[at : at + size]))
            at += size
        del buffer[:at]
        return bodies

    @property
    def partial(self) -> int:
        """Bytes held of a frame that is not whole yet: not zero at end of stream means a cut-off frame."""
        return len(self._buffer)
