"""The ``locked`` driver: the guest in a child process that confines itself before it reads the script."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from tallystick.sandbox import frames
from tallystick.sandbox.child import Child
from tallystick.sandbox.frames import Boot, Frame, FrameError, Ready, ToHost, pack
from tallystick.sandbox.guest.lockdown import OPTIONAL
from tallystick.sandbox.guest.process import EXIT_MEMORY, EXIT_UNCONFINED
from tallystick.sandbox.inbox import Inbox
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits, SandboxError, reached

_START_SECONDS = 20.0

# Where the guest finds its modules: the folder that holds this portion of the namespace package, and that of msgspec
# (one and the same in an installed wheel), after the standard library so that nothing in them can stand in for it.
_ROOTS = list(
    dict.fromkeys(str(Path(str(file)).parents[up]) for file, up in ((frames.__file__, 2), (msgspec.__file__, 1)))
)
# Not -I, which ignores PYTHONHASHSEED: the order of a script's sets must not change between launches. The rest of
# isolated mode is here: no user site, no unsafe path, and an environment that holds nothing else.
_OPTIONS = ("-s", "-P", "-S", "-B", "-c")
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}


def program(code: str) -> str:
    """Return a program for the child: ``code``, with the guest's modules within reach."""
    # msgspec asks for typing_extensions; it can do without, and that would take as long to load as all the rest.
    return f"import sys; sys.path += {_ROOTS!r}; sys.modules['typing_extensions'] = None\n{code}"


GUEST = program("from tallystick.sandbox.guest.process import main; main()")


class LockedSandbox:
    """One confined child process. ``kill`` must be called in the end: it lets go of the descriptors."""

    def __init__(self, child: Child, limits: Limits, nonce: str, forget: Callable[["LockedSandbox"], None]) -> None:
        self._child = child
        self._limits = limits
        self._inbox = Inbox(nonce, limits.output)
        self._forget = forget
        self._killed = False
        self._fault: FrameError | None = None
        self._exit: Exit | None = None

    @property
    def pid(self) -> int:
        """The process id on this host."""
        return self._child.pid

    @property
    def image(self) -> str:
        """None: the guest runs in this host's own interpreter."""
        return ""

    def alive(self) -> bool:
        """See ``Sandbox.alive``."""
        return not self._child.closed() and self._child.alive()

    async def send(self, frames: Sequence[Frame]) -> None:
        """See ``Sandbox.send``; the driver sends its own first frame through it too."""
        data = b"".join(map(pack, frames))
        try:
            await self._child.write(data)
        except BrokenPipeError:
            raise EndOfGuest("the guest is gone") from None

    async def receive(self) -> list[ToHost]:
        """See ``Sandbox.receive``."""
        if self._fault is not None:
            raise self._fault
        try:
            while data := await self._child.read():
                received = self._inbox.feed(data)
                if received:
                    return received
            if not self._killed:  # a kill may well cut off a frame
                self._inbox.end()
        except FrameError as fault:
            self._fault = fault
            raise
        raise EndOfGuest("the guest's frames ended")

    async def wait(self) -> Exit:
        """See ``Sandbox.wait``."""
        status = await self._child.wait()
        if self._exit is None:
            cause = exit_cause(status, killed=self._killed, fault=self._fault, exceeded=self._inbox.exceeded)
            self._exit = Exit(
                cause=cause,
                code=status if status >= 0 else None,
                signal=-status if status < 0 else None,
                text=self._child.error_text(self._limits.stderr),
                limit=reached(cause, self._limits, self._inbox.taken),
            )
        return self._exit

    async def kill(self) -> Exit:
        """See ``Sandbox.kill``."""
        with anyio.CancelScope(shield=True):
            if self._child.alive():
                self._killed = True
                self._child.signal(signal.SIGKILL)
            exit_ = await self.wait()
            self._child.close()
            self._forget(self)
        return exit_


