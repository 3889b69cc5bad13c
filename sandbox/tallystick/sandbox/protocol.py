"""What a sandbox driver must do; the contract suite runs under every driver and proves that they agree."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tallystick.sandbox.frames import ToGuest, ToHost


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one guest may use: bytes of memory, of frames it sends and of error text, seconds of CPU, open files."""

    memory: int = 512 << 20
    cpu_seconds: int = 60
    open_files: int = 16
    output: int = 256 << 20
    stderr: int = 64 << 10


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a guest ended: exit status or signal, its named cause, and the tail of its error stream.

    ``killed`` was the host, ``lost`` is a guest that something else took away: nobody can say more of its end.
    ``code`` is 0 after a Done frame, and not 0 after a Crash. ``limit`` says of a limit how much it was and what was
    reached; "" when none ended the guest.
    """

    cause: Literal["exit", "signal", "memory", "cpu", "output", "protocol", "killed", "lost"]
    code: int | None = None
    signal: int | None = None
    text: str = ""
    limit: str = ""


def reached(cause: str, limits: Limits, sent: int = 0) -> str:
    """Say how much the limit was that a guest came to its end by, and what was reached; "" for any other cause.

    Args:
        cause: the guest's, as in ``Exit``.
        limits: what it was given.
        sent: bytes that it has sent, error text included.
    """
    match cause:
        case "memory":
            return f"it may have {limits.memory >> 20:,} MiB of memory and asked for more"
        case "cpu":
            return f"it may use {limits.cpu_seconds:,} s of processor time and used all of it"
        case "output":
            return f"it had sent {sent:,} bytes and may send {limits.output >> 20:,} MiB"
    return ""


class EndOfGuest(Exception):  # noqa: N818 - the end of a stream is not an error
    """The guest's frame stream ended; ``wait`` tells how."""


class Sandbox(Protocol):
    """One confined guest, ready for exactly one script.

    One task may send while another receives, and a host must have both: a guest that is writing does not read.
    However a guest ends, ``kill`` must be called at last; it lets go of what the guest held on this host.
    """

    @property
    def pid(self) -> int | None:
        """The process id on this host, where there is one."""

    @property
    def image(self) -> str:
        """The id of the image that it runs in, "" where the driver has none."""

    def alive(self) -> bool:
        """Return whether it seems to run still: quick, from what this host knows without asking anybody."""

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
        """End the guest at once, wait for it and release it; idempotent, safe at any time, shielded from cancellation.

        Returns:
            How it ended: "killed" only if it was still running.
        """


class Driver(Protocol):
    """Opens sandboxes of one kind."""

    name: str

    @property
    def image(self) -> str:
        """The id of the image that guests run in, "" where there is none, or none yet."""

    async def open(self, limits: Limits, nonce: str) -> Sandbox:
        """Start a guest, wait for its Ready frame, verify its confinement, and return it warm.

        Raises:
            SandboxError: it cannot be started or confined here; the message says which lock is missing and what to do.
        """

    async def close(self) -> None:
        """Kill every guest still open."""


class SandboxError(Exception):
    """No guest could be started or confined."""
