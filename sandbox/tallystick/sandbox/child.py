"""A child process on plain descriptors: its pipes, its bounded error text, its end.

asyncio's own processes are not used. A parent-death signal follows the thread that forked, so the fork must not move
to a worker thread, which retires and would take its children along; and a transport keeps unsent bytes, which the
kill of a child that never reads would have to wait for.
"""

import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

import anyio

_CHUNK = 1 << 18


class Child:
    """One child process, leader of a session of its own. ``close`` must be called in the end.

    Its error stream is a file in memory, which its own limit on file sizes bounds: a flood costs the host nothing,
    and nobody has to keep reading it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        with ExitStack() as undo:
            self._errors = os.memfd_create("guest-stderr", os.MFD_CLOEXEC)
            undo.callback(os.close, self._errors)
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
            undo.push(self._process)
            undo.callback(self._process.kill)
            self.pid = self._process.pid
            self._end = os.pidfd_open(self.pid)
            undo.pop_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._unsent = bytearray()
        self._writing = anyio.Lock()
        self._waiting = anyio.Lock()
        self._closed = False

    async def write(self, data: bytes) -> None:
        """Write all of it. What a cancelled write left over goes out before anything that is written later.

        Raises:
            BrokenPipeError: the child is gone, or this was closed.
        """
        self._unsent += data
        async with self._writing:
            while self._unsent:
                if self.closed():
                    raise BrokenPipeError
                try:
                    sent = os.write(self._stdin.fileno(), self._unsent)
                except BlockingIOError:
                    await self._wait_for(anyio.wait_writable, self._stdin.fileno())
                else:
                    del self._unsent[:sent]

    async def read(self) -> bytes:
        """Return the next bytes of its output, b"" at their end or once this is closed.

        Every call gives the event loop a turn, so that a child that floods does not keep it from anything else.
        """
        if not self.closed():
            await self._wait_for(anyio.wait_readable, self._stdout.fileno())
        return b"" if self.closed() else os.read(self._stdout.fileno(), _CHUNK)

    def closed(self) -> bool:
        """Return whether ``close`` was called."""
        return self._closed

    def alive(self) -> bool:
        """Return whether it still runs; one that has ended but was not waited for does not."""
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PIDFD, self._end, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    async def wait(self) -> int:
        """Wait until it has ended, and with it its whole session; return its status, or minus its signal."""
        async with self._waiting:
            if self._process.returncode is None:
                await anyio.wait_readable(self._end)
                self.signal(signal.SIGKILL)  # what it left behind; its own number is taken until it is waited for
            return self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to its whole session."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def error_text(self, limit: int) -> str:
        """Return the last ``limit`` bytes that it wrote to its error stream."""
        size = os.fstat(self._errors).st_size
        return os.pread(self._errors, limit, max(0, size - limit)).decode("utf-8", "replace")

    def close(self) -> None:
        """Close every descriptor; whoever waits for one of them is told that it is closed. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for descriptor in (self._stdin.fileno(), self._stdout.fileno()):
            anyio.notify_closing(descriptor)
        self._stdin.close()
        self._stdout.close()
        os.close(self._end)
        os.close(self._errors)

    @staticmethod
    async def _wait_for(event: Callable[[int], Awaitable[None]], descriptor: int) -> None:
        with suppress(anyio.ClosedResourceError):
            await event(descriptor)
