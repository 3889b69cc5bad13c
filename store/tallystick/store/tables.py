"""The tables of the journal file and how they are written and read, inside a transaction that somebody else owns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lmdb import _Database as Table

from tallystick.contract.errors import SlotTakenError, StoreCorruptError
from tallystick.contract.events import AnyEvent
from tallystick.store.codec import (
    SlotEntry,
    batch_keys,
    batch_prefix,
    decode_events,
    events_of,
    read_sequence,
    seal,
    seal_row,
    sequence_key,
    slot_entries,
    slot_key,
    unseal,
    unseal_row,
    unseal_slot,
)
from tallystick.store.failures import DOCTOR_HINT
from tallystick.store.mapped_file import Transaction
from tallystick.store.names import names_in
from tallystick.store.protocol import RunRow

NAMES = ("log", "index", "runs", "live", "meta")

RowOf = Callable[[str, Sequence[AnyEvent]], RunRow]


class Rebuilt(NamedTuple):
    """What a rebuild found in the log."""

    events: int
    runs: int


class Tables:
    """The journal's tables; each method works in the transaction that it is given.

    Args:
        handles: LMDB's handle of each table in ``NAMES``; looked up at each use, since a reopened file has new ones.
    """

    def __init__(self, handles: Mapping[str, Table]) -> None:
        self._handles = handles

    def put_batch(self, transaction: Transaction, sequence: int, events: Sequence[AnyEvent], body: bytes) -> None:
        """Append a batch, ``body`` being its encoded events, and index it.

        Raises:
            SlotTakenError: an identity in it has a record already.
            StoreCorruptError: the log has this sequence or a later one.
        """
        self._index(transaction, sequence, events)
        key = sequence_key(sequence)
        if not transaction.put(key, seal("log", key, body), append=True, overwrite=False, db=self._handles["log"]):
            raise StoreCorruptError(f"the log goes beyond sequence {sequence}, its next", hint=DOCTOR_HINT)

    def put_rows(self, transaction: Transaction, rows: Iterable[RunRow]) -> None:
        """Write run rows; of several for one run the last one stands."""
        for row in {row.run: row for row in rows}.values():
            key, value = seal_row(row)
            transaction.put(key, value, db=self._handles["runs"])
            if row.live:
                # Without overwriting, a run that is live already dirties no page.
                transaction.put(key, b"", overwrite=False, db=self._handles["live"])
            else:
                transaction.delete(key, db=self._handles["live"])

    def run_batches(self, transaction: Transaction, run: str) -> list[tuple[bytes, bytes]]:
        """Return keys and values of the log's batches that hold events of a run, in order.

        Raises:
            StoreCorruptError: a batch is missing.
        """
        prefix = batch_prefix(run)
        keys = []
        rows = transaction.cursor(self._handles["index"])
        if rows.set_range(prefix):
            for row in rows.iternext(values=False):
                if not row.startswith(prefix):
                    break
                keys.append(row[len(prefix) :])
        batches = transaction.cursor(self._handles["log"]).getmulti(keys)
        if len(batches) != len(keys):
            missing = read_sequence(min(set(keys) - dict(batches).keys()))
            raise StoreCorruptError(
                f"the log's batch at sequence {missing} is missing, which the index names for run {run}",
                hint=DOCTOR_HINT,
                details={"table": "log", "sequence": missing},
            )
        return batches

    def record_sequence(self, transaction: Transaction, run: str, slot: bytes) -> int | None:
        """Return the sequence of a slot's record, or None."""
        key = slot_key(run, slot)
        value = transaction.get(key, db=self._handles["index"])
        return None if value is None else unseal_slot(key, value)

    def row(self, transaction: Transaction, run: str) -> RunRow | None:
        """Return a run's row, or None."""
        key = run.encode()
        value = transaction.get(key, db=self._handles["runs"])
        return None if value is None else unseal_row(key, value)

    def newest_rows(self, transaction: Transaction, limit: int, before: str | None) -> list[RunRow]:
        """Return up to ``limit`` rows from the newest run on, or from the newest below ``before``."""
        cursor = transaction.cursor(self._handles["runs"])
        found = cursor.last() if before is None or not cursor.set_range(before.encode()) else cursor.prev()
        rows: list[RunRow] = []
        while found and len(rows) < limit:
            rows.append(unseal_row(*cursor.item()))
            found = cursor.prev()
        return rows

    def run_count(self, transaction: Transaction) -> int:
        """Return how many rows there are, which LMDB keeps count of."""
        return int(transaction.stat(self._handles["runs"])["entries"])

    def live_runs(self, transaction: Transaction) -> list[str]:
        """Return the ids of the live runs, in order."""
        return [key.decode() for key in transaction.cursor(self._handles["live"]).iternext(values=False)]

    def last_sequence(self, transaction: Transaction) -> int:
        """Return the sequence of the newest event, or 0.

        Raises:
            StoreCorruptError: the newest batch is damaged.
        """
        cursor = transaction.cursor(self._handles["log"])
        if not cursor.last():
            return 0
        key, value = cursor.item()
        return read_sequence(key) + len(decode_events(key, value)) - 1

    def events_since(self, transaction: Transaction, at: float) -> list[AnyEvent]:
        """Return the events of the newest batches, back to the last one that holds any written since ``at``, in order.

        Raises:
            StoreCorruptError: a batch is damaged.
        """
        cursor = transaction.cursor(self._handles["log"])
        found = cursor.last()
        batches: list[list[AnyEvent]] = []
        while found:
            batch = [event for event in decode_events(*cursor.item()) if event.at >= at]
            if not batch:
                break
            batches.append(batch)
            found = cursor.prev()
        return [event for batch in reversed(batches) for event in batch]

    def names(self, transaction: Transaction, after: bytes, limit: int) -> tuple[set[str], bytes | None]:
        """Return everything in ``limit`` batches of the log that may be the name of an artifact, and where to go on.

        Args:
            transaction: what to read in.
            after: the key of the last batch that was looked at, b"" to begin.
            limit: how many batches to look at.

        Raises:
            StoreCorruptError: a batch is damaged.
        """
        found: set[str] = set()
        cursor = transaction.cursor(self._handles["log"])
        more = cursor.set_range(after + b"\0") if after else cursor.first()
        last = None
        for _ in range(limit):
            if not more:
                return found, None
            last, value = cursor.item()
            found |= names_in(unseal("log", last, value))
            more = cursor.next()
        return found, last

    def rebuild(self, transaction: Transaction, row_of: RowOf) -> Rebuilt:
        """Make all indexes anew from the log, which is read only.

        Raises:
            StoreCorruptError: a batch is damaged or missing, or two records claim one identity.
        """
        for name in ("index", "runs", "live"):
            transaction.drop(self._handles[name], delete=False)
        expected = 1
        runs: set[str] = set()
        for key, value in transaction.cursor(self._handles["log"]):
            sequence = read_sequence(key)
            if sequence != expected:
                raise StoreCorruptError(
                    f"the log has nothing between sequence {expected} and {sequence}",
                    hint=DOCTOR_HINT,
                    details={"table": "log", "sequence": expected},
                )
            events = decode_events(key, value)
            try:
                self._index(transaction, sequence, events)
            except SlotTakenError as error:
                raise StoreCorruptError(error.message, hint=DOCTOR_HINT, details=error.details) from error
            runs.update(event.run for event in events)
            expected += len(events)
        for run in sorted(runs):
            events = [event for _, event in events_of(run, self.run_batches(transaction, run))]
            self.put_rows(transaction, [row_of(run, events)])
        return Rebuilt(events=expected - 1, runs=len(runs))

    def _index(self, transaction: Transaction, sequence: int, events: Sequence[AnyEvent]) -> None:
        for entry in slot_entries(sequence, events):
            if not transaction.put(entry.key, entry.value, overwrite=False, db=self._handles["index"]):
                raise self._taken(transaction, entry)
        for key in batch_keys(sequence, events):
            transaction.put(key, b"", db=self._handles["index"])

    def _taken(self, transaction: Transaction, entry: SlotEntry) -> SlotTakenError:
        event = entry.event
        identity = event.record.identity
        return SlotTakenError(
            f"{identity} of run {event.run} has its record already, and a record is never replaced",
            hint="the first record stands; nothing of this batch was written",
            details={
                "run": event.run,
                "identity": str(identity),
                "sequence": self.record_sequence(transaction, event.run, identity.slot_key()),
            },
        )
