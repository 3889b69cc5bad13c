"""One daemon per state directory, private to its user; what is not ours is refused and left alone."""

import os
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from daemon_support import Daemon, Premises, premises
from tallystick.contract.errors import UsageError
from tallystick.engine.config import load
from tallystick.engine.messages import Status

NOBODY = 65534
#: Tests that are root become somebody whom permissions bind.
BOUND_USER = NOBODY if os.geteuid() == 0 else None
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


async def refuses(daemon: Daemon, status: int, code: str) -> str:
    """See a daemon end at once with this exit status, an error of this code and nothing else; return what it said."""
    ended = await daemon.ended()
    said = "\n".join(daemon.log)
    assert ended == status, said
    assert said.startswith(f"{code}: "), said
    assert "Traceback" not in said
    assert not daemon.logged("daemon_ready")
    return said


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_a_second_daemon_is_refused_and_told_who_has_the_state() -> None:
    async with premises() as place, place.open() as (first, client):
        second = place.spawn()
        said = await refuses(second, 7, "TS-S002")
        assert f"process {first.pid}" in said
        assert (await client.status()).pid == first.pid


async def test_of_two_that_start_at_once_one_runs() -> None:
    async with premises() as place:
        came_up: dict[Daemon, bool] = {}

        async def start() -> None:
            daemon = place.spawn()
            came_up[daemon] = await daemon.comes_to_say("daemon_ready")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
        assert sorted(came_up.values()) == [False, True]
        for daemon, is_up in came_up.items():
            if is_up:
                await daemon.stop()
            else:
                await refuses(daemon, 7, "TS-S002")


async def test_a_daemon_is_private_whatever_the_umask_and_starts_over_what_a_killed_one_left() -> None:
    async with premises() as place:
        place.state.chmod(0o777)
        daemon = await place.start(umask=0)
        assert (mode(place.state), mode(place.socket)) == (0o700, 0o600)
        assert all(not mode(path) & 0o077 for path in place.state.rglob("*") if path.name != "config.toml")
        await daemon.kill()
        assert place.socket.is_socket()
        daemon = await place.start()
        async with daemon.client() as client:
            assert (await client.status()).pid == daemon.pid
        await daemon.stop()
        assert not place.socket.exists()


def a_file(path: Path) -> None:
    path.write_text("mine")


def a_symlink_to_a_socket(path: Path) -> None:
    a_socket(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_foreign_socket(path: Path) -> None:
    a_socket(path)
    os.chown(path, NOBODY, NOBODY)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))


@pytest.mark.parametrize(
    "put",
    [
        a_file,
        a_symlink_to_a_socket,
        pytest.param(a_foreign_socket, marks=ROOT_ONLY),
    ],
)
async def test_what_is_not_our_socket_is_refused_and_stays(put: Callable[[Path], None]) -> None:
    async with premises() as place:
        put(place.socket)
        before = place.socket.lstat()
        said = await refuses(place.spawn(), 7, "TS-N005")
        assert str(place.socket) in said
        assert "nothing was removed" in said
        assert place.socket.lstat() == before


async def test_a_socket_path_that_is_too_long_is_told_with_its_length() -> None:
    async with premises() as place:
        home = place.folder / ("d" * 100)
        said = await refuses(place.spawn(home=home), 2, "TS-U001")
        assert f"{len(os.fsencode(home / 'tally.sock'))} bytes; the system allows 107" in said
        assert "TALLYSTICK_HOME" in said
        assert not home.exists()


async def test_a_home_of_nobody_is_told() -> None:
    async with premises() as place:
        said = await refuses(place.spawn(home=Path("~no-such-user/state")), 2, "TS-U001")
        assert "no such user" in said


async def test_a_file_in_the_place_of_the_state_directory_is_told() -> None:
    async with premises() as place:
        home = place.folder / "file"
        home.write_text("mine")
        said = await refuses(place.spawn(home=home), 7, "TS-S002")
        assert f"{home} cannot be the store's folder: a file is in the way" in said
        assert home.read_text() == "mine"


def under_a_closed_parent(place: Premises) -> Path:
    return place.folder / "missing"


def without_write_permission(place: Premises) -> Path:
    home = place.folder / "closed"
    home.mkdir(mode=0o500)
    if BOUND_USER is not None:
        os.chown(home, BOUND_USER, BOUND_USER)
    return home


def of_another_user(place: Premises) -> Path:
    place.state.chmod(0o755)
    return place.state


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (under_a_closed_parent, "Permission denied"),
        (without_write_permission, "Permission denied"),
        pytest.param(of_another_user, "belongs to user 0", marks=ROOT_ONLY),
    ],
)
async def test_a_state_directory_that_cannot_be_used_is_told(where: Callable[[Premises], Path], why: str) -> None:
    async with premises() as place:
        home = where(place)
        place.folder.chmod(0o555)
        said = await refuses(place.spawn(home=home, user=BOUND_USER), 7, "TS-S002")
        place.folder.chmod(0o700)
        assert str(home) in said
        assert why in said


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[daemon]\nmax_life = 3\n", "max_life"),
        ("[daemon]\nmax_live = 0\n", "daemon.max_live"),
        ("[daemon]\ndrain = nan\n", "daemon.drain"),
        ('[sandbox]\nmemory_mb = "512"\n', "sandbox.memory_mb"),
        ('[capabilities."image.generate"]\nconcurrency = 1\n', "provider"),
        ('[capabilities."image.generat"]\nprovider = "local"\n', "did you mean 'image.generate'?"),
    ],
)
def test_a_wrong_configuration_is_told_with_the_place(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        load(path)
    assert str(path) in refused.value.message
    assert wrong in refused.value.message + refused.value.hint
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "wrong"), [("\0\xff", "config.toml is wrong"), ('[sandbox]\nallow_missing = ["walls"]\n', "walls")]
)
async def test_a_wrong_configuration_keeps_it_from_starting(text: str, wrong: str) -> None:
    async with premises() as place:
        place.write_config(text)
        assert wrong in await refuses(place.spawn(), 2, "TS-U001")


async def test_being_told_to_stop_in_every_way_is_one_orderly_stop() -> None:
    async with premises() as place:
        daemon = await place.start()
        async with daemon.client() as client:
            assert (await client.post("/v1/shutdown", Status)).pid == daemon.pid
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            daemon.process.send_signal(number)
        assert await daemon.ended() == 0
        assert [entry["event"] for entry in daemon.events] == ["daemon_ready", "daemon_stopping", "daemon_stopped"]


async def test_a_log_that_nobody_reads_any_more_ends_no_run() -> None:
    async with premises() as place:
        read, write = os.pipe()
        daemon = place.spawn(log=write)
        os.close(write)
        await anyio.wait_readable(read)
        assert b"daemon_ready" in os.read(read, 4096)
        os.close(read)
        async with daemon.client() as client:
            run = await client.submit("async def orchestrate(ctx, args):\n    return 1\n")
            assert (await client.end(run)).status == "completed"
        await daemon.stop()
