"""The host's side of a guest's stream: bytes in, verified frames out.

All drivers use it, so that they refuse alike. What a guest checks on its own side is checked here again, by the same
function: a guest may be anything by the time it sends.
"""

from tallystick.sandbox.frames import (
    Call,
    Crash,
    Done,
    FrameError,
    OutputError,
    Ready,
    Splitter,
    ToHost,
    decode_to_host,
)
from tallystick.sandbox.guest.plain import NotPlainError, snapshot_payload, snapshot_result


def over_allowance(sent: int, allowance: int) -> str:
    """Say by how much a guest has overdrawn its allowance; both in bytes."""
    return f"more than its allowance of output: it may send {allowance >> 20:,} MiB and had sent {sent:,} bytes"


class Inbox:
    """Checks what a guest sends: size, shape, nonce, order and its allowance of output.

    Args:
        nonce: the launch's; every frame must carry it.
        allowance: how many bytes the guest may send in all.

    Attributes:
        exceeded: True once the allowance was overdrawn.
        taken: bytes that the guest has sent.
    """

    def __init__(self, nonce: str, allowance: int) -> None:
        self.exceeded = False
        self._nonce = nonce
        self.taken = 0
        self._allowance = allowance
        self._splitter = Splitter()
        self._ready = False
        self._ended = False

    def feed(self, data: bytes) -> list[ToHost]:
        """Take bytes and return the frames that are complete.

        Raises:
            FrameError: the guest broke the protocol; none of its further bytes mean anything.
        """
        self.taken += len(data)
        if self.taken > self._allowance:
            self.exceeded = True
            raise OutputError(over_allowance(self.taken, self._allowance))
        return [self._checked(body) for body in self._splitter.feed(data)]

    def end(self) -> None:
        """Take the end of the stream.

        Raises:
            FrameError: it cut off a frame.
        """
        if self._splitter.partial:
            raise FrameError(f"the stream ended within a frame, after {self._splitter.partial:,} bytes of it")

    def _checked(self, body: bytes) -> ToHost:
        frame = decode_to_host(body)
        if frame.nonce != self._nonce:
            raise FrameError("a frame with another launch's nonce")
        if self._ended:
            raise FrameError(f"a {type(frame).__name__} frame after the last one")
        if isinstance(frame, Ready) == self._ready:
            raise FrameError("a second Ready frame" if self._ready else "a frame before Ready")
        self._ready = True
        self._ended = isinstance(frame, Done | Crash)
        try:
            if isinstance(frame, Call):
                snapshot_payload(frame.payload)
            elif isinstance(frame, Done):
                snapshot_result(frame.value)
        except NotPlainError as error:
            raise FrameError(f"a guest sends plain data only: {error}") from None
        return frame
