"""The daemon: one process per state directory, from its lock to its last commit (architecture.md, section 7).

``python -m tallystick.engine.daemon`` runs it in the foreground; clients start it so when none runs.
"""

import contextlib
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import structlog
import uvicorn

from tallystick.contract.errors import DaemonError, StoreCorruptError, TallyError
from tallystick.contract.history import History
from tallystick.engine import paths
from tallystick.engine.api import create_app
from tallystick.engine.config import Config, load
from tallystick.engine.doctor import Doctor
from tallystick.engine.host import Host
from tallystick.engine.journal import Journal
from tallystick.engine.library import Library
from tallystick.engine.messages import ResumeRequest
from tallystick.engine.operator import Operator
from tallystick.engine.recovery import cut_off, goes_on_by_itself
from tallystick.engine.rows import row_of
from tallystick.engine.service import Service
from tallystick.engine.tree import Engine
from tallystick.kernel import Clock, SystemClock, open_tree
from tallystick.providers.protocol import Provider
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import Driver
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.protocol import Store

#: Replies are handed over between threads twice a call; the default of 5 ms lets a busy loop starve the writer.
SWITCH_INTERVAL = 0.0005

log = structlog.get_logger("tallystick.daemon")


@asynccontextmanager
async def running(
    store: Store,
    config: Config,
    driver: Driver,
    *,
    home: Path,
    clock: Clock,
    shutdown: Callable[[], None] = lambda: None,
    providers: Mapping[str, Provider] | None = None,
) -> AsyncIterator[Host]:
    """Run everything but the API round a body: the tree, the service, recovery; then drain and stop in order.

    ``providers`` are used under their names as they are, without asking the registry.
    """
    journal = Journal(store)
    engine = Engine(config, journal, driver, providers or {})
    library = Library(journal)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.bench.close)
        tree = await stack.enter_async_context(open_tree(engine.spec, clock=clock))
        service = Service(
            journal=journal, library=library, keeper=engine.keeper, gate=engine.gate.ref, launcher=engine, clock=clock
        )
        resumable = await recover(service, store, clock)
        engine.pool.refill()
        if config.daemon.auto_resume:
            for run in resumable:
                await _go_on(service, run)
        try:
            yield Host(
                engine=engine,
                service=service,
                operator=Operator(service, clock),
                doctor=Doctor(engine, home, clock),
                tree=tree,
                home=home,
                pid=os.getpid(),
                started=clock.now(),
                shutdown=shutdown,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await service.drain(config.daemon.drain)


async def recover(service: Service, store: Store, clock: Clock) -> list[str]:
    """End in the journal whatever a crash cut off; return the runs that may go on by themselves.

    Reads only the runs that were live. A run whose events are damaged is named and left as it is.
    """
    resumable = []
    for run in await anyio.to_thread.run_sync(store.live_runs):
        try:
            history: History = await service.library.history(run)
            events = cut_off(history, clock.now(), "the daemon ended before the answer came")
            await service.journal.append(events, [row_of(history, "interrupted", clock.now(), live=False)])
        except StoreCorruptError as error:
            log.error("run_damaged", run=run, error=error.message, hint=error.hint)
            continue
        unresolved = len(history.unresolved)
        log.info("run_interrupted", run=run, records=len(history.records), unresolved=unresolved)
        if goes_on_by_itself(history):
            resumable.append(run)
    return resumable


async def _go_on(service: Service, run: str) -> None:
    try:
        await service.resume(run, ResumeRequest(), by="recovery")
        log.info("run_goes_on", run=run)
    except TallyError as error:
        log.warning("run_stays_interrupted", run=run, code=error.code, error=error.message)


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
            log.info("daemon_stopping", live=len(host.service.live))
            await host.service.drain(drain)
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
