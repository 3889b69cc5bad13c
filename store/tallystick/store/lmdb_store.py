"""The store on LMDB and the file system: one folder, one process, one writer, any number of readers.

    <folder>/lock                  held by the process that has the store open
    <folder>/journal.mdb           the tables below
    <folder>/artifacts/ab/cdef...  artifact files by content

    log    sequence of a batch's first event -> its events     the truth; only ever appended to
    index  run, 0, sequence of a batch       -> nothing        made from the log, as are runs and live
           run, 1, slot of an identity       -> sequence of its record
    runs   run                               -> its RunRow
    live   run                               -> nothing, while the row is live
    meta   format, schema, id, key

A batch is one value of the log because py-lmdb hands the interpreter's lock over at every operation: beside a busy
thread it is the number of operations that a commit costs, not their size. Batches and slots share a table because a
commit writes whole pages, and what it adds for one run then falls into one.
"""

import secrets
import threading
import uuid
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import AnyEvent, FileRef
from tallystick.store.codec import FORMAT, check_run_id, encode_events, events_of, is_run_id, seal, unseal
from tallystick.store.failures import DOCTOR_HINT
from tallystick.store.files import ArtifactFiles
from tallystick.store.folders import private_folder
from tallystick.store.lock import StoreLock
from tallystick.store.mapped_file import MappedFile, Transaction
from tallystick.store.names import reachable
from tallystick.store.protocol import RunRow, Swept
from tallystick.store.tables import NAMES, Rebuilt, RowOf, Tables

DEFAULT_MAP_SIZE = 64 << 20
DEFAULT_MAX_MAP_SIZE = 64 << 30
SCHEMA = 1
#: Batches of the log that are read in one transaction where all of it is.
_BATCHES_AT_ONCE = 1_000


class LmdbStore:
    """A store in a folder of its own, made on first use; see ``protocol.Store`` for what it promises.

    Args:
        path: the folder; it is kept private to this user.
        map_size: bytes of the journal to map at first. Files take what they hold, not what is mapped.
        max_map_size: bytes up to which the journal may grow.

    Raises:
        StoreUnavailableError: another process (or this one) has the store open, or the folder cannot be used.
        StoreCorruptError: the journal is damaged, missing though the store was in use, or of another format.
    """

    def __init__(
        self, path: Path, *, map_size: int = DEFAULT_MAP_SIZE, max_map_size: int = DEFAULT_MAX_MAP_SIZE
    ) -> None:
        private_folder(path)
        self._appending = threading.Lock()
        self._lock = StoreLock(path / "lock")
        try:
            self._file = _open_journal(path, map_size, max_map_size)
            try:
                with self._file.read() as transaction:
                    self.store_id, self._key = _check_meta(transaction, self._file)
                    self._tables = Tables(self._file.tables)
                    self._last = self._tables.last_sequence(transaction)
                self._artifacts = ArtifactFiles(path / "artifacts")
            except BaseException:
                self._file.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        """Write events and run rows in one durable transaction; see ``protocol.Store.append``."""
        self._file.check_open()
        with self._appending:
            sequence = self._last + 1
            body = encode_events(events)

            def write(transaction: Transaction) -> None:
                if events:
                    self._tables.put_batch(transaction, sequence, events, body)
                self._tables.put_rows(transaction, rows)

            if events or rows:
                self._file.write(write)
            self._last += len(events)
            return sequence

    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        """Yield the events of one run as they are now; see ``protocol.Store.read``."""
        with self._file.read() as transaction:
            batches = self._tables.run_batches(transaction, run) if is_run_id(run) else []
        return iter(events_of(run, batches))

    def record_sequence(self, run: str, slot_key: bytes) -> int | None:
        """Return the sequence of the event that committed a slot; see ``protocol.Store.record_sequence``."""
        with self._file.read() as transaction:
            return self._tables.record_sequence(transaction, run, slot_key) if is_run_id(run) else None

    def row(self, run: str) -> RunRow | None:
        """Return the index line of one run."""
        with self._file.read() as transaction:
            return self._tables.row(transaction, run) if is_run_id(run) else None

    def rows(self, limit: int = 100, before: str | None = None) -> list[RunRow]:
        """Return index lines, newest run first; see ``protocol.Store.rows``."""
        if before is not None:
            check_run_id(before)
        with self._file.read() as transaction:
            return self._tables.newest_rows(transaction, limit, before)

    def run_count(self) -> int:
        """Return how many runs have a row."""
        with self._file.read() as transaction:
            return self._tables.run_count(transaction)

    def live_runs(self) -> list[str]:
        """Return the ids of the runs whose row is live, in order."""
        with self._file.read() as transaction:
            return self._tables.live_runs(transaction)

    def last_sequence(self) -> int:
        """Return the sequence of the newest event, or 0 in an empty store."""
        self._file.check_open()
        return self._last

    def key(self) -> bytes:
        """Return this store's own 32-byte secret."""
        self._file.check_open()
        return self._key

    def put_file(self, data: bytes, media_type: str) -> FileRef:
        """Write one artifact durably; see ``protocol.Store.put_file``."""
        return self.put_files([(data, media_type)])[0]

    def put_files(self, items: Sequence[tuple[bytes, str]]) -> list[FileRef]:
        """Write several artifacts durably; see ``protocol.Store.put_files``."""
        self._file.check_open()
        return self._artifacts.put(items)

    def get_file(self, sha256: str) -> bytes:
        """Return an artifact's bytes, checked against their name; see ``protocol.Store.get_file``."""
        self._file.check_open()
        return self._artifacts.get(sha256)

    def has_file(self, sha256: str) -> bool:
        """Tell whether there is an artifact of this name; see ``protocol.Store.has_file``."""
        self._file.check_open()
        return self._artifacts.touch(sha256)

    def sweep(self, before: float, *, remove: bool = True) -> Swept:
        """Remove the artifacts that nothing names; see ``protocol.Store.sweep``."""
        files = self._artifacts.listing()
        # Read after the list was made: whoever names one of these later has touched it first.
        kept = reachable(self._named(files.keys()), self._artifacts.json)
        loose = sorted(name for name, touched in files.items() if touched < before and name not in kept)
        sizes = {name: self._artifacts.size(name) for name in loose}
        gone = [name for name in loose if not remove or self._artifacts.remove(name, before)]
        return Swept(removed=len(gone), bytes=sum(sizes[name] for name in gone), kept=len(loose) - len(gone))

    def _named(self, files: AbstractSet[str]) -> set[str]:
        """Return those of the files that the log names. The log is read in parts: its map cannot grow meanwhile."""
        named: set[str] = set()
        after: bytes | None = b""
        while after is not None:
            with self._file.read() as transaction:
                found, after = self._tables.names(transaction, after, _BATCHES_AT_ONCE)
            named |= found & files
        return named

    def events_since(self, at: float) -> list[AnyEvent]:
        """Return what was written lately; see ``protocol.Store.events_since``."""
        with self._file.read() as transaction:
            return self._tables.events_since(transaction, at)

    def rebuild_indexes(self, row_of: RowOf) -> Rebuilt:
        """Make every index anew from the log in one transaction; until it commits, the old ones stand.

        Args:
            row_of: what makes a run's row from its id and all its events.

        Raises:
            StoreCorruptError: the log itself is damaged; nothing was changed.
            StoreUnavailableError: the disk or the map refused; nothing was changed.
        """
        self._file.check_open()
        with self._appending:
            return self._file.write(lambda transaction: self._tables.rebuild(transaction, row_of))

    def close(self) -> None:
        """Close the store after the transactions that are open, and give its lock back."""
        self._file.close()
        self._lock.release()


