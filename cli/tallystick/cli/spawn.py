"""Starting and stopping the daemon from a client.

Whether a daemon lives is asked of its socket, never of a stored process id, which may be somebody else's by now.
"""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from tallystick.cli.client import Client
from tallystick.contract.errors import DaemonError, StoreError
from tallystick.engine import paths
from tallystick.engine.messages import Status

START_PATIENCE = 20.0
#: The store may be taken by a daemon that another client has just started: seconds to wait for its socket.
RIVAL_PATIENCE = 3.0
STOP_PATIENCE = 60.0
#: Seconds of silence after which somebody who waits for the daemon to start is told so.
SILENCE = 0.5
_PAUSE = 0.02
_TAIL_LINES = 15


def connect() -> Client:
    """Return a client of the running daemon, and start one where none runs.

    Raises:
        UsageError: the socket's path is too long.
        DaemonError: it cannot be started or trusted.
    """
    client = Client(paths.socket_path())
    if not client.answers():
        _start(client)
    return client


def running() -> Client | None:
    """Return a client of the running daemon, or None where none runs; errors as ``connect``."""
    client = Client(paths.socket_path())
    return client if client.answers() else None


def stop(client: Client) -> Status:
    """Stop the daemon and wait until its process has ended.

    Raises:
        DaemonError: it still drains calls when patience ends, or it refused.
    """
    process = os.pidfd_open(client.get("/v1/status", Status).pid)
    try:
        status = client.post("/v1/shutdown", Status)
        if not select.select([process], [], [], STOP_PATIENCE)[0]:
            raise DaemonError(
                f"the daemon (process {status.pid}) is still settling calls after {STOP_PATIENCE:g} s",
                hint="nothing new starts; it ends by itself when they have settled",
            )
    finally:
        os.close(process)
    return status


def log_tail(path: Path, lines: int, *, start: int = 0) -> list[str]:
    """Return the last lines of the daemon's log, from byte ``start`` on; none where there is no log."""
    try:
        with path.open("rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(start, end - lines * 1_000))
            return stream.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def _start(client: Client) -> None:
    log = paths.daemon_log_path()
    try:
        paths.home().mkdir(mode=0o700, parents=True, exist_ok=True)
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DaemonError(
            f"the state directory {paths.home()} is not usable: {error.strerror} ({error.filename})",
            hint="make it writable, or point TALLYSTICK_HOME at another folder",
        ) from None
    with os.fdopen(output, "ab") as stream:
        said_before = stream.tell()
        daemon = _spawn(stream.fileno())
    began, told = time.monotonic(), False
    deadline = began + START_PATIENCE
    while not client.answers():
        if not told and time.monotonic() > began + SILENCE:
            told = True
            sys.stderr.write("starting the daemon ...\n")
        ended = daemon.poll()
        if ended is not None:
            patience = RIVAL_PATIENCE if ended == StoreError.exit_code else 0.0
            deadline = min(deadline, time.monotonic() + patience)
        if time.monotonic() > deadline:
            raise _not_started(daemon, log, said_before)
        select.select([], [], [], _PAUSE)


def _spawn(output: int) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if paths.HOME_VARIABLE in environment:
        environment[paths.HOME_VARIABLE] = str(paths.home())  # a relative one would mean another folder there
    return subprocess.Popen(
        # -P: a script named json.py in the current folder is not the daemon's json
        [sys.executable, "-P", "-m", "tallystick.engine.daemon"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=paths.home(),
        env=environment,
        start_new_session=True,  # a Ctrl-C in this terminal is not the daemon's
    )


def _not_started(daemon: subprocess.Popen[bytes], log: Path, said_before: int) -> DaemonError:
    if daemon.returncode is None:
        what = f"the daemon (process {daemon.pid}) does not answer after {START_PATIENCE:g} s"
    else:
        what = f"the daemon did not start (exit status {daemon.returncode})"
    tail = log_tail(log, _TAIL_LINES, start=said_before)
    said = "\n".join(["; it said:", *(f"  {line}" for line in tail)]) if tail else ""
    return DaemonError(what + said, hint=f"its log is {log}")
