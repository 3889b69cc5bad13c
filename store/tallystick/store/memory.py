"""A store in memory, for fast tests: the same promises but one, since nothing of it outlives the process."""

import hashlib
import threading
from collections.abc import Iterator, Sequence

from tallystick.contract.errors import SlotTakenError, StoreClosedError, StoreCorruptError, StoreUnavailableError
from tallystick.contract.events import AnyEvent, Committed, FileRef
from tallystick.store.codec import check_run_id, copy_events, encode_events, seal_row
from tallystick.store.names import names_in, reachable
from tallystick.store.protocol import RunRow, Swept


class MemoryDisk:
    """What a ``MemoryStore`` keeps; it stays when the store is closed, and the next store on it finds it all.

    Args:
        store_id: the store's name for itself.
        key: the store's secret, 32 bytes; fixed, so that effect keys in tests are.
    """

    def __init__(self, store_id: str = "memory", key: bytes = bytes(32)) -> None:
        self.store_id = store_id
        self.key = key
        self.events: list[AnyEvent] = []
        self.by_run: dict[str, list[int]] = {}
        self.slots: dict[tuple[str, bytes], int] = {}
        self.rows: dict[str, RunRow] = {}
        self.files: dict[str, bytes] = {}
        self.in_use = threading.Lock()


class MemoryStore:
    """A store on a ``MemoryDisk``, its own unless one is given; see ``protocol.Store`` for what it promises.

    Raises:
        StoreUnavailableError: another store is open on this disk.
    """

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self._disk = MemoryDisk() if disk is None else disk
        if not self._disk.in_use.acquire(blocking=False):
            raise StoreUnavailableError("another store is open on this disk")
        self.store_id = self._disk.store_id
        self._changing = threading.Lock()
        self._closed = False

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        """Write events and run rows as one; see ``protocol.Store.append``."""
        with self._changing:
            disk = self._open_disk()
            first = len(disk.events) + 1
            copies = copy_events(events)
            for row in rows:
                seal_row(row)
            slots: dict[tuple[str, bytes], int] = {}
            for sequence, event in enumerate(copies, first):
                if isinstance(event, Committed):
                    slot = (event.run, event.record.identity.slot_key())
                    if slot in disk.slots or slot in slots:
                        raise SlotTakenError(f"{event.record.identity} of run {event.run} has its record already")
                    slots[slot] = sequence
            for sequence, event in enumerate(copies, first):
                disk.by_run.setdefault(event.run, []).append(sequence)
            disk.events.extend(copies)
            disk.slots.update(slots)
            disk.rows.update({row.run: row for row in rows})
            return first

    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        """Yield the events of one run as they are now; see ``protocol.Store.read``."""
        with self._changing:
            disk = self._open_disk()
            return iter([(sequence, disk.events[sequence - 1]) for sequence in disk.by_run.get(run, ())])

    def record_sequence(self, run: str, slot_key: bytes) -> int | None:
        """Return the sequence of the event that committed a slot; see ``protocol.Store.record_sequence``."""
        return self._open_disk().slots.get((run, slot_key))

    def row(self, run: str) -> RunRow | None:
        """Return the index line of one run."""
        return self._open_disk().rows.get(run)

    def rows(self, limit: int = 100, before: str | None = None) -> list[RunRow]:
        """Return index lines, newest run first; see ``protocol.Store.rows``."""
        if before is not None:
            check_run_id(before)
        with self._changing:
            rows = self._open_disk().rows
            newest = sorted((run for run in rows if before is None or run < before), reverse=True)
            return [rows[run] for run in newest[: max(limit, 0)]]

    def run_count(self) -> int:
        """Return how many runs have a row."""
        return len(self._open_disk().rows)

    def live_runs(self) -> list[str]:
        """Return the ids of the runs whose row is live, in order."""
        with self._changing:
            return sorted(row.run for row in self._open_disk().rows.values() if row.live)

    def last_sequence(self) -> int:
        """Return the sequence of the newest event, or 0 in an empty store."""
        return len(self._open_disk().events)

    def key(self) -> bytes:
        """Return this store's own 32-byte secret."""
        return self._open_disk().key

    def put_file(self, data: bytes, media_type: str) -> FileRef:
        """Keep one artifact; see ``protocol.Store.put_file``."""
        return self.put_files([(data, media_type)])[0]

    def put_files(self, items: Sequence[tuple[bytes, str]]) -> list[FileRef]:
        """Keep several artifacts; see ``protocol.Store.put_files``."""
        disk = self._open_disk()
        refs = [FileRef(hashlib.sha256(data).hexdigest(), media_type, len(data)) for data, media_type in items]
        disk.files.update((ref.sha256, data) for ref, (data, _) in zip(refs, items, strict=True))
        return refs

    def get_file(self, sha256: str) -> bytes:
        """Return an artifact's bytes; see ``protocol.Store.get_file``."""
        data = self._open_disk().files.get(sha256)
        if data is None:
            raise StoreCorruptError(f"the artifact {sha256} is missing")
        return data

    def has_file(self, sha256: str) -> bool:
        """Tell whether there is an artifact of this name."""
        return sha256 in self._open_disk().files

    def sweep(self, before: float, *, remove: bool = True) -> Swept:  # noqa: ARG002 - its files have no age
        """Remove the artifacts that nothing names, however young; see ``protocol.Store.sweep``."""
        with self._changing:
            disk = self._open_disk()
            kept = reachable(names_in(encode_events(disk.events)), disk.files.get)
            loose = {name: len(data) for name, data in disk.files.items() if name not in kept}
            if remove:
                for name in loose:
                    del disk.files[name]
            return Swept(removed=len(loose), bytes=sum(loose.values()), kept=0)

    def events_since(self, at: float) -> list[AnyEvent]:
        """Return what was written lately; see ``protocol.Store.events_since``."""
        with self._changing:
            return [event for event in self._open_disk().events if event.at >= at]

    def close(self) -> None:
        """Close the store and leave its disk to the next one; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self._disk.in_use.release()

    def _open_disk(self) -> MemoryDisk:
        if self._closed:
            raise StoreClosedError("the store is closed", hint="open it again")
        return self._disk