def _open_journal(path: Path, map_size: int, max_map_size: int) -> MappedFile:
    journal = path / "journal.mdb"
    # The folder of artifacts is made after the journal: where it stands, a journal was written.
    used_before = (path / "artifacts").exists()
    if used_before and not (journal.exists() and journal.stat().st_size):
        raise StoreCorruptError(f"the journal {journal} is gone, but its artifacts are there", hint=DOCTOR_HINT)
    meta = {
        b"format": str(FORMAT).encode(),
        b"schema": str(SCHEMA).encode(),
        b"id": seal("meta", b"id", uuid.uuid4().hex.encode()),
        b"key": seal("meta", b"key", secrets.token_bytes(32)),
    }
    return MappedFile(
        journal, NAMES, {"meta": meta}, create=not used_before, map_size=map_size, max_map_size=max_map_size
    )


def _check_meta(transaction: Transaction, file: MappedFile) -> tuple[str, bytes]:
    """Return the store's id and key, once its format and tables are known to be ours."""
    meta = dict(transaction.cursor(file.tables["meta"])) if "meta" in file.tables else {}
    for name, known in ((b"format", FORMAT), (b"schema", SCHEMA)):
        found = meta.get(name, b"none").decode("ascii", "backslashreplace")
        if found != str(known):
            raise StoreCorruptError(
                f"the store has {name.decode()} {found}, and this build reads {name.decode()} {known}; "
                "nothing was changed",
                hint="use the build that wrote it, or a newer one",
            )
    missing = [name for name in (*NAMES, b"id", b"key") if name not in file.tables and name not in meta]
    if missing:
        raise StoreCorruptError(f"the journal lacks {', '.join(map(str, missing))}", hint=DOCTOR_HINT)
    return bytes(unseal("meta", b"id", meta[b"id"])).decode(), bytes(unseal("meta", b"key", meta[b"key"]))
