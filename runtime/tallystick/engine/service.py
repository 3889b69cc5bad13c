"""What the daemon does for its clients: submit, resume, gate, cancel, reconcile, look.

One loop runs it, so that a claim on a run is taken between two awaits and exactly one of two callers wins.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import (
    AttemptUnresolvedError,
    GateStoppedError,
    PolicyDeniedError,
    ScriptRefusedError,
    StoreError,
    UsageError,
)
from tallystick.contract.events import AnyEvent, LaunchStarted, RevisionAdded, RunCreated
from tallystick.contract.history import History
from tallystick.contract.keys import revision_digest
from tallystick.contract.payload import PayloadError, canonical
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.contract.script import Script
from tallystick.engine import launch as core
from tallystick.engine import reports
from tallystick.engine.gate_actor import Review, ReviewScript
from tallystick.engine.journal import Journal
from tallystick.engine.library import Library
from tallystick.engine.limits import envelope_of
from tallystick.engine.live_run import LiveRun
from tallystick.engine.messages import (
    CheckReport,
    CheckRequest,
    Facts,
    GateReport,
    GateRequest,
    Progress,
    ResumeRequest,
    RunReport,
    RunRequest,
)
from tallystick.engine.recovery import cut_off
from tallystick.engine.results import ResultKeeper
from tallystick.engine.rows import row_of
from tallystick.engine.run_ids import new_run_id
from tallystick.kernel import Clock, Ref
from tallystick.providers.faults import parse_fault

ALREADY_LIVE = "TS-P010"
REVIEW_DEADLINE = 60.0


class Launcher(Protocol):
    """Starts and reaches the actors of live runs."""

    @property
    def driver_name(self) -> str:
        """The name of the sandbox driver."""

    async def start(self, live: LiveRun, launch: core.Launch, annotated: str, ended: Callable[[], None]) -> None:
        """Start the actor of a run."""

    def cancel(self, run: str, stop: Stop) -> None:
        """Tell the actor of a run to stop."""

    def launch(
        self, live: LiveRun, started: LaunchStarted, revision: RevisionAdded, allowance: Allowance
    ) -> core.Launch:
        """Build the launch's state machine."""


