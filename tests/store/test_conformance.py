"""Both stores are held to the kit, and the kit is held to catching stores that break a promise."""

import pytest

from tallystick.contract.errors import SlotTakenError
from tallystick.store.conformance import CHECKS
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.memory import MemoryDisk, MemoryStore

STORES = {
    "lmdb": lambda path: lambda: LmdbStore(path / "store"),
    "memory": lambda path: lambda disk=MemoryDisk(): MemoryStore(disk),
}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_store_conforms(check: Check, kind: str, tmp_path: Path) -> None:
    check(STORES[kind](tmp_path))


class ForgetsTheRun(MemoryStore):
    def read(self, run):
        return iter(enumerate(self._open_disk().events, 1))


class ForgetsRows(MemoryStore):
    def append(self, events, rows=()):
        return super().append(events)


class ReplacesRecords(MemoryStore):
    def append(self, events, rows=()):
        try:
            return super().append(events, rows)
        except SlotTakenError:
            self._open_disk().slots.clear()
            return super().append(events, rows)


class ListsTheOldestFirst(MemoryStore):
    def rows(self, limit=100, before=None):
        return super().rows(limit, before)[::-1]


class KeepsTheDiskForItself(MemoryStore):
    def close(self):
        self._closed = True


class ServesClosed(MemoryStore):
    def _open_disk(self):
        return self._disk


class ReadsLazily(MemoryStore):
    def read(self, run):
        yield from super().read(run)


class InventsFiles(MemoryStore):
    def get_file(self, sha256):
        return self._open_disk().files.get(sha256, b"")


@pytest.mark.parametrize(
    "broken",
    [
        ForgetsTheRun,
        ForgetsRows,
        ReplacesRecords,
        ListsTheOldestFirst,
        KeepsTheDiskForItself,
        ServesClosed,
        ReadsLazily,
        InventsFiles,
    ],
)
def test_the_kit_catches_a_broken_store(broken: type[MemoryStore]) -> None:
    def conforms(check):
        disk = MemoryDisk()
        try:
            check(lambda: broken(disk))
        except Exception:  # noqa: BLE001 - a broken store may fail in any way
            return False
        return True

    assert not all(map(conforms, CHECKS))
