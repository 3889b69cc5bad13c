"""A sweep removes what nothing names, and never what anything names, whatever happens meanwhile."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.contract.errors import StoreCorruptError, StoreUnavailableError
from tallystick.contract.events import AnyEvent, FileRef, RevisionAdded
from tallystick.store.conformance import committed, created
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.memory import MemoryStore
from tallystick.store.protocol import Store, Swept

OLD, NOW, SOON = 1_000.0, 2_000.0, 4e9


@pytest.fixture(params=[LmdbStore, MemoryStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = MemoryStore() if request.param is MemoryStore else LmdbStore(tmp_path / "store")
    yield opened
    opened.close()


def put(store: Store, data: bytes, media_type: str = "image/png") -> str:
    return store.put_file(data, media_type).sha256


def named(name: str) -> AnyEvent:
    """An event whose args hold a reference."""
    args = {"picture": {"$artifact": f"sha256:{name}"}}
    return RevisionAdded(run="r", at=1.0, revision=0, digest="d", source="x", args=args, sites=())


def test_what_an_event_names_stays_and_the_rest_goes(store: Store) -> None:
    argument, result, loose = put(store, b"a"), put(store, b"b"), put(store, b"lost")
    store.append([created("r"), named(argument), committed("r", result={"$artifact": f"sha256:{result}"})])
    assert store.sweep(SOON, remove=False) == Swept(removed=1, bytes=4, kept=0)
    assert store.has_file(loose)
    assert store.sweep(SOON).removed == 1
    assert [store.has_file(name) for name in (argument, result, loose)] == [True, True, False]


def test_files_are_followed_through_the_json_that_names_them(store: Store) -> None:
    picture = put(store, b"\x89PNG picture")
    inner = put(store, json.dumps({"images": [f"sha256:{picture}"]}).encode(), "application/json")
    outer = put(store, json.dumps([inner]).encode(), "application/json")
    loose = put(store, json.dumps(["nothing"]).encode(), "application/json")
    store.append([created("r"), named(outer)])
    assert store.sweep(SOON).removed == 1
    assert [store.has_file(name) for name in (picture, inner, outer, loose)] == [True, True, True, False]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LmdbStore]:
    opened = LmdbStore(tmp_path / "store")
    yield opened
    opened.close()


def path_of(tmp_path: Path, name: str) -> Path:
    return tmp_path / "store" / "artifacts" / name[:2] / name[2:]


def aged(tmp_path: Path, name: str) -> str:
    os.utime(path_of(tmp_path, name), (OLD, OLD))
    return name


def test_a_young_file_stays_for_its_record_may_be_on_the_way(disk: LmdbStore, tmp_path: Path) -> None:
    old, young = aged(tmp_path, put(disk, b"old")), put(disk, b"young")
    assert disk.sweep(NOW).removed == 1
    assert (disk.has_file(old), disk.has_file(young)) == (False, True)


def test_a_file_that_is_put_or_asked_after_again_is_young_again(disk: LmdbStore, tmp_path: Path) -> None:
    again, asked = aged(tmp_path, put(disk, b"again")), aged(tmp_path, put(disk, b"asked"))
    put(disk, b"again")
    assert disk.has_file(asked)
    assert disk.sweep(NOW).removed == 0
    assert (disk.has_file(again), disk.has_file(asked)) == (True, True)


def test_a_file_touched_in_the_middle_of_a_sweep_stays(
    disk: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = aged(tmp_path, put(disk, b"just in time"))
    reading = disk._tables.names

    def touched(*arguments: Any) -> Any:
        found = reading(*arguments)
        put(disk, b"just in time")
        return found

    monkeypatch.setattr(disk._tables, "names", touched)
    assert disk.sweep(NOW) == Swept(removed=0, bytes=0, kept=1)
    assert disk.get_file(name) == b"just in time"


def test_a_damaged_log_removes_nothing(disk: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = aged(tmp_path, put(disk, b"loose"))
    disk.append([created("r")])

    def damaged(*_: Any) -> Any:
        raise StoreCorruptError("a batch is damaged")

    monkeypatch.setattr(disk._tables, "names", damaged)
    with pytest.raises(StoreCorruptError):
        disk.sweep(NOW)
    assert disk.has_file(name)


def test_the_log_is_read_in_parts_to_its_end(disk: LmdbStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.store.lmdb_store._BATCHES_AT_ONCE", 2)
    names = [aged(tmp_path, put(disk, bytes([number]))) for number in range(7)]
    for number, name in enumerate(names):
        disk.append([committed("r", number, result=name)])
    assert disk.sweep(NOW) == Swept(removed=0, bytes=0, kept=0)


contents = st.lists(st.binary(max_size=6), min_size=1, max_size=12, unique=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=contents, data=st.data())
def test_a_sweep_that_dies_anywhere_never_took_what_is_named(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    store = LmdbStore(folder / "store")
    names = [aged(folder, put(store, content)) for content in contents]
    keep = data.draw(st.sets(st.sampled_from(names)))
    store.append([created("r"), *(committed("r", number, result=name) for number, name in enumerate(sorted(keep)))])
    dies_after = data.draw(st.integers(0, len(names)))
    removed = 0
    remove = store._artifacts.remove

    def dying(name: str, before: float) -> bool:
        nonlocal removed
        if removed == dies_after:
            raise StoreUnavailableError("the process ended here")
        removed += 1
        return remove(name, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._artifacts, "remove", dying)
        try:
            store.sweep(NOW)
        except StoreUnavailableError:
            assert removed == dies_after
    store.close()
    store = LmdbStore(folder / "store")
    try:
        assert all(hashlib.sha256(store.get_file(name)).hexdigest() == name for name in keep)
        assert store.sweep(NOW).removed == len(names) - len(keep) - removed
        assert {name for name in names if store.has_file(name)} == keep
    finally:
        store.close()


def test_events_since_a_moment_are_those_of_all_runs_in_order(store: Store) -> None:
    store.append([created("a", 1.0), created("b", 2.0)])
    store.append([created("c", 3.0)])
    store.append([created("d", 4.0), created("e", 5.0)])
    assert [event.run for event in store.events_since(3.0)] == ["c", "d", "e"]
    assert [event.run for event in store.events_since(4.5)] == ["e"]
    assert store.events_since(9.0) == []
    assert len(store.events_since(0.0)) == 5


def test_a_name_that_is_none_is_no_file(store: Store) -> None:
    ref: FileRef = store.put_file(b"x", "text/plain")
    assert store.has_file(ref.sha256)
    assert not store.has_file("../" + ref.sha256)
    assert not store.has_file("f" * 64)
