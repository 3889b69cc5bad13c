"""The host's side of a guest's stream: bytes in, verified frames out.

All drivers use it, so that they refuse alike. What a guest checks on its own side is checked here again, by the same
function: a guest may be anything by the time it sends.
"""

from tallystick.sandbox.frames import Call, Crash, Done, FrameError, Ready, Splitter, ToHost, decode_to_host
from tallystick.sandbox.guest.plain import NotPlainError, snapshot_payload, snapshot_result


class Inbox:
    """Checks what a guest sends: size, shape, nonce, order and its allowance of output.

    Args:
        nonce: the launch's; every frame must carry it.
        allowance: how many bytes the guest may send in all.

    Attributes:
        exceeded: True once the allowance was overdrawn.
    """

    def __init__(self, nonce: str, allowance: int) -> None:
        self.exceeded = False
        self._nonce = nonce
        self._left = allowance
        self._splitter = Splitter()
        self._ready = False
        self._ended = False

    def feed(self, data: bytes) -> list[ToHost]:
        """Take bytes and return the frames that are complete.

        Raises:
            FrameError: the guest broke the protocol; none of its further bytes mean anything.
        """
        self._left -= len(data)
        if self._left < 0:
            self.exceeded = True
            raise FrameError("the guest sent more than its allowance of output")
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
