"""The ``memory`` driver: the guest's state machine in this very process, for tests.

It isolates NOTHING: a script runs with the host's rights, in the host's memory, on the host's event loop, and an
endless one hangs it. Its use is that thousands of launches a second run the same guest code, through the same
encoding and the same checks, as the drivers that do isolate.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import anyio

from tallystick.sandbox.frames import HEAD, FrameError, Ready, ToGuest, ToHost, decode_to_guest, pack
from tallystick.sandbox.guest.core import Guest
from tallystick.sandbox.guest.process import EXIT_CRASH, EXIT_MEMORY, exit_code
from tallystick.sandbox.inbox import Inbox
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits, reached


class MemorySandbox:
    """One guest without walls. Frames pass through their encoding, so that host and guest share no object."""

    def __init__(self, limits: Limits, nonce: str, forget: Callable[["MemorySandbox"], None]) -> None:
        self._guest: Guest | None = Guest(nonce)
        self._limits = limits
        self._inbox = Inbox(nonce, limits.output)
        self._inbox.feed(pack(Ready(nonce=nonce)))
        self._forget = forget
        self._arrived: list[ToHost] = []
        self._fault: FrameError | None = None
        self._exit: Exit | None = None
        self._news = anyio.Event()
        self._ended = anyio.Event()

    @property
    def pid(self) -> None:
        """No process of its own."""
        return

    @property
    def image(self) -> str:
        """No image."""
        return ""

    def alive(self) -> bool:
        """See ``Sandbox.alive``."""
        return self._exit is None

    async def send(self, frames: Sequence[ToGuest]) -> None:
        """See ``Sandbox.send``. The script runs within this call."""
        bodies = [pack(frame)[HEAD.size :] for frame in frames]
        if self._guest is None:
            raise EndOfGuest("the guest is gone")
        try:
            with _quietly():
                sent = self._guest.feed(map(decode_to_guest, bodies))
        except FrameError as error:
            self._end(Exit(cause="exit", code=EXIT_CRASH, text=str(error)))
            return
        last = self._guest.last
        try:
            self._arrived += self._inbox.feed(b"".join(map(pack, sent)))
        except FrameError as fault:
            self._fault = fault
            cause: Literal["output", "protocol"] = "output" if self._inbox.exceeded else "protocol"
            self._end(Exit(cause=cause, limit=reached(cause, self._limits, self._inbox.taken)))
        else:
            if last is not None:
                code = exit_code(last)
                ended: Literal["memory", "exit"] = "memory" if code == EXIT_MEMORY else "exit"
                self._end(Exit(cause=ended, code=code, limit=reached(ended, self._limits)))
        self._news.set()

    async def receive(self) -> list[ToHost]:
        """See ``Sandbox.receive``."""
        await anyio.lowlevel.checkpoint()
        while not self._arrived:
            if self._fault is not None:
                raise self._fault
            if self._guest is None:
                raise EndOfGuest("the guest's frames ended")
            self._news = anyio.Event()
            await self._news.wait()
        received, self._arrived = self._arrived, []
        return received

    async def wait(self) -> Exit:
        """See ``Sandbox.wait``."""
        await self._ended.wait()
        assert self._exit is not None
        return self._exit

    async def kill(self) -> Exit:
        """See ``Sandbox.kill``."""
        self._forget(self)
        if self._exit is None:
            self._arrived.clear()
            self._end(Exit(cause="killed"))
        assert self._exit is not None
        return self._exit

    def _end(self, exit_: Exit) -> None:
        self._exit = exit_
        with _quietly():
            self._guest = None
        self._ended.set()
        self._news.set()


class MemoryDriver:
    """Opens guests without walls; see the head of this module."""

    name = "memory"
    image = ""

    def __init__(self) -> None:
        self._open: set[MemorySandbox] = set()

    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        """Return a guest at once. Of the limits, only ``output`` is kept."""
        sandbox = MemorySandbox(limits, nonce, self._open.discard)
        self._open.add(sandbox)
        return sandbox

    async def close(self) -> None:
        """Drop every guest still open."""
        for sandbox in tuple(self._open):
            await sandbox.kill()


@contextmanager
def _quietly() -> Iterator[None]:
    """Let a script that is cut off drop coroutines that were never awaited; a process would take them along."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
