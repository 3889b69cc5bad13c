"""A damaged store says what is wrong, and is never read as empty or as something else."""

import os
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from store_support import opened, tamper
from tallystick.contract.errors import StoreCorruptError, StoreUnavailableError
from tallystick.store.codec import sequence_key
from tallystick.store.conformance import committed, created, row
from tallystick.store.failures import from_lmdb
from tallystick.store.lmdb_store import LmdbStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with opened(path) as store:
        for index in range(3):
            store.append([committed("run-1", index), created("run-2")], [row("run-1")])
    return path


def test_a_changed_batch_is_named(path: Path) -> None:
    def change(rows: dict[bytes, bytes]) -> None:
        rows[sequence_key(3)] = rows[sequence_key(3)][:-1] + b"\x00"

    tamper(path, "log", change)
    with opened(path) as store, pytest.raises(StoreCorruptError, match="batch at sequence 3"):
        store.read("run-1")


def test_swapped_batches_are_noticed(path: Path) -> None:
    def change(rows: dict[bytes, bytes]) -> None:
        rows[sequence_key(1)], rows[sequence_key(3)] = rows[sequence_key(3)], rows[sequence_key(1)]

    tamper(path, "log", change)
    with opened(path) as store, pytest.raises(StoreCorruptError, match="batch at sequence 1"):
        store.read("run-1")


def test_a_missing_batch_is_named(path: Path) -> None:
    tamper(path, "log", lambda rows: rows.pop(sequence_key(3)))
    with opened(path) as store, pytest.raises(StoreCorruptError, match="batch at sequence 3 is missing"):
        store.read("run-2")


def test_a_damaged_last_batch_stops_the_opening_and_leaves_the_lock_free(path: Path) -> None:
    tamper(path, "log", lambda rows: rows.update({sequence_key(5): b"\x01short"}))
    for _ in range(2):
        with pytest.raises(StoreCorruptError, match="batch at sequence 5"):
            LmdbStore(path)


def test_an_index_that_names_a_batch_of_others_is_noticed(path: Path) -> None:
    tamper(path, "index", lambda rows: rows.update({b"run-3\0" + sequence_key(1): b""}))
    with opened(path) as store, pytest.raises(StoreCorruptError, match="names it for run run-3"):
        store.read("run-3")


def test_an_index_key_of_another_length_is_noticed(path: Path) -> None:
    tamper(path, "index", lambda rows: rows.update({b"run-1\0ab": b""}))
    with opened(path) as store, pytest.raises(StoreCorruptError, match="sequence of 8 bytes"):
        store.read("run-1")


@pytest.mark.parametrize(
    "damage", [lambda value: value[:-1], lambda value: value[:0], lambda value: value[:-1] + b"\xff"]
)
def test_a_damaged_row_or_slot_is_an_error_and_not_an_absence(path: Path, damage: Callable[[bytes], bytes]) -> None:
    for table in ("runs", "index"):
        tamper(path, table, lambda rows: rows.update({key: damage(value) for key, value in rows.items() if value}))
    slot = committed("run-1").record.identity.slot_key()
    with opened(path) as store:
        for look in (lambda: store.row("run-1"), store.rows, lambda: store.record_sequence("run-1", slot)):
            with pytest.raises(StoreCorruptError, match="cannot be used"):
                look()
        assert len(list(store.read("run-1"))) == 3


@pytest.mark.parametrize("name", [b"format", b"schema"])
def test_another_format_is_refused_untouched_with_both_versions_named(path: Path, name: bytes) -> None:
    tamper(path, "meta", lambda rows: rows.update({name: b"2"}))
    before = (path / "journal.mdb").read_bytes()
    with pytest.raises(StoreCorruptError, match=f"has {name.decode()} 2, and this build reads {name.decode()} 1"):
        LmdbStore(path)
    assert (path / "journal.mdb").read_bytes() == before
    tamper(path, "meta", lambda rows: rows.update({name: b"1"}))
    with opened(path) as store:
        assert store.last_sequence() == 6


