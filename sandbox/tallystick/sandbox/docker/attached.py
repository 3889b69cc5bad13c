"""The attached streams of a container, on a plain socket: frames in, frames out, error text on the side.

The engine's client has a stream of its own. It is not used here, because its connection keeps unsent bytes and does
not close before a guest has taken them, because a cancelled write leaves nobody knowing what was sent, and because
it holds back the news that the other side is gone.
"""

import errno
import os
import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import anyio
import anyio.to_thread

from tallystick.sandbox.docker.discovery import PATIENCE, Endpoint

_CHUNK = 1 << 18
_HEAD_LIMIT = 1 << 16
_STDOUT = 1
_ATTACHED = ("HTTP/1.1 101", "HTTP/1.1 200")
_END_OF_HEAD = b"\r\n\r\n"
_HEADER = 8  # stream, three bytes of nothing, four of length


class Demultiplexer:
    """Bytes of the engine's stream in, parts of standard output and of the other streams out."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[bool, bytes]]:
        """Yield each part, however small, and whether it belongs to standard output."""
        at = 0
        while at < len(data):
            if not self._left:
                taken = data[at : at + _HEADER - len(self._header)]
                self._header += taken
                at += len(taken)
                if len(self._header) < _HEADER:
                    return
                self._left = int.from_bytes(self._header[4:], "big")
                self._out = self._header[0] == _STDOUT
                self._header.clear()
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            if part:
                yield self._out, part


class Attached:
    """One container's streams. ``close`` must be called in the end.

    Attributes:
        noise: bytes that came on the error stream so far.
        ended: set once the streams have ended.
    """

    def __init__(self, connection: socket.socket, tail: int) -> None:
        self.noise = 0
        self.ended = anyio.Event()
        self._socket = connection
        self._tail = tail
        self._errors = bytearray()
        self._streams = Demultiplexer()
        self._unsent = bytearray()
        self._writing = anyio.Lock()
        self._reading = anyio.Lock()
        self._closed = False

    async def write(self, data: bytes) -> None:
        """Write all of it. What a cancelled write left over goes out before anything that is written later.

        Raises:
            BrokenPipeError: the container is gone, or this was closed.
        """
        self._unsent += data
        async with self._writing:
            while self._unsent:
                if self._closed or self._hung_up():
                    raise BrokenPipeError
                try:
                    sent = self._socket.send(self._unsent)
                except BlockingIOError:
                    await self._wait_writable()
                except OSError as error:
                    raise BrokenPipeError from error
                else:
                    del self._unsent[:sent]

    async def read(self) -> bytes | None:
        """Return the next bytes of standard output, b"" when only errors came, None at the end or once closed.

        Every call gives the event loop a turn, so that a guest that floods does not keep it from anything else.
        """
        async with self._reading:
            if not self._closed:
                with suppress(anyio.ClosedResourceError):
                    await anyio.wait_readable(self._socket)
            try:
                data = b"" if self._closed else self._socket.recv(_CHUNK)
            except BlockingIOError:
                return b""
            except OSError:
                data = b""
            if not data:
                self.ended.set()
                return None
            return b"".join(part for is_output, part in self._streams.feed(data) if is_output or self._keep(part))

    def _keep(self, part: bytes) -> bool:
        self.noise += len(part)
        self._errors += part
        del self._errors[: max(0, len(self._errors) - self._tail)]
        return False

    def error_text(self) -> str:
        """Return the last bytes of the error stream as text."""
        return self._errors.decode("utf-8", "replace")

    def connected(self) -> bool:
        """Return whether both sides hold the streams."""
        return not (self._closed or self.ended.is_set() or self._hung_up())

    def close(self) -> None:
        """Drop the connection with all that is unsent; whoever waits for it is told. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.ended.set()
        anyio.notify_closing(self._socket)
        self._socket.close()

    async def _wait_writable(self) -> None:
        with suppress(anyio.ClosedResourceError):
            await anyio.wait_writable(self._socket)

    def _hung_up(self) -> bool:
        """Return whether the other side is gone: bytes written to it would vanish without an error."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return bool(poll.poll(0))


async def attach(endpoint: Endpoint, path: str, tail: int) -> Attached:
    """Attach to a container that was created and not yet started, so that nothing of it is missed.

    Args:
        endpoint: the engine.
        path: the container's place in its interface, with the version.
        tail: how many bytes of its error stream are kept.

    Raises:
        OSError: the engine cannot be reached or refuses; the text holds its answer.
    """
    connection = await anyio.to_thread.run_sync(_connect, endpoint)
    attached = Attached(connection, tail)
    try:
        query = "stream=1&stdin=1&stdout=1&stderr=1"
        head = f"POST {path}/attach?{query} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        await attached.write(head.encode())
        await _upgraded(connection)
    except BaseException:
        attached.close()
        raise
    return attached


async def _upgraded(connection: socket.socket) -> None:
    """Read the engine's answer, which is all that comes before the container is started."""
    answer = b""
    while _END_OF_HEAD not in answer:
        await anyio.wait_readable(connection)
        data = connection.recv(_HEAD_LIMIT)
        if not data or len(answer) > _HEAD_LIMIT:
            raise OSError(errno.ECONNRESET, "the engine closed the stream instead of attaching it")
        answer += data
    line = answer.partition(b"\r\n")[0].decode("latin-1")
    if not line.startswith(_ATTACHED) or not answer.endswith(_END_OF_HEAD):
        raise OSError(errno.EPROTO, f"the engine did not attach the stream: {line}")


def _connect(endpoint: Endpoint) -> socket.socket:
    if endpoint.path:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(PATIENCE)
            connection.connect(os.fspath(endpoint.path))
        except BaseException:
            connection.close()
            raise
    else:
        connection = socket.create_connection((endpoint.host, endpoint.port), PATIENCE)
    connection.setblocking(False)  # noqa: FBT003 - a flag of the standard library
    return connection
