"""What a sandbox driver must do; the contract suite runs under every driver and proves that they agree."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tallystick.sandbox.frames import ToGuest, ToHost


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one guest may use: bytes of memory and output, seconds of CPU, number of open files."""

    memory: int = 512 << 20
    cpu_seconds: int = 60
    open_files: int = 16
    output: int = 256 << 20
    stderr: int = 64 << 10


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a guest ended: exit status or signal, its named cause, and the tail of its error stream."""

    cause: Literal["exit", "signal", "memory", "cpu", "output", "protocol", "killed"]
    code: int | None = None
    signal: int | None = None
    text: str = ""


class EndOfGuest(Exception):  # noqa: N818 - the end of a stream is not an error
    """The guest's frame stream ended; ``wait`` tells how."""


class Sandbox(Protocol):
    """One confined guest, ready for exactly one script."""

    @property
    def pid(self) -> int | None:
        """The process id on this host, where there is one."""

    async def send(self, frames: Sequence[ToGuest]) -> None:
        """Write frames in one go; waits while the guest does not read.

        Raises:
            EndOfGuest: the guest is gone.
            FrameError: a frame is over the size limit; nothing was written.
        """

    async def receive(self) -> list[ToHost]:
        """Wait for bytes and return every whole frame in them, at least one.

        Raises:
            EndOfGuest: the stream ended between frames.
            FrameError: the guest broke the protocol: a malformed, oversized or cut-off frame, a wrong nonce, more
                output than its allowance. The guest must be killed.
        """

    async def wait(self) -> Exit:
        """Wait until the guest has exited and say how; idempotent."""

    async def kill(self) -> Exit:
        """End the guest at once and wait for it; idempotent, safe at any time, shielded from cancellation."""


class Driver(Protocol):
    """Opens sandboxes of one kind."""

    name: str

    async def open(self, limits: Limits, nonce: str) -> Sandbox:
        """Start a guest, wait for its Ready frame, verify its confinement, and return it warm.

        Raises:
            SandboxError: it cannot be started or confined here; the message says which lock is missing and what to do.
        """

    async def close(self) -> None:
        """Kill every guest still open."""


class SandboxError(Exception):
    """No guest could be started or confined."""