@pytest.mark.parametrize("name", [b"id", b"key"])
def test_a_lost_or_changed_id_or_key_stops_the_opening(path: Path, name: bytes) -> None:
    kept: dict[str, bytes] = {}
    tamper(path, "meta", lambda rows: kept.update(value=rows.pop(name)))
    with pytest.raises(StoreCorruptError, match="lacks"):
        LmdbStore(path)
    tamper(path, "meta", lambda rows: rows.update({name: kept["value"][:-1] + b"!"}))
    with pytest.raises(StoreCorruptError, match="checksum"):
        LmdbStore(path)


def test_a_journal_cut_off_anywhere_is_never_opened(path: Path) -> None:
    journal = path / "journal.mdb"
    whole = journal.read_bytes()
    for length in (0, 1, 100, 4096, 8192, 12288, len(whole) // 2, len(whole) - 1):
        os.truncate(journal, length)
        with pytest.raises(StoreCorruptError):
            LmdbStore(path)
        assert journal.stat().st_size == length
        journal.write_bytes(whole)
    with opened(path) as store:
        assert store.last_sequence() == 6


def test_a_journal_that_is_gone_is_not_begun_anew(path: Path) -> None:
    (path / "journal.mdb").unlink()
    with pytest.raises(StoreCorruptError, match=r"journal\.mdb is gone"):
        LmdbStore(path)
    assert not (path / "journal.mdb").exists()


def test_a_journal_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    (path / "journal.mdb").write_bytes(b"not LMDB" * 1000)
    with pytest.raises(StoreCorruptError, match="could not be opened"):
        LmdbStore(path)


def test_a_second_file_of_a_changed_artifact_heals_it(path: Path) -> None:
    with opened(path) as store:
        ref = store.put_file(b"picture", "image/png")
        file = path / "artifacts" / ref.sha256[:2] / ref.sha256[2:]
        file.write_bytes(b"pictur")
        with pytest.raises(StoreCorruptError, match="do not match its name"):
            store.get_file(ref.sha256)
        assert store.put_file(b"picture", "image/png") == ref
        assert store.get_file(ref.sha256) == b"picture"


def test_an_emptied_journal_is_not_taken_for_a_new_one(path: Path, tmp_path: Path) -> None:
    with lmdb.open(os.fspath(tmp_path / "empty.mdb"), subdir=False):
        pass
    (tmp_path / "empty.mdb").replace(path / "journal.mdb")
    with pytest.raises(StoreCorruptError, match="is empty, but the store was in use"):
        LmdbStore(path)


def test_a_batch_is_never_written_over_another(path: Path) -> None:
    with opened(path) as store:
        before = list(store.read("run-1"))
        store._last -= 2
        with pytest.raises(StoreCorruptError, match="beyond sequence 5"):
            store.append([created("run-1")], [row("run-9")])
        assert list(store.read("run-1")) == before
        assert store.row("run-9") is None


def test_something_else_in_the_place_of_artifacts_is_unavailable(path: Path) -> None:
    with opened(path) as store:
        ref = store.put_file(b"picture", "image/png")
        file = path / "artifacts" / ref.sha256[:2] / ref.sha256[2:]
        file.unlink()
        file.mkdir()
        with pytest.raises(StoreUnavailableError, match="could not be read: Is a directory"):
            store.get_file(ref.sha256)
    (path / "artifacts" / "incoming" / "folder").mkdir()
    with pytest.raises(StoreUnavailableError, match="artifacts could not be prepared"):
        LmdbStore(path)


@pytest.mark.parametrize("kind", [lmdb.PanicError, lmdb.ReadersFullError, lmdb.MemoryError])
def test_what_is_no_damage_is_unavailability(kind: type[lmdb.Error]) -> None:
    error = from_lmdb("written", Path("journal.mdb"), kind("mdb_txn_commit"), "it holds 1 of 2")
    assert isinstance(error, StoreUnavailableError)
    assert ("restart" in error.hint) is (kind is lmdb.PanicError)
