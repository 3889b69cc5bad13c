"""Helpers of the store's tests: a store that closes itself, the raw file behind a closed store, child programs."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.tables import NAMES


@contextmanager
def opened(path: Path, **sizes: int) -> Iterator[LmdbStore]:
    store = LmdbStore(path, **sizes)
    try:
        yield store
    finally:
        store.close()


def tamper(path: Path, table: str, change: Callable[[dict[bytes, bytes]], None]) -> None:
    """Let ``change`` edit one table of a closed store behind the store's back."""
    with lmdb.open(os.fspath(path / "journal.mdb"), subdir=False, max_dbs=len(NAMES), map_size=1 << 26) as environment:
        handle = environment.open_db(table.encode())
        with environment.begin(write=True) as transaction:
            rows = dict(transaction.cursor(handle))
            change(rows)
            transaction.drop(handle, delete=False)
            for key, value in rows.items():
                transaction.put(key, value, db=handle)


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program that reports on its standard output."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run_child(code: str, *arguments: object) -> str:
    """Run a program to its end and return what it reported; it must not fail."""
    with child(code, *arguments) as process:
        assert process.stdout is not None
        report = process.stdout.read()
    assert process.returncode == 0, report
    return report
