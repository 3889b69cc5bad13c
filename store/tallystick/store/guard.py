"""Shared use, or one thread alone: for a resource that must at times be changed under nobody's feet."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType


class ShareGuard(AbstractContextManager[None]):
    """Any number of threads share, ``with guard:``, or one thread is alone, ``with guard.alone():``.

    A thread that wants to be alone stops newcomers first, so that a steady stream of sharers cannot hold it off.
    A thread must not ask to be alone while it shares.
    """

    def __init__(self) -> None:
        # Sharers take the lock itself, which is quicker than through the condition on it, and there are many.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._sharing = 0
        self._alone = False

    def __enter__(self) -> None:
        with self._lock:
            while self._alone:
                self._changed.wait()
            self._sharing += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._sharing -= 1
            if self._alone and not self._sharing:
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one for the length of the block, after all who share now."""
        with self._changed:
            while self._alone:
                self._changed.wait()
            self._alone = True
            while self._sharing:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
