"""What an errno or an LMDB code means for whoever waits on the store, in one of our errors."""

import errno
from pathlib import Path

import lmdb

from tallystick.contract.errors import StoreCorruptError, StoreError, StoreUnavailableError

DOCTOR_HINT = "keep a copy of the store's folder as it is, then run 'tally doctor'"

_DAMAGE = (
    lmdb.CorruptedError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.NotFoundError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)
_HINTS = {
    errno.ENOSPC: "free some space on that disk; the store needs no repair",
    errno.EDQUOT: "free some space or raise the quota; the store needs no repair",
    errno.EROFS: "make the file system writable again, or move the store",
    errno.EACCES: "check who owns it and with which mode",
    errno.EPERM: "check who owns it and with which mode",
    errno.EMFILE: "raise the limit on open files of this process (ulimit -n)",
    errno.ENFILE: "raise the system's limit on open files",
}


def from_os(doing: str, path: Path, error: OSError) -> StoreUnavailableError:
    """Explain an operating system's refusal, say ``doing="written"`` on ``path``."""
    reason = error.strerror or type(error).__name__
    return StoreUnavailableError(f"{path} could not be {doing}: {reason}", hint=_HINTS.get(error.errno or 0, ""))


def from_lmdb(doing: str, path: Path, error: lmdb.Error, capacity: str = "") -> StoreError:
    """Explain an LMDB error: damage as StoreCorruptError, all else as StoreUnavailableError.

    ``capacity`` says how full the file and its disk are, since LMDB reports a full disk as a plain I/O error.
    """
    message = f"{path} could not be {doing}: {error}"
    if isinstance(error, _DAMAGE):
        return StoreCorruptError(message, hint=DOCTOR_HINT)
    if isinstance(error, lmdb.PanicError):
        return StoreUnavailableError(message, hint="restart the daemon: the file must be opened anew after this error")
    hint = "if its disk is full, free some space; the store needs no repair" if capacity else ""
    return StoreUnavailableError(f"{message}; {capacity}" if capacity else message, hint=hint)


def mebibytes(size: int) -> str:
    """Show a size in bytes as people compare it with a setting."""
    return f"{size / (1 << 20):,.1f} MiB"
