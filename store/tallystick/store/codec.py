"""The bytes of the store: every value carries the format's version and a checksum that covers its key as well.

A value is ``version (1 byte) | CRC-32 of table, key, version and body (4 bytes) | body``. The table and the key are
in the sum so that a sound value in a wrong place is noticed too.
"""

import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from tallystick.contract.errors import StoreCorruptError, StoreError
from tallystick.contract.events import AnyEvent, Committed
from tallystick.store.failures import DOCTOR_HINT
from tallystick.store.protocol import RunRow

FORMAT = 1

_HEAD = struct.Struct(">BI")
_SEQUENCE = struct.Struct(">Q")
_RUN_ID = re.compile(r"[!-~]{1,64}")

_encoder = msgspec.msgpack.Encoder()
_events = msgspec.msgpack.Decoder(list[AnyEvent])
_row = msgspec.msgpack.Decoder(RunRow)


class SlotEntry(NamedTuple):
    """What the index gets for one record: its slot's key, its sealed sequence; and the record's event."""

    key: bytes
    value: bytes
    event: Committed


def is_run_id(text: str) -> bool:
    """Tell whether the text can name a run: 1 to 64 printable ASCII characters, no space."""
    return _RUN_ID.fullmatch(text) is not None


def sequence_key(sequence: int) -> bytes:
    """Return the key of a batch: the sequence of its first event in 8 bytes that sort by number."""
    return _SEQUENCE.pack(sequence)


def read_sequence(data: bytes | memoryview) -> int:
    """Read 8 bytes back as a sequence.

    Raises:
        StoreCorruptError: they are not 8 bytes.
    """
    if len(data) != _SEQUENCE.size:
        raise StoreCorruptError(f"{bytes(data)!r} stands where a sequence of 8 bytes belongs", hint=DOCTOR_HINT)
    number: int = _SEQUENCE.unpack(data)[0]
    return number


def batch_prefix(run: str) -> bytes:
    """Return what the index has before the sequence of each batch that holds events of this run.

    The byte after the run id, which no id can have, keeps ``run-1`` and ``run-10`` apart, and batches from slots.
    """
    return run.encode() + b"\0"


def slot_key(run: str, slot: bytes) -> bytes:
    """Return where the index has the sequence of the record in this slot of this run."""
    return run.encode() + b"\1" + slot


def seal(table: str, key: bytes, body: bytes) -> bytes:
    """Frame a body for its place in the store."""
    return _HEAD.pack(FORMAT, _checksum(table, key, FORMAT, body)) + body


def unseal(table: str, key: bytes, value: bytes) -> memoryview:
    """Return the body of a value that was sealed for this place.

    Raises:
        StoreCorruptError: the value is cut off, changed, moved, or of a format that this build does not know.
    """
    if len(value) < _HEAD.size:
        raise _damaged(table, key, "it is cut off")
    version, expected = _HEAD.unpack_from(value)
    if version != FORMAT:
        raise _damaged(table, key, f"it has format {version}, and this build reads format {FORMAT}")
    body = memoryview(value)[_HEAD.size :]
    if _checksum(table, key, version, body) != expected:
        raise _damaged(table, key, "its checksum does not match")
    return body


def encode_events(events: Sequence[AnyEvent]) -> bytes:
    """Encode a batch, once it is certain that it can be read back.

    Raises:
        StoreError: an event holds what cannot be written and read back, or its run id is none.
    """
    return _encode_readable(list(events), _events, [event.run for event in events])