class Service:
    """The operations behind the API. Everything durable goes through the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        library: Library,
        keeper: ResultKeeper,
        gate: Ref[ReviewScript],
        launcher: Launcher,
        clock: Clock,
    ) -> None:
        self.journal = journal
        self.library = library
        self.keeper = keeper
        self.live: dict[str, LiveRun] = {}
        self._gate = gate
        self._launcher = launcher
        self._clock = clock
        self._claims: dict[str, str] = {}
        self._settling: dict[str, LiveRun] = {}
        self._idle = anyio.Event()

    # Looking.

    async def check(self, request: CheckRequest) -> CheckReport:
        """Check a script; within an envelope only when limits are given."""
        envelope = envelope_of(request.limits, Envelope()) if request.limits is not None else None
        return check_report(await self._review(request.source, envelope))

    async def gate(self, run: str, request: GateRequest) -> GateReport:
        """Ask whether a rewrite may replace the script of a run."""
        history = await self.library.history(run)
        frozen = history.frozen_sites()
        review = await self._review(request.source, None, frozen)
        if review.verdict is None:
            return GateReport(accepted=False, violations=review.report.violations, frozen=len(frozen))
        return GateReport(
            accepted=review.verdict.accepted,
            counterexamples=review.verdict.counterexamples,
            frozen=len(frozen),
        )

    async def report(self, run: str) -> RunReport:
        """Report one run."""
        live = self.live.get(run)
        history = await self.library.history(run)
        return await anyio.to_thread.run_sync(reports.run_report, history, self.keeper, live)

    async def watch(self, run: str) -> AsyncGenerator[Progress]:
        """Yield a snapshot of a run, then its lines until the launch has ended."""
        live = self.live.get(run)
        if live is None:
            report = await self.report(run)
            yield Progress(kind="snapshot", at=report.updated, calls=report.calls, spend=report.spend)
            yield Progress(kind="ended", at=report.updated, text=report.status, calls=report.calls, spend=report.spend)
            return
        lines = live.feed.watch()
        try:
            yield live.line("snapshot", self._clock.now(), text=live.phase)
            async for line in lines:
                yield line
        finally:
            await lines.aclose()

    # Doing.

    async def submit(self, request: RunRequest) -> RunReport:
        """Accept a script as a new run and start its first launch.

        Raises:
            UsageError, ScriptRefusedError, StoreUnavailableError: nothing was started.
        """
        args_digest = _canonical_args(request.args)
        envelope = envelope_of(request.limits, Envelope())
        _check_faults(request.faults)
        script = accepted(await self._review(request.source, envelope))
        now = self._clock.now()
        run = new_run_id(now)
        created = RunCreated(
            run=run,
            at=now,
            name=request.name[:200],
            envelope=envelope,
            seed=request.seed,
            faults=request.faults,
            latency=request.latency,
        )
        revision = RevisionAdded(
            run=run,
            at=now,
            revision=0,
            digest=revision_digest(script.source, args_digest),
            source=script.source,
            args=request.args,
            sites=script.sites,
        )
        with self._claim(run, "start"):
            await self._begin(History(run), script, revision, envelope, Allowance(), [created, revision], request)
        return await self.report(run)

    async def resume(self, run: str, request: ResumeRequest, *, by: str = "resume") -> RunReport:
        """Go on with a run: gate a rewrite, refuse while something is unresolved, start the next launch.

        Raises:
            PolicyDeniedError: the run is live or claimed.
            ScriptRefusedError, GateStoppedError: the rewrite was stopped; nothing was spent.
            AttemptUnresolvedError: side-effecting attempts are unresolved and ``proceed`` was not asked for.
        """
        _check_faults(request.faults or ())
        with self._claim(run, by):
            history = await self.library.history(run)
            history.check_schemes()
            await self._close_leftovers(history)
            before = history.launch
            envelope = envelope_of(request.limits, before.started.envelope if before is not None else Envelope())
            latest = history.revision
            source = request.source if request.source is not None else latest.source
            args = latest.args if request.args is msgspec.UNSET else request.args
            args_digest = _canonical_args(args)
            script = accepted(await self._review(source, envelope, history.frozen_sites()))
            if history.unresolved and not request.proceed:
                raise unresolved_error(history)
            now = self._clock.now()
            digest = revision_digest(source, args_digest)
            revision = next((known for known in history.revisions.values() if known.digest == digest), None)
            events: list[AnyEvent] = []
            if revision is None:
                revision = RevisionAdded(
                    run=run,
                    at=now,
                    revision=len(history.revisions),
                    digest=digest,
                    source=source,
                    args=args,
                    sites=script.sites,
                )
                events.append(revision)
            allowance = Allowance(request.allow_repeats, frozenset(request.allowed_repeats))
            await self._begin(history, script, revision, envelope, allowance, events, request)
        return await self.report(run)

    async def cancel(self, run: str, who: str) -> RunReport:
        """End the live launch of a run; a run that is not live stays as it is.

        Raises:
            UsageError: the run is not live.
        """
        if run not in self.live:
            report = await self.report(run)
            raise UsageError(f"run {run} is not live: it ended {report.status}", code="TS-U003")
        self._launcher.cancel(
            run,
            Stop(
                core.CANCELLED,
                f"the run was cancelled by {who}; calls that were in flight settled and are kept",
                "tally resume goes on from here; what is committed replays for free",
            ),
        )
        return await self.report(run)

    async def drain(self, seconds: float) -> None:
        """Interrupt every live launch and wait, at most so long, until they have settled."""
        stop = Stop(
            core.INTERRUPTED,
            "the daemon was stopped during this launch; calls in flight were kept, or are named as unresolved",
            "it goes on by itself at the next start unless something is unresolved; else tally resume",
        )
        for run in list(self.live):
            self._launcher.cancel(run, stop)
        with anyio.move_on_after(seconds):
            while self.live:
                self._idle = anyio.Event()
                await self._idle.wait()

    # How it is done.

    async def _begin(
        self,
        history: History,
        script: Script,
        revision: RevisionAdded,
        envelope: Envelope,
        allowance: Allowance,
        events: list[AnyEvent],
        request: RunRequest | ResumeRequest,
    ) -> None:
        """Journal the start of a launch, in one transaction with what led to it, and start its actor."""
        now = self._clock.now()
        started = LaunchStarted(
            run=history.run,
            at=now,
            launch=len(history.launches) + 1,
            revision=revision.revision,
            driver=self._launcher.driver_name,
            envelope=envelope,
            allow_repeats=allowance.all_repeats,
            allowed_repeats=tuple(allowance.repeats),
        )
        first = events[0] if events and isinstance(events[0], RunCreated) else None
        self.library.lend(history)
        try:
            await self.journal.append([*events, started], [row_of(history, "running", now, live=True, created=first)])
        except StoreError:
            self.library.forget(history.run)
            raise
        created = history.created
        assert created is not None
        live = LiveRun(
            history,
            envelope,
            faults=created.faults if request.faults is None else request.faults,
            latency=created.latency if request.latency is None else request.latency,
        )
        launch = self._launcher.launch(live, started, revision, allowance)
        live.accepts_work = lambda: launch.accepts_work
        self.live[history.run] = live
        await self._launcher.start(live, launch, script.annotated, lambda: self._ended(history.run))

    def _ended(self, run: str) -> None:
        live = self.live.pop(run, None)
        if live is not None:
            self.library.keep(live.history)
            if live.in_flight:
                self._settling[run] = live
        self._idle.set()

    async def _close_leftovers(self, history: History) -> None:
        """Wait for what an earlier launch left in flight, then end what never got an end in the journal."""
        settling = self._settling.pop(history.run, None)
        while settling is not None and settling.in_flight:
            await settling.changed()
        ends = cut_off(history, self._clock.now(), "its answer could not be written down")
        if ends:
            await self.journal.append(ends)

    async def _review(self, source: str, envelope: Envelope | None, frozen: Any = None) -> Review:
        return await self._gate.ask(ReviewScript(source, envelope, frozen), deadline=REVIEW_DEADLINE)

    @contextmanager
    def _claim(self, run: str, by: str) -> Iterator[None]:
        """Hold a run for one operation.

        Raises:
            PolicyDeniedError: it is live, or another operation holds it.
        """
        holder = self._claims.get(run) or ("launch" if run in self.live else None)
        if holder is not None:
            raise PolicyDeniedError(
                f"run {run} is busy: another {holder} has it; nothing was started",
                hint=f"tally watch {run} shows it; tally cancel {run} ends it",
                code=ALREADY_LIVE,
            )
        self._claims[run] = by
        try:
            yield
        finally:
            del self._claims[run]

    claim = _claim


def accepted(review: Review) -> Script:
    """Return the script of a review that nothing stopped.

    Raises:
        ScriptRefusedError: the checker found errors; the findings are in ``details``.
        GateStoppedError: the gate stopped it; the counterexamples are in ``details``.
    """
    if review.script is None:
        errors = [violation for violation in review.report.violations if violation.severity == "error"]
        raise ScriptRefusedError(
            f"the checker refused the script: {len(errors)} finding(s); nothing was started and nothing spent",
            hint="correct what is named and try again; tally check shows the same",
            details=review.report.violations,
        )
    if review.verdict is not None and not review.verdict.accepted:
        count = len(review.verdict.counterexamples)
        raise GateStoppedError(
            f"the gate stopped the rewrite: {count} committed call(s) would change or move; nothing was started and "
            "nothing spent",
            hint="leave committed calls as and where they are; append new calls after them",
            details=review.verdict.counterexamples,
        )
    return review.script


def check_report(review: Review) -> CheckReport:
    """Turn a review into the checker's report for clients."""
    report = review.report
    facts = report.facts
    return CheckReport(
        valid=report.valid,
        violations=report.violations,
        facts=Facts(facts.sites, dict(facts.calls), facts.call_bound) if facts is not None else None,
    )


def unresolved_error(history: History) -> AttemptUnresolvedError:
    """Name the attempts that stand in the way of a resume."""
    attempts = [reports.attempt_report(attempt) for attempt in history.unresolved]
    names = "; ".join(f"attempt {each.attempt} at {each.identity} ({each.capability})" for each in attempts[:5])
    return AttemptUnresolvedError(
        f"{len(attempts)} call(s) may have been executed and billed, and nobody knows: {names}. Nothing was started",
        hint=f"tally attempts {history.run} shows them; settle each with tally reconcile {history.run} ATTEMPT "
        "--result FILE or --abandon; or resume with --proceed up to them",
        details=attempts,
    )


def _canonical_args(args: Any) -> bytes:
    try:
        return canonical(args)
    except PayloadError as error:
        raise UsageError(f"the args are not JSON-like: {error}") from None


def _check_faults(faults: tuple[str, ...]) -> None:
    for fault in faults:
        try:
            parse_fault(fault)
        except ValueError as error:
            raise UsageError(str(error)) from None
