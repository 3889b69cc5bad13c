"""The frames between host and guest: 4 bytes of length (big-endian), then one msgpack message.

Both sides import this module, and it imports nothing but the standard library and msgspec. The guest is
untrusted: the host decodes with a size cap and a closed union, and anything else ends the launch.
"""

import struct
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

HEAD = struct.Struct(">I")
MAX_FRAME = 4 << 20
WINDOW = 256

CallId: TypeAlias = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
Step: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] | Annotated[str, msgspec.Meta(max_length=512)]
StepPath: TypeAlias = Annotated[tuple[Step, ...], msgspec.Meta(max_length=64)]
Site: TypeAlias = Annotated[str, msgspec.Meta(max_length=4096)]
Nonce: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]


class FrameError(Exception):
    """The peer broke the protocol: the launch must end."""


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="t"):
    """What every frame carries. The nonce binds it to one launch; nothing rests on it alone."""

    nonce: Nonce


class Start(Frame, frozen=True, tag="start"):
    """Host: run this annotated script. ``window`` is how many calls may be in flight at once."""

    source: str
    args: Any
    window: int = WINDOW


class Reply(Frame, frozen=True, tag="reply"):
    """Host: the result of a call."""

    id: CallId
    value: Any = None


class Failure(Frame, frozen=True, tag="failure"):
    """Host: a call failed in a way that the script may catch, as ``CapabilityError(kind, text)``."""

    id: CallId
    kind: str
    text: str


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
    occurrence: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    capability: Annotated[str, msgspec.Meta(max_length=256)]
    payload: Any
    take: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    seen: Annotated[tuple[CallId, ...], msgspec.Meta(max_length=65536)] = ()


class Log(Frame, frozen=True, tag="log"):
    """Guest: the script printed or logged a line."""

    text: Annotated[str, msgspec.Meta(max_length=65536)]


class Done(Frame, frozen=True, tag="done"):
    """Guest: ``orchestrate`` returned this."""

    value: Any = None


class Crash(Frame, frozen=True, tag="crash"):
    """Guest: the script ended with an exception.

    ``where`` lists (line, function) of the script's own frames, innermost last; ``capability_error`` is the call
    id when the exception is an uncaught failed call.
    """

    kind: Annotated[str, msgspec.Meta(max_length=256)]
    text: Annotated[str, msgspec.Meta(max_length=16384)]
    where: Annotated[
        tuple[tuple[int, Annotated[str, msgspec.Meta(max_length=256)]], ...], msgspec.Meta(max_length=64)
    ] = ()
    phase: Literal["load", "run", "result"] = "run"


ToGuest: TypeAlias = Start | Reply | Failure
ToHost: TypeAlias = Ready | Call | Log | Done | Crash

_encoder = msgspec.msgpack.Encoder()
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