class LockedDriver:
    """Opens guests that confine themselves; Linux on x86_64 or aarch64, with or without privileges.

    Args:
        allow_missing: locks to do without where the kernel lacks them, of "landlock" and "seccomp". This weakens the
            wall: whoever decides it says so in the audit log.
        guest: the Python source that the child runs; only tests of hostile guests name another.

    Raises:
        ValueError: a lock of ``allow_missing`` is none that can be done without.
    """

    name = "locked"
    image = ""

    def __init__(self, *, allow_missing: Iterable[str] = (), guest: str = GUEST) -> None:
        self._allow_missing = tuple(sorted(set(allow_missing)))
        unknown = sorted(set(self._allow_missing) - OPTIONAL)
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: only {' and '.join(sorted(OPTIONAL))} can be done without")
        self._command = (sys.executable, *_OPTIONS, guest)
        self._open: set[LockedSandbox] = set()

    async def open(self, limits: Limits, nonce: str) -> LockedSandbox:
        """Start a guest, wait for its Ready frame, and return it confined and warm.

        Raises:
            SandboxError: it cannot be started or confined here.
        """
        try:
            child = Child(self._command, _ENVIRONMENT)
        except (OSError, AttributeError) as error:  # AttributeError: os offers no pidfd or memfd outside Linux
            raise SandboxError(
                f"no guest could be started: {error}; the locked sandbox needs Linux 5.13 or newer"
            ) from error
        sandbox = LockedSandbox(child, limits, nonce, self._open.discard)
        self._open.add(sandbox)
        try:
            with anyio.fail_after(_START_SECONDS):
                await sandbox.send([self._boot(limits, nonce)])
                received = await sandbox.receive()
            self._verify(received)
        except (EndOfGuest, FrameError, TimeoutError) as error:
            raise _not_started(error, await sandbox.kill()) from None
        except BaseException:
            await sandbox.kill()
            raise
        return sandbox

    async def close(self) -> None:
        """Kill every guest still open."""
        for sandbox in tuple(self._open):
            await sandbox.kill()

    def _boot(self, limits: Limits, nonce: str) -> Boot:
        return Boot(
            nonce=nonce,
            parent=os.getpid(),
            memory=limits.memory,
            cpu_seconds=limits.cpu_seconds,
            open_files=limits.open_files,
            stderr=limits.stderr,
            allow_missing=self._allow_missing,
        )

    def _verify(self, received: Sequence[ToHost]) -> None:
        ready = received[0]
        if not isinstance(ready, Ready) or len(received) > 1:
            raise FrameError("a guest answers its boot with Ready, and then waits")
        in_force = {"landlock": ready.landlock > 0, "seccomp": ready.seccomp}
        missing = [lock for lock, closed in in_force.items() if not closed and lock not in self._allow_missing]
        if missing:
            raise SandboxError(f"the guest runs without {' and '.join(missing)}, which nobody allowed; it was ended")


def exit_cause(
    status: int, *, killed: bool, fault: FrameError | None, exceeded: bool
) -> Literal["exit", "signal", "memory", "cpu", "output", "protocol", "killed"]:
    """Name what ended a guest.

    Args:
        status: its exit status, or minus the signal that ended it.
        killed: whether the host killed it.
        fault: the breach of the protocol that the host saw, if any.
        exceeded: whether that was too much output.
    """
    if status == -signal.SIGXCPU:
        return "cpu"
    if status == EXIT_MEMORY:
        return "memory"
    if fault is not None:
        return "output" if exceeded else "protocol"
    if status == -signal.SIGKILL:
        return "killed" if killed else "memory"  # not by us, and nothing else here may: the system ran out of memory
    return "signal" if status < 0 else "exit"


def _not_started(error: Exception, exit_: Exit) -> SandboxError:
    if exit_.code == EXIT_UNCONFINED:
        return SandboxError(f"the guest could not be confined, so it was not used. {exit_.text}")
    if isinstance(error, TimeoutError):
        error = TimeoutError(f"no sign of life within {_START_SECONDS:g} s")
    return SandboxError(f"the guest did not start: {error}. {exit_.text or f'It ended by {exit_.cause}.'}")
