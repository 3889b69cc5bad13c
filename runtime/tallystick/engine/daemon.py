"""The daemon: one process per state directory, from its lock to its last commit (architecture.md, section 7).

``python -m tallystick.engine.daemon`` runs it in the foreground; clients start it so when none runs.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import structlog
import structlog.stdlib
import uvicorn
from structlog.typing import Processor

from tallystick.contract.errors import DaemonError, TallyError
from tallystick.engine import paths
from tallystick.engine.announcer import Announcer
from tallystick.engine.api import create_app
from tallystick.engine.assembly import running
from tallystick.engine.config import Config, load
from tallystick.engine.host import Host
from tallystick.engine.sandboxes import choose
from tallystick.kernel import SystemClock
from tallystick.providers.protocol import Provider
from tallystick.store.lmdb_store import LmdbStore

#: Replies are handed over between threads twice a call; the default of 5 ms lets a busy loop starve the writer.
SWITCH_INTERVAL = 0.0005

#: Connections that may wait to be accepted.
BACKLOG = 128
SOCKET_TAKEN = "TS-N005"

log = structlog.get_logger("tallystick.daemon")


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the daemon decides when to stop, and in which order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


async def serve(home: Path, path: Path, config: Config, providers: Mapping[str, Provider] | None = None) -> None:
    """Run a daemon on the state directory ``home``, with its socket at ``path``, until it is told to stop.

    Raises:
        UsageError: the configuration names a lock that cannot be done without.
        StoreUnavailableError: another daemon has the store, or the directory cannot be used.
        DaemonError: the socket's path is taken by something that is not ours.
    """
    stop = anyio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    store = await anyio.to_thread.run_sync(LmdbStore, home)
    try:
        # The path is taken before any run goes on, and given back before the store is: see ``bound``.
        with bound(path) as listener:
            news = Announcer()
            chosen = await choose(config.sandbox, store=store.store_id, home=home, news=news)
            async with running(
                store,
                config,
                chosen.driver,
                home=home,
                clock=SystemClock(),
                shutdown=stop.set,
                providers=providers,
                why=chosen.reason,
                news=news,
            ) as host:
                listener.listen(BACKLOG)
                log.info(
                    "daemon_ready",
                    home=str(home),
                    pid=host.pid,
                    driver=chosen.driver.name,
                    why=chosen.reason,
                    store=store.store_id,
                )
                await _serve_api(host, listener, stop, config.daemon.drain)
    finally:
        store.close()
    log.info("daemon_stopped", home=str(home))


async def _serve_api(host: Host, listener: socket.socket, stop: anyio.Event, drain: float) -> None:
    """Answer requests until ``stop``; then let live launches settle while clients still see them, and close."""
    app = create_app(host)
    server = _Server(
        uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await stop.wait()
        log.info("daemon_stopping", live=len(host.service.launches.live))
        await host.service.launches.drain(drain)
        server.should_exit = True


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    """Take the path for a unix socket that only its owner can reach from the moment it exists; it does not listen yet.

    The caller holds the lock of the state directory: a socket of ours that stands there is a leftover and goes, and
    what goes in the end is our own. Until somebody listens, clients are refused as if no daemon ran.

    Raises:
        DaemonError: what stands at the path is not our socket, or none can be made there.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise DaemonError(
                f"{path} is not a socket of this user; nothing was removed",
                hint="move it away, or point TALLYSTICK_HOME at another folder",
                code=SOCKET_TAKEN,
            )
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        mask = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        except OSError as error:
            raise DaemonError(
                f"no socket can be made at {path}: {error.strerror}",
                hint="point TALLYSTICK_HOME at a folder on a local file system",
                code=SOCKET_TAKEN,
            ) from None
        finally:
            os.umask(mask)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def configure_logging() -> None:
    """Log to standard error, libraries too: readable lines, or JSON where TALLYSTICK_LOG=json asks for it."""
    last = (
        structlog.processors.JSONRenderer()
        if os.environ.get("TALLYSTICK_LOG") == "json"
        else structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
    )
    first: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    formatter = structlog.stdlib.ProcessorFormatter
    structlog.configure(
        processors=[*first, formatter.wrap_for_formatter], logger_factory=structlog.stdlib.LoggerFactory()
    )
    # A handler of the standard library outlives a closed pipe and a full disk; a run must not end with its log.
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(foreign_pre_chain=first, processors=[formatter.remove_processors_meta, last]))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("tallystick").setLevel(logging.INFO)


def main() -> int:
    """Run the daemon of this user's state directory in the foreground."""
    configure_logging()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        anyio.run(serve, paths.home(), paths.socket_path(), load(paths.config_path()))
    except TallyError as error:
        sys.stderr.write("".join(f"{line}\n" for line in (f"{error.code}: {error.message}", error.hint) if line))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
