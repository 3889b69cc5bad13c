"""Putting the engine together: store, journal, tree, service and recovery, in the order that each needs the others."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from tallystick.contract.errors import StoreCorruptError, TallyError
from tallystick.engine.config import Config
from tallystick.engine.doctor import Doctor
from tallystick.engine.host import Host
from tallystick.engine.inquiry import Inquiry
from tallystick.engine.journal import Journal
from tallystick.engine.launches import Launches
from tallystick.engine.library import Library
from tallystick.engine.messages import ResumeRequest
from tallystick.engine.operator import Operator
from tallystick.engine.planner import Planner
from tallystick.engine.recovery import cut_off, obstacle
from tallystick.engine.rows import row_of
from tallystick.engine.service import Service
from tallystick.engine.tree import Engine
from tallystick.kernel import Clock, KernelError, open_tree
from tallystick.providers.protocol import Provider
from tallystick.sandbox.protocol import Driver
from tallystick.store.protocol import Store

log = structlog.get_logger("tallystick.engine")


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
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.bench.close)
        tree = await stack.enter_async_context(open_tree(engine.spec, clock=clock))
        service = Service(
            journal=journal,
            library=library,
            keeper=engine.keeper,
            launches=Launches(journal, library, engine, clock),
            gate=engine.gate.ref,
            planner=Planner(engine.pool, engine.keeper, clock),
            make_launch=engine.launch,
            clock=clock,
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
                inquiry=Inquiry(journal, library),
                tree=tree,
                home=home,
                pid=os.getpid(),
                started=clock.now(),
                shutdown=shutdown,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await service.launches.drain(config.daemon.drain)


async def recover(service: Service, store: Store, clock: Clock) -> list[str]:
    """End in the journal whatever a crash cut off; return the runs that may go on by themselves.

    Reads only the runs that were live. A run whose events are damaged is named and left as it is. The rows of those
    that may go on stay live until they do, so that a crash right now does not make the next start forget them.
    """
    resumable = []
    for run in await anyio.to_thread.run_sync(store.live_runs):
        try:
            history = await service.library.history(run)
            await service.journal.append(cut_off(history, clock.now(), "the daemon ended before the answer came"))
            why_not = obstacle(history)
            row = row_of(history, "interrupted", clock.now(), live=why_not is None)
            await service.journal.append([], [row])
        except StoreCorruptError as error:
            log.exception("run_damaged", run=run, error=error.message, hint=error.hint)
            continue
        unresolved = len(history.unresolved)
        log.info("run_interrupted", run=run, records=len(history.records), unresolved=unresolved)
        if why_not is None:
            resumable.append(run)
        else:
            log.warning("run_stays_interrupted", run=run, reason=why_not, hint="tally resume goes on from there")
    return resumable


async def _go_on(service: Service, run: str) -> None:
    """Resume a run just as its latest launch was started; trouble with one run is not the daemon's."""
    try:
        launch = (await service.library.history(run)).launch
        assert launch is not None
        before = launch.started
        request = ResumeRequest(allow_repeats=before.allow_repeats, allowed_repeats=before.allowed_repeats)
        await service.resume(run, request, by="recovery")
        log.info("run_goes_on", run=run)
    except (TallyError, KernelError) as error:
        log.warning("run_stays_interrupted", run=run, reason=str(error), hint="tally resume goes on from there")
