"""The map grows under readers and writers; where it cannot, nothing is half written and all goes on later."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from store_support import Child, opened
from tallystick.contract.errors import StoreUnavailableError
from tallystick.store.conformance import committed, created, row

MIB = 1 << 20


def test_the_map_grows_while_readers_read(tmp_path: Path) -> None:
    path = tmp_path / "store"
    done = threading.Event()
    failures: list[Exception] = []
    views: list[int] = []

    def read() -> None:
        try:
            while not done.is_set():
                views.append(len(list(store.read("run-1"))))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            failures.append(error)

    with opened(path, map_size=MIB) as store:
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for index in range(500):
            store.append([committed("run-1", index, "x" * 8192)])
        done.set()
        for reader in readers:
            reader.join()
        assert failures == []
        assert views
        assert max(views) <= 500
    assert (path / "journal.mdb").stat().st_size > 4 * MIB
    with opened(path, map_size=MIB) as store:
        assert [sequence for sequence, _ in store.read("run-1")] == list(range(1, 501))
        assert store.append([committed("run-1", 500)]) == 501


def test_a_batch_larger_than_twice_the_map_is_written(tmp_path: Path) -> None:
    with opened(tmp_path / "store", map_size=MIB) as store:
        store.append([committed("run-1", 0, "x" * 9 * MIB)])
        assert len(list(store.read("run-1"))) == 1


def test_a_full_map_says_how_full_and_which_setting_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path, map_size=MIB // 2, max_map_size=MIB) as store:
        kept = 0
        with pytest.raises(StoreUnavailableError) as refusal:  # noqa: PT012 - it is the loop that must end so
            for index in range(200):
                store.append([committed("run-1", index, "x" * 8192)], [row(f"run-{index}")])
                kept += 1
        assert "of at most 1.0 MiB (max_map_size)" in refusal.value.message
        assert "nothing of this batch was written" in refusal.value.message
        assert "raise max_map_size" in refusal.value.hint
        assert 50 < kept < 200
        assert (store.last_sequence(), len(list(store.read("run-1")))) == (kept, kept)
        assert store.row(f"run-{kept}") is None
    with opened(path, max_map_size=4 * MIB) as store:
        assert store.append([committed("run-1", kept)], [row(f"run-{kept}")]) == kept + 1


def test_a_full_disk_refuses_and_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    # A limit on the size of files stands in for the disk: both end in a short write.
    report = Child(
        """
        import resource, sys
        from pathlib import Path
        from tallystick.contract.errors import StoreUnavailableError
        from tallystick.store.conformance import committed
        from tallystick.store.lmdb_store import LmdbStore
        store = LmdbStore(Path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            for index in range(200):
                store.append([committed("run-1", index, "x" * 4096)])
        except StoreUnavailableError as error:
            print(error.message)
        print(index, store.last_sequence(), len(list(store.read("run-1"))))
        try:
            store.put_file(bytes(300_000), "image/png")
        except StoreUnavailableError as error:
            print(error.message)
        print(len(list((Path(sys.argv[1]) / "artifacts" / "incoming").iterdir())))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(store.append([committed("run-1", index)]), store.get_file(store.put_file(bytes(9), "image/png").sha256))
        """,
        tmp_path / "store",
    ).finish()
    assert "journal.mdb could not be written" in report[0]
    assert "of at most 65,536.0 MiB (max_map_size), and its disk has" in report[0]
    kept, last, read = map(int, report[1].split())
    assert 10 < kept == last == read < 100
    assert "artifacts could not be written to: File too large" in report[2]
    assert report[3] == "0"
    assert report[4] == f"{kept + 1} {bytes(9)!r}"


def test_a_map_that_the_system_refuses_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    report = Child(
        """
        import resource, sys
        from pathlib import Path
        from tallystick.contract.errors import StoreUnavailableError
        from tallystick.store.conformance import committed, created
        from tallystick.store.lmdb_store import LmdbStore
        store = LmdbStore(Path(sys.argv[1]), map_size=16 << 20)
        store.append([created("run-1")])
        for index in range(15):
            store.append([committed("run-2", index, "x" * (1 << 20))])
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (12 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        for _ in range(2):
            try:
                store.append([committed("run-1", 0, "x" * (1 << 20))])
            except StoreUnavailableError as error:
                print(error.message)
        print(store.last_sequence(), len(list(store.read("run-1"))), store.append([committed("run-1", 1)]))
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(store.append([committed("run-1", 0, "x" * (1 << 20))]))
        """,
        tmp_path / "store",
    ).finish()
    assert "could not be grown" in report[0]
    assert "could not be grown" in report[1]
    assert report[2:] == ["16 1 17", "18"]


def test_more_readers_than_there_is_room_for_are_refused_and_the_rest_read_on(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as store:
        store.append([created("run-1")])
        with ExitStack() as readers:
            for _ in range(256):
                readers.enter_context(store._file.read())
            with pytest.raises(StoreUnavailableError, match="MDB_READERS_FULL"):
                store.read("run-1")
        assert len(list(store.read("run-1"))) == 1


def test_readers_of_one_run_do_not_hold_up_the_growth(tmp_path: Path) -> None:
    with opened(tmp_path / "store", map_size=MIB // 4) as store:
        store.append([created("run-1")])
        view = store.read("run-1")
        for index in range(100):
            store.append([committed("run-1", index, "x" * 8192)])
        assert [sequence for sequence, _ in view] == [1]
