"""Artifact files, named by their content: ``<root>/ab/cdef...`` holds the bytes whose SHA-256 is ``abcdef...``."""

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import FileRef
from tallystick.store.failures import DOCTOR_HINT, from_os
from tallystick.store.folders import make_folder, sync_folder
from tallystick.store.names import may_be_json

_NAME = re.compile(r"[0-9a-f]{64}")
#: Bytes that are looked at to see what an artifact is.
_PEEK = 64
#: Digits of a name that make its folder.
_FAN = 2


class ArtifactFiles:
    """The artifacts under one folder, which is made if it is missing.

    A file is written under another name in ``incoming``, synced, renamed, and its folder synced, so that a name
    never stands for half a file. What a crash left in ``incoming`` is removed at the next start.

    Raises:
        StoreUnavailableError: the folder cannot be made or read.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._incoming = root / "incoming"
        self._making_folder = threading.Lock()
        self._removing = threading.Lock()
        try:
            make_folder(root)
            make_folder(self._incoming)
            for leftover in self._incoming.iterdir():
                leftover.unlink()
            # A crash may have come between the making of a folder and its sync.
            sync_folder(root)
        except OSError as error:
            raise from_os("prepared", root, error) from error

    def put(self, items: Sequence[tuple[bytes, str]]) -> list[FileRef]:
        """Write (bytes, media type) pairs durably and return their references in the same order.

        The folders are synced once for all items.

        Raises:
            StoreUnavailableError: the disk refused; files that were complete by then stay, under their names.
        """
        refs = [FileRef(hashlib.sha256(data).hexdigest(), media_type, len(data)) for data, media_type in items]
        folders = set()
        try:
            for ref, (data, _) in zip(refs, items, strict=True):
                path = self._path(ref.sha256)
                # Locked, so that nobody takes a folder for durable that another thread has yet to sync.
                with self._making_folder:
                    make_folder(path.parent)
                self._put(path, data)
                folders.add(path.parent)
            for folder in folders:
                sync_folder(folder)
        except OSError as error:
            raise from_os("written to", self._root, error) from error
        return refs

    def get(self, sha256: str) -> bytes:
        """Return the bytes of one artifact.

        Raises:
            StoreCorruptError: it is missing, or its bytes do not match its name.
            StoreUnavailableError: it cannot be read.
        """
        if not _NAME.fullmatch(sha256):
            raise StoreCorruptError(f"no artifact is named {sha256!r}: a name is 64 hexadecimal digits")
        path = self._path(sha256)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise StoreCorruptError(f"the artifact {sha256} is missing from {self._root}", hint=DOCTOR_HINT) from error
        except OSError as error:
            raise from_os("read", path, error) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise StoreCorruptError(f"the artifact {path} was changed: its bytes do not match its name")
        return data

    def touch(self, sha256: str) -> bool:
        """Tell whether there is an artifact of this name, and keep it from being removed as an old one if so."""
        if not _NAME.fullmatch(sha256):
            return False
        with self._removing:
            try:
                os.utime(self._path(sha256))
            except FileNotFoundError:
                return False
            return True

    def listing(self) -> dict[str, float]:
        """Return when each artifact was last touched (Unix time), by name.

        Raises:
            StoreUnavailableError: the folder cannot be read.
        """
        try:
            paths = [path for folder in self._root.iterdir() if len(folder.name) == _FAN for path in folder.iterdir()]
            found = {path.parent.name + path.name: path.stat().st_mtime for path in paths}
        except OSError as error:
            raise from_os("read", self._root, error) from error
        return {name: touched for name, touched in found.items() if _NAME.fullmatch(name)}

    def json(self, sha256: str) -> bytes | None:
        """Return the bytes of an artifact that may be JSON, unchecked; None for any other, which is not read.

        Raises:
            StoreUnavailableError: it cannot be read.
        """
        path = self._path(sha256)
        try:
            with path.open("rb") as file:
                return path.read_bytes() if may_be_json(file.read(_PEEK)) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os("read", path, error) from error

    def size(self, sha256: str) -> int:
        """Return how many bytes an artifact has, 0 where there is none."""
        try:
            return self._path(sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def remove(self, sha256: str, before: float) -> bool:
        """Remove an artifact unless it was touched since; tell whether it was removed.

        Raises:
            StoreUnavailableError: the disk refused.
        """
        path = self._path(sha256)
        try:
            with self._removing:
                if path.stat().st_mtime >= before:
                    return False
                path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise from_os("removed", path, error) from error
        return True

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:_FAN] / sha256[_FAN:]

    def _put(self, path: Path, data: bytes) -> None:
        with self._removing:
            if _holds(path, data):
                return
        descriptor, name = tempfile.mkstemp(dir=self._incoming)
        incoming = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            incoming.replace(path)
        except OSError:
            incoming.unlink()
            raise


def _holds(path: Path, data: bytes) -> bool:
    """Tell whether the file has these bytes already, and make sure of them on disk if so; a damaged one does not."""
    try:
        with path.open("rb") as file:
            if file.read() != data:
                return False
            os.utime(file.fileno())
            os.fsync(file.fileno())
    except FileNotFoundError:
        return False
    return True
