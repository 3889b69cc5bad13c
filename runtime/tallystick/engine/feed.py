"""The live stream of a run: whoever watches gets every line, and nobody who reads slowly holds the run up."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from tallystick.engine.messages import Progress

BACKLOG = 2_048


class Feed:
    """One publisher, any number of watchers. A watcher that falls ``BACKLOG`` lines behind is let go."""

    def __init__(self) -> None:
        self._watchers: set[MemoryObjectSendStream[Progress]] = set()

    @property
    def watched(self) -> bool:
        """Whether anybody would see a line."""
        return bool(self._watchers)

    def publish(self, line: Progress) -> None:
        """Hand a line to every watcher."""
        for watcher in list(self._watchers):
            try:
                watcher.send_nowait(line)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._watchers.discard(watcher)
                watcher.close()

    @contextmanager
    def watch(self) -> Iterator[MemoryObjectReceiveStream[Progress]]:
        """Watch from now on; the stream ends with the run's, or when this watcher is too slow."""
        send, receive = anyio.create_memory_object_stream[Progress](BACKLOG)
        self._watchers.add(send)
        try:
            yield receive
        finally:
            self._watchers.discard(send)
            send.close()
            receive.close()

    def close(self) -> None:
        """End the stream of every watcher."""
        for watcher in self._watchers:
            watcher.close()
        self._watchers.clear()