def copy_events(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return a batch as it would be read back, without writing it.

    Raises:
        StoreError: as ``encode_events``.
    """
    return _events.decode(encode_events(events))


def events_of(run: str, batches: Iterable[tuple[bytes, bytes]]) -> list[tuple[int, AnyEvent]]:
    """Return a run's events with their sequences from the batches of the log that hold them.

    Raises:
        StoreCorruptError: a batch is damaged, or holds none of the run's events.
    """
    found: list[tuple[int, AnyEvent]] = []
    for key, value in batches:
        before = len(found)
        batch = enumerate(decode_events(key, value), read_sequence(key))
        found.extend((sequence, event) for sequence, event in batch if event.run == run)
        if len(found) == before:
            raise _damaged("log", key, f"the index names it for run {run}, which it holds nothing of")
    return found


def decode_events(key: bytes, value: bytes) -> list[AnyEvent]:
    """Read a batch of the log.

    Raises:
        StoreCorruptError: the batch is not what was written under this key.
    """
    body = unseal("log", key, value)
    try:
        return _events.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _damaged("log", key, f"this build cannot read it ({error})") from error


def seal_row(row: RunRow) -> tuple[bytes, bytes]:
    """Return key and value of a run's index line.

    Raises:
        StoreError: the row holds what cannot be written and read back, or its run id is none.
    """
    body = _encode_readable(row, _row, [row.run])
    key = row.run.encode()
    return key, seal("runs", key, body)


def unseal_row(key: bytes, value: bytes) -> RunRow:
    """Read a run's index line.

    Raises:
        StoreCorruptError: the line is not what was written for this run.
    """
    try:
        return _row.decode(unseal("runs", key, value))
    except msgspec.MsgspecError as error:
        raise _damaged("runs", key, f"this build cannot read it ({error})") from error


def unseal_slot(key: bytes, value: bytes) -> int:
    """Read the sequence of a slot's record.

    Raises:
        StoreCorruptError: the value is not what was written for this slot.
    """
    return read_sequence(unseal("index", key, value))


def batch_keys(sequence: int, events: Iterable[AnyEvent]) -> list[bytes]:
    """Return what the index gets for a batch: one key for each of its runs."""
    return [batch_prefix(run) + sequence_key(sequence) for run in dict.fromkeys(event.run for event in events)]


def slot_entries(sequence: int, events: Iterable[AnyEvent]) -> list[SlotEntry]:
    """Return what the index gets for the records in a batch."""
    entries = []
    for number, event in enumerate(events, sequence):
        if isinstance(event, Committed):
            key = slot_key(event.run, event.record.identity.slot_key())
            entries.append(SlotEntry(key, seal("index", key, sequence_key(number)), event))
    return entries


def check_run_id(text: str) -> None:
    """Refuse what cannot name a run.

    Raises:
        StoreError: the text is not 1 to 64 printable ASCII characters.
    """
    if not is_run_id(text):
        raise StoreError(f"{text!r} cannot name a run: 1 to 64 printable ASCII characters, no space")


def _encode_readable(value: Any, decoder: msgspec.msgpack.Decoder[Any], runs: Iterable[str]) -> bytes:
    # A struct does not check its fields: a provider's cost of 0.5 would be written without complaint, and its run
    # could never be read again. So what is written has been read back first.
    try:
        body = _encoder.encode(value)
        decoder.decode(body)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise StoreError(f"this cannot be journalled, and nothing of its batch was: {error}") from error
    for run in dict.fromkeys(runs):
        check_run_id(run)
    return body


def _checksum(table: str, key: bytes, version: int, body: bytes | memoryview) -> int:
    place = b"%b\0%b\0%d" % (table.encode(), key, version)
    return zlib.crc32(body, zlib.crc32(place))


def _damaged(table: str, key: bytes, why: str) -> StoreCorruptError:
    if table == "log":
        sequence = read_sequence(key)
        return StoreCorruptError(
            f"the log's batch at sequence {sequence} cannot be used: {why}",
            hint=DOCTOR_HINT,
            details={"table": table, "sequence": sequence},
        )
    name = key.decode("ascii", "backslashreplace")
    return StoreCorruptError(
        f"the entry {name!r} of the table {table} cannot be used: {why}",
        hint=DOCTOR_HINT,
        details={"table": table, "key": name},
    )
