"""What the sandbox says while it makes itself ready: in the daemon's log, and to whoever waits for a guest."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

log = structlog.get_logger("tallystick.sandbox")


class Announcer:
    """Passes each line on to the log and to all who listen just then."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], None]] = []

    def __call__(self, text: str) -> None:
        """Announce a line."""
        log.info("sandbox_prepares", text=text)
        for listener in tuple(self._listeners):
            listener(text)

    @contextmanager
    def heard(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Have ``listener`` told every line meanwhile."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)
