"""One LMDB file, held open by this process: its tables, its transactions, and its growth.

What LMDB asks of its users is met here: the map changes its size only while no transaction is open, a process opens
the file once, a forked child does not touch it, and every error comes out as one of ours.
"""

import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

import lmdb
from lmdb import _Database as Table

from tallystick.contract.errors import StoreClosedError, StoreCorruptError, StoreUnavailableError
from tallystick.store.failures import DOCTOR_HINT, from_lmdb, from_os, mebibytes
from tallystick.store.folders import sync_folder
from tallystick.store.guard import ShareGuard

Transaction: TypeAlias = "lmdb.Transaction[bytes]"
T = TypeVar("T")

_MAX_READERS = 256


class MappedFile:
    """An LMDB file with a fixed set of tables.

    Attributes:
        tables: the handle of each table that the file has, by name.

    Args:
        path: the file; ``<path>-lock`` is LMDB's own.
        names: the tables that a new file gets.
        initial: what a new file holds: table -> key -> value, written with the tables in one transaction.
        create: whether the file may be new; else one without any table counts as damaged.
        map_size: bytes to map at first; the file itself takes what it holds.
        max_map_size: bytes up to which the map may grow.

    Raises:
        StoreCorruptError: the file is cut off, emptied, or not LMDB's.
        StoreUnavailableError: it cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        initial: Mapping[str, Mapping[bytes, bytes]],
        *,
        create: bool,
        map_size: int,
        max_map_size: int,
    ) -> None:
        self._path = path
        self._names = names
        self._max_map_size = max_map_size
        self._guard = ShareGuard()
        self._process = os.getpid()
        self._environment: lmdb.Environment | None = None
        self.tables: dict[str, Table] = {}
        try:
            self._open(min(map_size, max_map_size), initial if create else None)
        except lmdb.Error as error:
            self.close()
            raise from_lmdb("opened", path, error) from error
        except OSError as error:
            self.close()
            raise from_os("opened", path, error) from error
        except StoreCorruptError:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Give a read transaction for the length of the block: one moment's view, which holds up no writer.

        Raises:
            StoreClosedError: the file was closed.
            StoreUnavailableError: this is a forked child, or LMDB refused.
            StoreCorruptError: LMDB found damage.
        """
        try:
            with self._sharing(), self._opened().begin() as transaction:
                yield transaction
        except lmdb.Error as error:
            raise from_lmdb("read", self._path, error) from error

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in a write transaction and commit it, synced, before returning what it returned.

        Where the map is full the transaction is undone, the map grown, and ``work`` run again. An exception undoes
        the transaction as well.

        Raises:
            StoreClosedError: the file was closed.
            StoreUnavailableError: the disk or the largest map is full, or this is a forked child.
            StoreCorruptError: LMDB found damage.
        """
        while True:
            try:
                with self._sharing(), self._opened().begin(write=True) as transaction:
                    return work(transaction)
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                raise from_lmdb("written", self._path, error, self._capacity()) from error

    def check_open(self) -> None:
        """Refuse further use of a closed file.

        Raises:
            StoreClosedError: the file was closed.
            StoreUnavailableError: this is a forked child.
        """
        self._refuse_fork()
        self._opened()

    def close(self) -> None:
        """Close the file after the transactions that are open; a second time does nothing."""
        if os.getpid() != self._process:
            return
        with self._guard.alone():
            if self._environment is not None:
                self._environment.close()
                self._environment = None

    def _sharing(self) -> ShareGuard:
        # Before the guard is touched: a fork copies it as it was, perhaps held by a thread that the child lacks.
        self._refuse_fork()
        return self._guard

    def _refuse_fork(self) -> None:
        if os.getpid() != self._process:
            raise StoreUnavailableError(
                f"{self._path} was opened by process {self._process}, and this is a fork of it",
                hint="start a new program instead of forking, or open the store after the fork",
            )

    def _opened(self) -> lmdb.Environment:
        if self._environment is None:
            raise StoreClosedError("the store is closed", hint="open it again")
        return self._environment

    def _open(self, map_size: int, initial: Mapping[str, Mapping[bytes, bytes]] | None) -> None:
        environment = lmdb.open(
            os.fspath(self._path),
            subdir=False,
            mode=0o600,
            map_size=-(-map_size // mmap.PAGESIZE) * mmap.PAGESIZE,
            max_dbs=len(self._names),
            max_readers=_MAX_READERS,
        )
        self._environment = environment
        self._refuse_truncated(environment)
        environment.reader_check()
        if environment.stat()["entries"]:
            self._open_tables(environment)
        elif initial is not None:
            with environment.begin(write=True) as transaction:
                for name in self._names:
                    self.tables[name] = environment.open_db(name.encode(), transaction)
                for name, rows in initial.items():
                    for key, value in rows.items():
                        transaction.put(key, value, db=self.tables[name])
            sync_folder(self._path.parent)
        else:
            raise StoreCorruptError(f"{self._path} is empty, but the store was in use", hint=DOCTOR_HINT)

    def _open_tables(self, environment: lmdb.Environment) -> None:
        for name in self._names:
            with suppress(lmdb.NotFoundError):
                self.tables[name] = environment.open_db(name.encode(), create=False)

    def _refuse_truncated(self, environment: lmdb.Environment) -> None:
        # LMDB believes its header; a page that the file does not have would kill the process with SIGBUS.
        size = self._path.stat().st_size
        used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        if size < used:
            raise StoreCorruptError(
                f"{self._path} is cut off: it has {size:,} of the {used:,} bytes that its header tells of",
                hint=DOCTOR_HINT,
            )

    def _grow(self) -> None:
        with self._guard.alone():
            environment = self._environment
            if environment is None:
                return  # closed meanwhile, as the next attempt will say
            size, capacity = environment.info()["map_size"], self._capacity()
            if size >= self._max_map_size:
                raise StoreUnavailableError(
                    f"the store is full, and nothing of this batch was written: {capacity}",
                    hint="raise max_map_size and restart the daemon",
                )
            try:
                environment.set_mapsize(min(2 * size, self._max_map_size))
            except lmdb.Error as error:
                # LMDB has let go of the old map by now, so the file is opened anew as it was.
                environment.close()
                self._environment = None
                with suppress(lmdb.Error):
                    self._open(size, None)
                raise from_lmdb("grown", self._path, error, capacity) from error

    def _capacity(self) -> str:
        used, free = self._path.stat().st_size, shutil.disk_usage(self._path.parent).free
        return (
            f"it holds {mebibytes(used)} of at most {mebibytes(self._max_map_size)} (max_map_size), "
            f"and its disk has {mebibytes(free)} free"
        )
