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


def tamper(path: Path, table: str, change: Callable[[dict[bytes, bytes]], object]) -> None:
    """Let ``change`` edit one table of a closed store behind the store's back."""
    with lmdb.open(os.fspath(path / "journal.mdb"), subdir=False, max_dbs=len(NAMES), map_size=1 << 26) as environment:
        handle = environment.open_db(table.encode())
        with environment.begin(write=True) as transaction:
            rows = dict(transaction.cursor(handle))
            change(rows)
            transaction.drop(handle, delete=False)
            for key, value in rows.items():
                transaction.put(key, value, db=handle)


class Child:
    """A program that reports on its standard output, line by line, until it ends or is killed."""

    def __init__(self, code: str, *arguments: object) -> None:
        command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def kill(self) -> list[str]:
        """Kill it as a crash would, and return the whole lines that were still to be read."""
        self.process.kill()
        return self.process.communicate()[0].split("\n")[:-1]

    def finish(self) -> list[str]:
        """Let it come to its end, which must be a good one, and return its lines."""
        report = self.process.communicate()[0]
        assert self.process.returncode == 0, report
        return report.splitlines()
