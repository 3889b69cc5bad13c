"""Folders that only their owner can enter, and whose entries are on disk when we say so."""

import os
import stat
from pathlib import Path

from tallystick.contract.errors import StoreUnavailableError
from tallystick.store.failures import from_os


def private_folder(path: Path) -> None:
    """Make ``path`` a folder of mode 0700, with its missing parents; tighten one of ours that is open to others.

    Raises:
        StoreUnavailableError: it is no folder, belongs to somebody else, or cannot be made or kept private.
    """
    try:
        _make(path)
        found = path.stat()
        if found.st_uid != os.geteuid():
            raise StoreUnavailableError(
                f"the folder {path} belongs to user {found.st_uid}, not to this one ({os.geteuid()})",
                hint="give the store a folder of your own",
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o700)
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise StoreUnavailableError(
                    f"the folder {path} stays open to other users: its file system keeps no modes",
                    hint="put the store on a file system with permissions",
                )
    except FileExistsError as error:
        raise StoreUnavailableError(
            f"{path} cannot be the store's folder: a file is in the way", hint="name a folder, or a path that is free"
        ) from error
    except OSError as error:
        raise from_os("used as the store's folder", path, error) from error


def make_folder(path: Path) -> None:
    """Make one private folder inside a folder that exists, durably; one that is there already is left alone."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the folder's entries on disk before returning: a synced file can still be lost with its name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make(path: Path) -> None:
    if path.is_dir():
        return
    if path.exists() or path.is_symlink():
        raise FileExistsError
    _make(path.parent)
    make_folder(path)
