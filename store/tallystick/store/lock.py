"""One process a store: an operating system's lock, which the kernel releases even after ``kill -9``."""

import fcntl
import os
from pathlib import Path

from tallystick.contract.errors import StoreUnavailableError
from tallystick.store.failures import from_os


class StoreLock:
    """An exclusive lock on one file, held from construction until ``release``.

    The lock belongs to the open file, not to the process: a second holder in the same process is refused like one
    in another. For the same reason a forked child that outlives its parent keeps the lock; a program started with
    ``exec`` does not. The file is never deleted, since a lock on a deleted file excludes nobody. The process id in
    it is a hint for people, and nothing decides by it.

    Raises:
        StoreUnavailableError: another holder has the lock, or the file system has none to give.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise from_os("opened", path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise StoreUnavailableError(
                f"another daemon has the store {path.parent} open"
                + (f"; by its lock file it is process {holder}" if holder else ""),
                hint="use that daemon, stop it with 'tally daemon stop', or give this one a folder of its own",
                details={"holder": holder},
            ) from error
        except OSError as error:
            os.close(self._descriptor)
            raise from_os("locked", path, error) from error

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
