"""What a store must do (architecture.md, section 4). The conformance kit (``conformance.py``) holds any store to it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from tallystick.contract.events import AnyEvent, FileRef, RunStatus


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the index of runs: enough for a listing, so that a listing folds no history.

    ``live`` is True from the start of a launch until it ended and all its attempts did; after an interruption it stays
    True for as long as the run may go on by itself, so that the next start finds it. ``spent`` (micro-dollars) is
    what was known then, beside ``unpriced`` calls of unknown cost.
    """

    run: str
    name: str
    status: RunStatus
    created: float
    updated: float
    live: bool
    spent: int = 0
    unpriced: int = 0


class Swept(msgspec.Struct, frozen=True):
    """What a sweep has removed, and what it has kept although nothing names it, because it was touched lately."""

    removed: int
    bytes: int
    kept: int


class Store(Protocol):
    """An append-only log of events with indexes that the same transaction writes.

    All methods are synchronous and may be called from any thread; appends are written one after another. Every
    failure raises a ``StoreError``: an unreadable value is an error, never an absent one. A run id is 1 to 64
    printable ASCII characters without space, and run ids sort by age; what cannot be a run id has no events, no row
    and no records.
    """

    store_id: str

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        """Write events and run rows in one durable transaction; return the sequence of the first event.

        Sequences count events from 1, without a gap. Rows alone may be written; the sequence returned is then the
        next event's. Of several rows for one run the last one stands.

        Raises:
            StoreError: an event or a row holds what cannot be written and read back.
            SlotTakenError: a ``Committed`` event names an identity that already has a record in its run; nothing of
                the batch was written.
            StoreUnavailableError: the disk or the map refused; nothing of the batch was written.
        """

    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        """Yield the events of one run in order, with their sequences; nothing when the run is unknown.

        They are those of the moment of the call, whatever is appended while they are taken, and all of them are
        checked before the first is given out.

        Raises:
            StoreCorruptError: a value is damaged or missing.
        """

    def record_sequence(self, run: str, slot_key: bytes) -> int | None:
        """Return the sequence of the event that committed this slot, or None when it has no record."""

    def row(self, run: str) -> RunRow | None:
        """Return the index line of one run."""

    def rows(self, limit: int = 100, before: str | None = None) -> list[RunRow]:
        """Return index lines, newest run first: up to ``limit``, of run ids below ``before``.

        Raises:
            StoreError: ``before`` cannot be a run id.
        """

    def run_count(self) -> int:
        """Return how many runs have a row, at a cost that does not grow with them."""

    def live_runs(self) -> list[str]:
        """Return the ids of the runs whose row is live, in order."""

    def last_sequence(self) -> int:
        """Return the sequence of the newest event, or 0 in an empty store."""

    def key(self) -> bytes:
        """Return this store's own 32-byte secret; effect keys derive from it."""

    def put_file(self, data: bytes, media_type: str) -> FileRef:
        """Write an artifact by content, durably (file, then its folder); the same bytes twice are one file.

        Raises:
            StoreUnavailableError: the disk refused.
        """

    def put_files(self, items: Sequence[tuple[bytes, str]]) -> list[FileRef]:
        """Write several artifacts, (bytes, media type) each, as ``put_file`` does, for fewer syncs.

        Raises:
            StoreUnavailableError: the disk refused; artifacts that were complete by then stay.
        """

    def get_file(self, sha256: str) -> bytes:
        """Return an artifact's bytes, checked against their name, 64 hexadecimal digits.

        Raises:
            StoreCorruptError: the file is missing, its bytes do not match its name, or the name is none.
        """

    def has_file(self, sha256: str) -> bool:
        """Tell whether there is an artifact of this name; one that is there counts as touched now."""

    def sweep(self, before: float, *, remove: bool = True) -> Swept:
        """Remove the artifacts that no event names, nor a file of JSON that one names, and that are old enough.

        May run beside everything else, and be cut off at any point: what is named stays.

        Args:
            before: Unix time; an artifact that was put, or asked after with ``has_file``, since then stays.
            remove: False to say only what would go.

        Raises:
            StoreCorruptError: an event is damaged, so that nobody knows what it names; nothing was removed.
            StoreUnavailableError: the disk refused.
        """

    def events_since(self, at: float) -> list[AnyEvent]:
        """Return the events of all runs that were written since ``at`` (Unix time), in order.

        The cost grows with them alone: the log is read from its end, up to the first batch that is older.

        Raises:
            StoreCorruptError: a batch is damaged.
        """

    def close(self) -> None:
        """Release the store and its lock; further calls raise ``StoreClosedError``, a second ``close`` does nothing."""
