import os
import socket
import stat
import sys
import threading
from pathlib import Path

import pytest

from cli_support import FakeDaemon, status
from tallystick.cli import spawn
from tallystick.cli.client import Client, RefusedError, refuse_foreign, run_path
from tallystick.cli.main import main
from tallystick.contract.errors import DaemonError
from tallystick.engine import paths
from tallystick.engine.messages import Status


def test_an_answer_of_another_shape_is_not_guessed_at(daemon: FakeDaemon) -> None:
    client = Client(paths.socket_path())
    daemon.says("GET", "/status", {"version": 2})
    with pytest.raises(DaemonError, match="not understood"):
        client.get("/v1/status", Status)
    daemon.says("GET", "/status", b"<html>")
    with pytest.raises(DaemonError, match="not understood"):
        client.get("/v1/status", Status)


def test_an_error_without_a_reason_is_still_an_error(daemon: FakeDaemon) -> None:
    with pytest.raises(DaemonError, match="answered 404"):
        Client(paths.socket_path()).get("/v1/nothing", Status)


def test_a_refusal_keeps_code_message_hint_and_details(daemon: FakeDaemon) -> None:
    daemon.refuses("GET", "/status", "TS-P001", "no", hint="ask", details=[1])
    with pytest.raises(RefusedError) as caught:
        Client(paths.socket_path()).get("/v1/status", Status)
    error = caught.value
    assert (error.code, error.message, error.hint, error.details, error.exit_code) == ("TS-P001", "no", "ask", [1], 6)


def test_bytes_of_a_file_come_as_they_are(daemon: FakeDaemon) -> None:
    daemon.says("GET", "/files/ab", b"\x89PNG\r\n")
    assert Client(paths.socket_path()).file("ab") == b"\x89PNG\r\n"


def test_a_run_is_named_by_one_segment_of_the_path() -> None:
    assert run_path("../x?y", "attempts", 4) == "/v1/runs/..%2Fx%3Fy/attempts/4"


def listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


def test_a_socket_that_nobody_listens_on_is_no_daemon() -> None:
    with listen(paths.socket_path()):
        assert not Client(paths.socket_path()).answers()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_not_a_socket_is_refused_and_left_alone(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    path = paths.socket_path()
    path.parent.mkdir()
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/tmp")
    assert main(["runs"]) == 7
    assert "is not a socket; nothing was sent to it" in capsys.readouterr().err
    assert path.lstat()


def test_another_users_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen(paths.socket_path()):
        owner = paths.socket_path().stat().st_uid
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        with pytest.raises(DaemonError, match=f"belongs to user {owner}; nothing was sent"):
            refuse_foreign(paths.socket_path())


def test_a_path_beyond_the_systems_limit_is_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / ("x" * 120)))
    assert main(["runs"]) == 2
    assert "the system allows 107" in capsys.readouterr().err


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let a shell script stand where the interpreter is that the daemon is started with."""
    path = tmp_path / "interpreter"
    path.write_text("#!/bin/sh\necho \"$@ in $PWD for $TALLYSTICK_HOME\"\necho 'the map is full' >&2\nexit 7\n")
    path.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(spawn, "RIVAL_PATIENCE", 0.0)
    return path


@pytest.mark.usefixtures("interpreter")
def test_a_daemon_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(paths.HOME_VARIABLE, "relative/home")
    paths.home().mkdir(parents=True)
    paths.daemon_log_path().write_text("what an earlier one said\n")
    assert main(["runs"]) == 7
    err = capsys.readouterr().err
    home = paths.home()
    assert "the daemon did not start (exit status 7); it said:" in err
    assert f"  -P -m tallystick.engine.daemon in {home} for {home}\n  the map is full\n" in err
    assert "an earlier one" not in err


@pytest.mark.usefixtures("interpreter")
def test_the_state_directory_is_private_from_birth() -> None:
    os.umask(os.umask(0))
    assert main(["runs"]) == 7
    assert stat.S_IMODE(paths.home().stat().st_mode) == 0o700
    assert stat.S_IMODE(paths.daemon_log_path().stat().st_mode) == 0o600


def test_a_state_directory_that_cannot_be_made_is_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "file" / "home"))
    assert main(["runs"]) == 7
    assert "error[TS-N001]" in capsys.readouterr().err


def test_a_state_directory_that_cannot_be_written_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    paths.home().mkdir()
    paths.daemon_log_path().mkdir()  # root may write anywhere, but not into a folder
    assert main(["runs"]) == 7
    err = capsys.readouterr().err
    assert f"the state directory {paths.home()} is not usable" in err
    assert "point TALLYSTICK_HOME at another folder" in err


def test_a_daemon_that_runs_is_used_and_not_started(daemon: FakeDaemon, interpreter: Path) -> None:
    daemon.says("GET", "/status", status())
    assert main(["daemon", "start"]) == 0
    assert not paths.daemon_log_path().exists()


def test_a_daemon_that_hangs_up_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with listen(paths.socket_path()) as listener:
        listener.listen()

        def hang_up() -> None:
            for _ in range(2):  # one to see whether somebody answers, one to ask
                listener.accept()[0].close()

        server = threading.Thread(target=hang_up)
        server.start()
        assert main(["runs"]) == 7
        server.join()
    assert "the connection to the daemon" in capsys.readouterr().err


def test_a_daemon_that_says_nothing_is_given_up() -> None:
    with listen(paths.socket_path()) as listener:
        listener.listen()
        with pytest.raises(DaemonError, match=r"did not answer within 0\.01 s"):
            Client(paths.socket_path()).post("/v1/runs", Status, timeout=0.01)
