"""Where the daemon keeps its things: the XDG directories, or one folder named by TALLYSTICK_HOME."""

import os
from pathlib import Path

import platformdirs

from tallystick.contract.errors import UsageError

HOME_VARIABLE = "TALLYSTICK_HOME"
#: sockaddr_un.sun_path holds 108 bytes on Linux, the closing zero included.
MAX_SOCKET_PATH = 107


def home() -> Path:
    """Return the state directory: the log, the artifacts, the lock and the daemon's own log live in it.

    Raises:
        UsageError: the variable names the home of a user who does not exist.
    """
    named = os.environ.get(HOME_VARIABLE)
    if not named:
        return platformdirs.user_state_path("tallystick")
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise UsageError(
            f"{HOME_VARIABLE} is {named!r}, but there is no such user", hint="write the folder out"
        ) from None


def config_path() -> Path:
    """Return the configuration file; it need not exist."""
    if os.environ.get(HOME_VARIABLE):
        return home() / "config.toml"
    return platformdirs.user_config_path("tallystick") / "config.toml"


def socket_path() -> Path:
    """Return the daemon's unix socket.

    Raises:
        UsageError: the path is longer than the system allows.
    """
    path = home() / "tally.sock"
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH:
        raise UsageError(
            f"the daemon's socket would be at {path}, which is {size} bytes; the system allows {MAX_SOCKET_PATH}",
            hint=f"point {HOME_VARIABLE} at a folder with a shorter path",
        )
    return path


def daemon_log_path() -> Path:
    """Return the file that a daemon started by a client writes its log to."""
    return home() / "daemon.log"
