"""One process a store, and the kernel as the judge of it."""

import os
from pathlib import Path

import pytest

from store_support import Child, opened
from tallystick.contract.errors import StoreUnavailableError
from tallystick.store.conformance import committed, created
from tallystick.store.lmdb_store import LmdbStore

HOLDER = """
    import sys
    from pathlib import Path
    from tallystick.store.lmdb_store import LmdbStore
    store = LmdbStore(Path(sys.argv[1]))
    print("open", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_until_the_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    holder = Child(HOLDER, path)
    assert holder.line() == "open"
    with pytest.raises(StoreUnavailableError, match=f"another daemon has .* process {holder.pid}") as refusal:
        LmdbStore(path)
    assert refusal.value.hint
    holder.kill()
    with opened(path) as store:
        assert store.append([created("run-1")]) == 1


def test_a_stale_process_id_in_the_lock_file_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path):
        pass
    (path / "lock").write_text(f"{os.getppid()}\n")
    with opened(path):
        assert (path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    (tmp_path / "precious").write_text("data")
    (path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(StoreUnavailableError, match="lock could not be opened"):
        LmdbStore(path)
    assert (tmp_path / "precious").read_text() == "data"


def test_a_fork_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    report = Child(
        """
        import os, sys
        from pathlib import Path
        from tallystick.contract.errors import StoreUnavailableError
        from tallystick.store.conformance import committed, created
        from tallystick.store.lmdb_store import LmdbStore
        store = LmdbStore(Path(sys.argv[1]))
        store.append([created("run-1")])
        if os.fork() == 0:
            for use in (lambda: store.read("run-1"), lambda: store.append([created("run-2")]), store.key):
                try:
                    use()
                except StoreUnavailableError as error:
                    print(error.message, flush=True)
            store.close()
            os._exit(0)
        os.wait()
        store.append([committed("run-1")])
        try:
            LmdbStore(Path(sys.argv[1]))
        except StoreUnavailableError:
            print("still locked", flush=True)
        """,
        tmp_path / "store",
    ).finish()
    assert len(report) == 4
    assert all("is a fork of it" in line for line in report[:3])
    assert report[3] == "still locked"
    with opened(tmp_path / "store") as store:
        assert [event for _, event in store.read("run-1")] == [created("run-1"), committed("run-1")]


def test_readers_killed_in_the_middle_leave_no_slot_behind(tmp_path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        from tallystick.store.lmdb_store import LmdbStore
        store = LmdbStore(Path(sys.argv[1]))
        with store._file.read():
            print("reading", flush=True)
            sys.stdin.read()
    """
    path = tmp_path / "store"
    for _ in range(2):
        reader = Child(code, path)
        assert reader.line() == "reading"
        reader.kill()
    with opened(path) as store:
        assert store._file._opened().readers().strip() == "(no active readers)"
