"""The indexes are made anew from the log alone, or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from store_support import opened, tamper
from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import AnyEvent
from tallystick.store.codec import seal, sequence_key
from tallystick.store.conformance import committed, created, row
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.protocol import RunRow
from tallystick.store.tables import Rebuilt

INDEXES = ("index", "runs", "live")


def row_of(run: str, events: Sequence[AnyEvent]) -> RunRow:
    return row(run, status="running" if len(events) > 1 else "interrupted", live=len(events) > 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with opened(path) as store:
        store.append([created("run-1"), created("run-2")], [row("run-2", status="interrupted", live=False)])
        for index in range(20):
            store.append([committed("run-1", index)], [row("run-1")])
    return path


def state(store: LmdbStore) -> Any:
    slots = [committed("run-1", index).record.identity.slot_key() for index in range(21)]
    return (
        [list(store.read(run)) for run in ("run-1", "run-2", "run-3")],
        [store.record_sequence("run-1", slot) for slot in slots],
        store.rows(),
        store.live_runs(),
    )


@pytest.mark.parametrize("lost", INDEXES)
def test_a_lost_index_comes_back_as_it_was(path: Path, lost: str) -> None:
    with opened(path) as store:
        before = state(store)
    tamper(path, lost, lambda rows: rows.clear())
    with opened(path) as store:
        assert state(store) != before
        assert store.rebuild_indexes(row_of) == Rebuilt(events=22, runs=2)
        assert state(store) == before
        assert store.append([committed("run-1", 20)]) == 23


def test_a_rebuild_drops_what_the_log_does_not_tell(path: Path) -> None:
    with opened(path) as store:
        before = state(store)
        store.append([], [row("run-3")])
        store.rebuild_indexes(row_of)
        assert state(store) == before


def test_a_rebuild_grows_the_map_when_it_must(path: Path) -> None:
    with opened(path, map_size=1, max_map_size=1 << 30) as store:
        assert store.rebuild_indexes(row_of).events == 22


def test_a_gap_in_the_log_stops_the_rebuild_and_changes_nothing(path: Path) -> None:
    tamper(path, "log", lambda rows: rows.pop(sequence_key(5)))
    with opened(path) as store:
        before = store.rows(), store.live_runs()
        with pytest.raises(StoreCorruptError, match="nothing between sequence 5 and 6"):
            store.rebuild_indexes(row_of)
        assert (store.rows(), store.live_runs()) == before


def test_two_records_of_one_identity_stop_the_rebuild(path: Path) -> None:
    def change(rows: dict[bytes, bytes]) -> None:
        key = sequence_key(10)
        rows[key] = seal("log", key, rows[sequence_key(9)][5:])

    tamper(path, "log", change)
    with opened(path) as store, pytest.raises(StoreCorruptError, match=r"#1 \[6\] 0 of run run-1") as refusal:
        store.rebuild_indexes(row_of)
    assert refusal.value.details["sequence"] == 9
