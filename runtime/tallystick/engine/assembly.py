"""Putting the engine together: store, journal, tree, service and recovery, in the order that each needs the others."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from tallystick.contract.errors import StoreCorruptError, TallyError
from tallystick.contract.history import History
from tallystick.engine.announcer import Announcer
from tallystick.engine.approver import Approver
from tallystick.engine.authoring.models import Models
from tallystick.engine.authoring.service import authoring_of
from tallystick.engine.budgets import Budgets
from tallystick.engine.config import Config
from tallystick.engine.doctor import Doctor
from tallystick.engine.files import Files
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

_RESUME = "tally resume goes on from there"


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
    why: str = "",
    news: Announcer | None = None,
) -> AsyncIterator[Host]:
    """Run everything but the API round a body: the tree, the service, recovery; then drain and stop in order.

    ``providers`` are used under their names as they are, without asking the registry. ``why`` says why it is this
    driver, ``news`` is whom the driver tells what takes long.
    """
    journal = Journal(store)
    engine = Engine(config, journal, driver, providers or {}, clock, news=news or Announcer())
    library = Library(journal)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.bench.close)
        tree = await stack.enter_async_context(open_tree(engine.spec, clock=clock))
        launches = Launches(journal, library, engine, clock)
        service = Service(
            journal=journal,
            library=library,
            keeper=engine.keeper,
            launches=launches,
            gate=engine.gate.ref,
            planner=Planner(engine.pool, engine.keeper, clock),
            inquirer=engine.inquirer,
            make_launch=engine.launch,
            authoring=authoring_of(
                engine,
                config.authoring,
                library=library,
                launches=launches,
                models=Models(config, engine.bench),
                clock=clock,
            ),
            clock=clock,
        )
        if engine.purse.began is not None:
            engine.purse.catch_up(await anyio.to_thread.run_sync(store.events_since, engine.purse.began))
        resumable, askable = await recover(service, store, clock, ask=config.daemon.auto_resume)
        engine.pool.refill()
        if config.daemon.auto_resume:
            for run in resumable:
                await _go_on(service, run)
            # Providers may take minutes to say what became of a call; nobody else waits for that.
            asking = asyncio.create_task(_ask(service, askable, clock))
            stack.push_async_callback(_end, asking)
        try:
            yield Host(
                engine=engine,
                service=service,
                budgets=Budgets(service, clock),
                operator=Operator(service, clock),
                approver=Approver(service, clock),
                files=Files(journal, clock),
                doctor=Doctor(engine, home, clock, why),
                inquiry=Inquiry(journal, library),
                tree=tree,
                why_driver=why,
                home=home,
                pid=os.getpid(),
                started=clock.now(),
                shutdown=shutdown,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await service.launches.drain(config.daemon.drain)


async def recover(service: Service, store: Store, clock: Clock, *, ask: bool) -> tuple[list[str], list[str]]:
    """End in the journal whatever a crash cut off; return the runs that may go on by themselves.

    Reads only the runs that were live. A run whose events are damaged is named and left as it is. The rows of those
    that may go on stay live until they do, so that a crash right now does not make the next start forget them. The
    second list has those that may where their providers say what became of unresolved attempts, if ``ask``.
    """
    resumable: list[str] = []
    askable: list[str] = []
    for run in await anyio.to_thread.run_sync(store.live_runs):
        try:
            history = await service.library.history(run)
            await service.journal.append(cut_off(history, clock.now(), "the daemon ended before the answer came"))
            asked = ask and all(attempt.started.provider for attempt in history.unresolved)
            why_not = obstacle(history, asked=asked)
            row = row_of(history, "interrupted", clock.now(), live=why_not is None)
            await service.journal.append([], [row])
        except StoreCorruptError as error:
            log.exception("run_damaged", run=run, error=error.message, hint=error.hint)
            continue
        unresolved = len(history.unresolved)
        log.info("run_interrupted", run=run, records=len(history.records), unresolved=unresolved)
        if why_not is None:
            (askable if unresolved else resumable).append(run)
        else:
            log.warning("run_stays_interrupted", run=run, reason=why_not, hint=_RESUME)
    return resumable, askable


async def _ask(service: Service, runs: Iterable[str], clock: Clock) -> None:
    """Let runs go on whose providers can say what became of their unresolved attempts."""
    for run in runs:
        history = await service.library.history(run)
        if any([await service.inquirer.can_answer(attempt) for attempt in history.unresolved]):
            await _go_on(service, run)
        else:
            reason = f"{len(history.unresolved)} call(s) are unresolved, and their provider cannot be asked"
            log.warning("run_stays_interrupted", run=run, reason=reason, hint=_RESUME)
        with suppress(TallyError):
            await _let_go(service, await service.library.history(run), clock)


def _let_go(service: Service, history: History, clock: Clock) -> "asyncio.Future[None]":
    """Have the row of a run that does not go on by itself say so.

    The row is submitted between two awaits: that of a launch which a client starts next is written after it, and no
    client finds the run claimed.

    Raises:
        PolicyDeniedError: it is live by now, or another operation has it: the next start looks at it again.
    """
    with service.launches.claim(history.run, "recovery"):
        ended = history.launch.ended if history.launch is not None else None
        status = ended.status if ended is not None else "interrupted"
        return service.journal.append([], [row_of(history, status, clock.now(), live=False)])


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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
        log.warning("run_stays_interrupted", run=run, reason=str(error), hint=_RESUME)
