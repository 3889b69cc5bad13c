"""The daemon: one process per state directory, from its lock to its last commit (architecture.md, section 7).

``python -m tallystick.engine.daemon`` runs it in the foreground; clients start it so when none runs.
"""

import contextlib
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
import uvicorn

from tallystick.contract.errors import DaemonError, TallyError
from tallystick.engine import paths
from tallystick.engine.api import create_app
from tallystick.engine.assembly import running
from tallystick.engine.config import Config, load
from tallystick.engine.host import Host
from tallystick.kernel import SystemClock
from tallystick.providers.protocol import Provider
from tallystick.sandbox.locked import LockedDriver
from tallystick.store.lmdb_store import LmdbStore

#: Replies are handed over between threads twice a call; the default of 5 ms lets a busy loop starve the writer.
SWITCH_INTERVAL = 0.0005

log = structlog.get_logger("tallystick.daemon")


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the daemon decides when to stop, and in which order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


async def serve(home: Path, config: Config, providers: Mapping[str, Provider] | None = None) -> None:
    """Run a daemon on ``home`` until it is told to stop.

    Raises:
        StoreUnavailableError: another daemon has the store, or the directory cannot be used.
        DaemonError: the socket's path is taken by something that is not ours.
    """
    clock = SystemClock()
    stop = anyio.Event()
    driver = LockedDriver(allow_missing=frozenset(config.sandbox.allow_missing))
    store = await anyio.to_thread.run_sync(LmdbStore, home)
    try:
        async with running(
            store, config, driver, home=home, clock=clock, shutdown=stop.set, providers=providers
        ) as host:
            with listening(paths.socket_path()) as listener:
                log.info("daemon_ready", home=str(home), pid=host.pid, driver=driver.name, store=store.store_id)
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
    async with anyio.create_task_group() as signals:
        signals.start_soon(_watch_signals, stop)
        async with anyio.create_task_group() as api:
            api.start_soon(server.serve, [listener])
            await stop.wait()
            log.info("daemon_stopping", live=len(host.service.launches.live))
            await host.service.launches.drain(drain)
            server.should_exit = True
        signals.cancel_scope.cancel()


async def _watch_signals(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            stop.set()


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Listen on a unix socket that only its owner can reach, from the moment it exists.

    The caller holds the lock of the state directory: a socket of ours that stands there is a leftover and goes.

    Raises:
        DaemonError: what stands at the path is not our socket.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise DaemonError(
                f"{path} is not a socket of this user; nothing was removed",
                hint="move it away, or point TALLYSTICK_HOME at another folder",
                code="TS-N005",
            )
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    finally:
        os.umask(mask)
    try:
        listener.listen(128)
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)


def configure_logging() -> None:
    """Log to standard error: readable lines, or JSON where TALLYSTICK_LOG=json asks for it."""
    last = (
        structlog.processors.JSONRenderer()
        if os.environ.get("TALLYSTICK_LOG") == "json"
        else structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def main() -> int:
    """Run the daemon of this user's state directory in the foreground."""
    configure_logging()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        paths.socket_path()
        anyio.run(serve, paths.home(), load(paths.config_path()))
    except TallyError as error:
        sys.stderr.write(f"{error.code}: {error.message}\n{error.hint}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
