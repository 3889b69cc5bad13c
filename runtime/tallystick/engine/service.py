"""What the daemon does for its clients: check, gate, submit, resume, cancel, and look."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import AttemptUnresolvedError, UsageError
from tallystick.contract.events import LaunchStarted, RevisionAdded, RunCreated
from tallystick.contract.gate import FrozenSite
from tallystick.contract.history import History
from tallystick.contract.keys import revision_digest
from tallystick.contract.payload import PayloadError, canonical
from tallystick.contract.prefix import check_schemes, frozen_sites
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.contract.script import Script
from tallystick.engine import reports
from tallystick.engine.gate_actor import Review, ReviewScript
from tallystick.engine.journal import Journal
from tallystick.engine.launches import Launches, NextLaunch
from tallystick.engine.library import Library
from tallystick.engine.limits import check_latency, check_seed, envelope_of
from tallystick.engine.messages import (
    CheckReport,
    CheckRequest,
    GateReport,
    GateRequest,
    Progress,
    ResumeRequest,
    RunReport,
    RunRequest,
)
from tallystick.engine.results import ResultKeeper
from tallystick.engine.review import accepted, check_report, gate_report
from tallystick.engine.run_ids import new_run_id
from tallystick.engine.steps import CANCELLED
from tallystick.kernel import Clock, Ref
from tallystick.providers.faults import parse_fault

REVIEW_DEADLINE = 60.0
NAME_LIMIT = 200


class Service:
    """The operations behind the API. Everything durable goes through the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        library: Library,
        keeper: ResultKeeper,
        launches: Launches,
        gate: Ref[ReviewScript],
        clock: Clock,
    ) -> None:
        self.journal = journal
        self.library = library
        self.keeper = keeper
        self.launches = launches
        self._gate = gate
        self._clock = clock

    async def check(self, request: CheckRequest) -> CheckReport:
        """Check a script; within an envelope only when limits are given."""
        envelope = envelope_of(request.limits, Envelope()) if request.limits is not None else None
        return check_report(await self._review(request.source, envelope))

    async def gate(self, run: str, request: GateRequest) -> GateReport:
        """Ask whether a rewrite may replace the script of a run."""
        history = await self.library.history(run)
        frozen = frozen_sites(history)
        return gate_report(await self._review(request.source, None, frozen), len(frozen))

    async def report(self, run: str) -> RunReport:
        """Report one run."""
        history = await self.library.history(run)
        # Read off on the loop, where the history changes; only files are read elsewhere, and afterwards.
        report = reports.run_report(history, self.launches.live.get(run))
        ended = history.launch.ended if history.launch is not None else None
        if ended is None:
            return report
        result, logs = await self.keeper.read(ended.result), await self.keeper.read(ended.logs)
        return msgspec.structs.replace(report, result=result, logs=logs or "")

    async def watch(self, run: str) -> AsyncGenerator[Progress]:
        """Yield a snapshot of a run, then its lines until the launch has ended."""
        live = self.launches.live.get(run)
        if live is None:
            report = await self.report(run)
            yield Progress(kind="snapshot", at=report.updated, calls=report.calls, spend=report.spend)
            yield Progress(kind="ended", at=report.updated, text=report.status, calls=report.calls, spend=report.spend)
            return
        with live.feed.watch() as lines:
            yield live.line("snapshot", self._clock.now(), text=live.phase)
            async for line in lines:
                yield line

    async def submit(self, request: RunRequest) -> RunReport:
        """Accept a script as a new run and start its first launch.

        Raises:
            UsageError, ScriptRefusedError, StoreUnavailableError: nothing was started.
        """
        envelope = envelope_of(request.limits, Envelope())
        check_seed(request.seed)
        _check_demands(request.faults, request.latency)
        _canonical_args(request.args)
        script = accepted(await self._review(request.source, envelope))
        now = self._clock.now()
        run = new_run_id(now)
        history = History(run)
        created = RunCreated(run=run, at=now, name=request.name[:NAME_LIMIT], envelope=envelope, seed=request.seed)
        revision = _revision(history, script, request.args, now)
        with self.launches.claim(run, "start"):
            await self.launches.begin(
                NextLaunch(
                    history=history,
                    revision=revision,
                    annotated=script.annotated,
                    envelope=envelope,
                    allowance=Allowance(),
                    faults=request.faults,
                    latency=request.latency,
                    before=(created, revision),
                )
            )
        return await self.report(run)

    async def resume(self, run: str, request: ResumeRequest, *, by: str = "resume") -> RunReport:
        """Go on with a run: gate a rewrite, refuse while something is unresolved, start the next launch.

        Raises:
            PolicyDeniedError: the run is live, or another operation has it.
            ScriptRefusedError, GateStoppedError: the rewrite was stopped; nothing was spent.
            AttemptUnresolvedError: side-effecting attempts are unresolved and ``proceed`` was not asked for.
        """
        _check_demands(request.faults or (), request.latency or 0.0)
        with self.launches.claim(run, by):
            history = await self.library.history(run)
            check_schemes(history)
            await self.launches.settle(history)
            before = _latest_launch(history)
            envelope = envelope_of(request.limits, before.envelope)
            source = request.source if request.source is not None else history.revision.source
            args = history.revision.args if request.args is msgspec.UNSET else request.args
            _canonical_args(args)
            script = accepted(await self._review(source, envelope, frozen_sites(history)))
            if history.unresolved and not request.proceed:
                raise unresolved_error(history)
            revision = _revision(history, script, args, self._clock.now())
            await self.launches.begin(
                NextLaunch(
                    history=history,
                    revision=revision,
                    annotated=script.annotated,
                    envelope=envelope,
                    allowance=Allowance(request.allow_repeats, frozenset(request.allowed_repeats)),
                    faults=before.faults if request.faults is None else request.faults,
                    latency=before.latency if request.latency is None else request.latency,
                    before=() if revision.revision in history.revisions else (revision,),
                )
            )
        return await self.report(run)

    async def cancel(self, run: str, who: str) -> RunReport:
        """End the live launch of a run; a run that is not live stays as it is.

        Raises:
            UsageError: the run is not live.
        """
        report = await self.report(run)
        if run not in self.launches.live:
            raise UsageError(f"run {run} is not live: it ended {report.status}", code="TS-U003")
        self.launches.cancel(
            run,
            Stop(
                CANCELLED,
                f"the run was cancelled by {who}; calls that were in flight settled and are kept",
                "tally resume goes on from here; what is committed replays for free",
            ),
        )
        return report

    async def _review(
        self, source: str, envelope: Envelope | None, frozen: Mapping[str, FrozenSite] | None = None
    ) -> Review:
        return await self._gate.ask(ReviewScript(source, envelope, frozen), deadline=REVIEW_DEADLINE)


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


def _revision(history: History, script: Script, args: Any, now: float) -> RevisionAdded:
    """Return the run's revision of this source and these args: the known one, or the next."""
    digest = revision_digest(script.source, _canonical_args(args))
    for known in history.revisions.values():
        if known.digest == digest:
            return known
    return RevisionAdded(
        run=history.run,
        at=now,
        revision=len(history.revisions),
        digest=digest,
        source=script.source,
        args=args,
        sites=script.sites,
    )


def _latest_launch(history: History) -> LaunchStarted:
    launch = history.launch
    if launch is None:
        raise UsageError(f"run {history.run} has never been launched", hint="submit its script again")
    return launch.started


def _canonical_args(args: Any) -> bytes:
    try:
        return canonical(args, "args")
    except PayloadError as error:
        raise UsageError(f"the args cannot be used: {error}") from None


def _check_demands(faults: tuple[str, ...], latency: float) -> None:
    check_latency(latency)
    for fault in faults:
        try:
            parse_fault(fault)
        except ValueError as error:
            raise UsageError(str(error)) from None
