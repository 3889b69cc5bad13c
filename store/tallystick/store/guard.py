"""Shared use, or one thread alone: for a resource that must at times be changed under nobody's feet."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ShareGuard:
    """Any number of threads share, or one thread is alone.

    A thread that wants to be alone stops newcomers first, so that a steady stream of sharers cannot hold it off.
    A thread must not ask to be alone while it shares.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share for the length of the block, after whoever is alone now."""
        with self._changed:
            while self._alone:
                self._changed.wait()
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
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
