"""Both stores are held to the kit, and the kit is held to catching stores that break a promise."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tallystick.contract.errors import SlotTakenError
from tallystick.contract.events import AnyEvent
from tallystick.store.conformance import CHECKS, Check
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.memory import MemoryDisk, MemoryStore
from tallystick.store.protocol import RunRow


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_lmdb_store_conforms(check: Check, tmp_path: Path) -> None:
    check(lambda: LmdbStore(tmp_path / "store"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_memory_store_conforms(check: Check) -> None:
    disk = MemoryDisk()
    check(lambda: MemoryStore(disk))


class MixesRuns(MemoryStore):
    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        super().read(run)
        return iter(enumerate(self._open_disk().events, 1))


class ForgetsRows(MemoryStore):
    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        return super().append(events, rows[:0])


class ReplacesRecords(MemoryStore):
    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        try:
            return super().append(events, rows)
        except SlotTakenError:
            self._open_disk().slots.clear()
            return super().append(events, rows)


class ListsTheOldestFirst(MemoryStore):
    def rows(self, limit: int = 100, before: str | None = None) -> list[RunRow]:
        return super().rows(limit, before)[::-1]


class CountsLiveRunsAlone(MemoryStore):
    def run_count(self) -> int:
        return len(self.live_runs())


class KeepsTheDiskForItself(MemoryStore):
    def close(self) -> None:
        self._closed = True


class ServesClosed(MemoryStore):
    def _open_disk(self) -> MemoryDisk:
        return self._disk


class ReadsLazily(MemoryStore):
    def read(self, run: str) -> Iterator[tuple[int, AnyEvent]]:
        yield from super().read(run)


class InventsFiles(MemoryStore):
    def get_file(self, sha256: str) -> bytes:
        return self._open_disk().files.get(sha256, b"")


@pytest.mark.parametrize(
    "broken",
    [
        MixesRuns,
        ForgetsRows,
        ReplacesRecords,
        ListsTheOldestFirst,
        CountsLiveRunsAlone,
        KeepsTheDiskForItself,
        ServesClosed,
        ReadsLazily,
        InventsFiles,
    ],
)
def test_the_kit_catches_a_broken_store(broken: type[MemoryStore]) -> None:
    def conforms(check: Check) -> bool:
        disk = MemoryDisk()
        try:
            check(lambda: broken(disk))
        except Exception:  # noqa: BLE001 - a broken store may fail in any way
            return False
        return True

    assert not all(map(conforms, CHECKS))
