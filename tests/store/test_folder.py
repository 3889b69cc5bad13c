"""The store's folder: private, its owner's, and refused with a reason where it cannot be."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from store_support import opened
from tallystick.contract.errors import StoreUnavailableError
from tallystick.store.conformance import created
from tallystick.store.lmdb_store import LmdbStore


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder of a user whom modes bind, which they do not root."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        if user == 0:
            os.chown(name, 65534, -1)
            os.seteuid(65534)
        yield Path(name)
        os.seteuid(user)


def test_all_is_private_whatever_the_umask(open_umask: None, tmp_path: Path) -> None:
    path = tmp_path / "state" / "store"
    with opened(path) as store:
        store.append([created("run-1")])
        store.put_file(b"data", "text/plain")
    found = [path.parent, path, *path.rglob("*")]
    assert len(found) > 7
    for entry in found:
        assert stat.S_IMODE(entry.stat().st_mode) == (0o700 if entry.is_dir() else 0o600), entry


def test_an_open_folder_of_ours_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir(mode=0o755)
    with opened(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_folder_that_is_not_writable_is_refused_by_name(plain_user: Path) -> None:
    plain_user.chmod(0o500)
    path = plain_user / "store"
    with pytest.raises(StoreUnavailableError, match="/store could not be used as the store's folder: Permission"):
        LmdbStore(path)


def test_a_store_that_lost_its_write_permission_is_refused(plain_user: Path) -> None:
    path = plain_user / "store"
    with opened(path):
        pass
    path.chmod(0o500)
    (path / "lock").chmod(0o400)
    with pytest.raises(StoreUnavailableError, match="lock could not be opened: Permission denied") as refusal:
        LmdbStore(path)
    assert "who owns it" in refusal.value.hint
    (path / "lock").chmod(0o600)
    (path / "journal.mdb").chmod(0o400)
    with pytest.raises(StoreUnavailableError, match=r"journal\.mdb could not be opened: .*Permission denied"):
        LmdbStore(path)
    path.chmod(0o700)


def test_a_folder_of_another_user_is_refused(plain_user: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="/usr belongs to user 0"):
        LmdbStore(Path("/usr"))


@pytest.mark.parametrize("below", ["", "store", "deeper/store"])
def test_a_file_in_the_way_is_left_alone(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(StoreUnavailableError, match="a file is in the way"):
        LmdbStore(file / below)
    assert file.read_text() == "precious"


def test_a_dangling_link_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreUnavailableError, match="in the way"):
        LmdbStore(tmp_path / "store")


def test_two_stores_have_ids_and_keys_of_their_own(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        assert one.store_id != two.store_id
        assert one.key() != two.key()


def test_commits_are_synced(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as store:
        flags = store._file._opened().flags()
    assert (flags["sync"], flags["metasync"], flags["writemap"], flags["map_async"]) == (True, True, False, False)


def test_half_written_files_of_a_crash_are_swept_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as store:
        ref = store.put_file(b"whole", "text/plain")
    (path / "artifacts" / "incoming" / "tmp123").write_bytes(b"half")
    with opened(path) as store:
        assert store.get_file(ref.sha256) == b"whole"
    assert list((path / "artifacts" / "incoming").iterdir()) == []
