"""What the daemon does for its clients: check, gate, submit, resume, cancel, and look."""

from collections.abc import AsyncGenerator

import msgspec

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import UsageError
from tallystick.contract.events import RunCreated
from tallystick.contract.history import History
from tallystick.contract.prefix import frozen_sites
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.contract.script import MAX_SOURCE
from tallystick.engine import reports
from tallystick.engine.authoring.service import Authoring
from tallystick.engine.gate_actor import Review, ReviewScript
from tallystick.engine.inquirer import Inquirer
from tallystick.engine.journal import Journal
from tallystick.engine.launches import Launches, NextLaunch
from tallystick.engine.library import Library
from tallystick.engine.limits import check_latency, check_seed, envelope_of
from tallystick.engine.messages import (
    CheckReport,
    CheckRequest,
    GateReport,
    GateRequest,
    PlanReport,
    PlanRequest,
    Progress,
    ResumeRequest,
    RunReport,
    RunRequest,
)
from tallystick.engine.planner import Planner
from tallystick.engine.results import ResultKeeper
from tallystick.engine.resumes import MakeLaunch, Resumes, canonical_args, revision_of
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
        planner: Planner,
        inquirer: Inquirer,
        make_launch: MakeLaunch,
        authoring: Authoring,
        clock: Clock,
    ) -> None:
        self.journal = journal
        self.library = library
        self.keeper = keeper
        self.launches = launches
        self.inquirer = inquirer
        self.authoring = authoring
        self._gate = gate
        self._clock = clock
        self._resumes = Resumes(
            launches=launches,
            library=library,
            planner=planner,
            inquirer=inquirer,
            review=self._review,
            make_launch=make_launch,
            clock=clock,
        )

    async def check(self, request: CheckRequest) -> CheckReport:
        """Check a script; within an envelope only when limits are given."""
        envelope = envelope_of(request.limits, Envelope()) if request.limits is not None else None
        return check_report(await self._review(request.source, envelope))

    async def gate(self, run: str, request: GateRequest) -> GateReport:
        """Ask whether a rewrite may replace the script of a run."""
        history = await self.library.history(run)
        compared = frozen_sites(history).keys() - history.retired
        return gate_report(await self._review(request.source, None, history), len(compared))

    async def report(self, run: str) -> RunReport:
        """Report one run."""
        history = await self.library.history(run)
        # Read off on the loop, where the history changes; only files are read elsewhere, and afterwards.
        report = self.authoring.completed(reports.run_report(history, self.launches.live.get(run)), history)
        ended = history.launch.ended if history.launch is not None else None
        if ended is None:
            return report
        result, logs = await self.keeper.read(ended.result), await self.keeper.read(ended.logs)
        return msgspec.structs.replace(report, result=result, logs=logs or "")

    async def watch(self, run: str) -> AsyncGenerator[Progress]:
        """Yield a snapshot of a run, then its lines until the launch has ended, or whatever a model does for it."""
        live = self.launches.live.get(run)
        session = self.authoring.session(run)
        if session is not None and not session.over:
            with session.feed.watch() as lines:
                yield session.line("snapshot", live.phase if live is not None else "writing")
                async for line in lines:
                    yield line
            return
        if live is None:
            report = await self.report(run)
            yield Progress(kind="snapshot", at=report.updated, calls=report.calls, spend=report.spend)
            yield Progress(kind="ended", at=report.updated, text=report.status, calls=report.calls, spend=report.spend)
            return
        with live.feed.watch() as lines:
            now = self._clock.now()
            yield live.line("snapshot", now, text=live.phase)
            for capability, (until, text) in live.pauses.items():
                if until > now:
                    yield live.line("retrying", now, capability=capability, text=text)
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
        canonical_args(request.args)
        auto = request.auto_repair
        if auto is not None:
            await self.authoring.check_model(auto)
        review = await self._review(request.source, envelope)
        if auto is not None and review.script is None and len(request.source) <= MAX_SOURCE:
            return await self.report(await self.authoring.mend(request, auto, self.resume))
        script = accepted(review)
        now = self._clock.now()
        run = new_run_id(now)
        history = History(run)
        created = RunCreated(run=run, at=now, name=request.name[:NAME_LIMIT], envelope=envelope, seed=request.seed)
        revision = revision_of(history, script, request.args, now)
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
        if auto is not None:
            await self.authoring.look_after(run, auto, self.resume)
        return await self.report(run)

    async def resume(self, run: str, request: ResumeRequest, *, by: str = "resume") -> RunReport:
        """Go on with a run: gate a rewrite, refuse while something is unresolved, start the next launch.

        Raises:
            PolicyDeniedError: the run is live, or another operation has it.
            ScriptRefusedError, GateStoppedError: the rewrite was stopped; nothing was spent.
            AttemptUnresolvedError: side-effecting attempts are unresolved and ``proceed`` was not asked for.
        """
        _check_demands(request.faults or (), request.latency or 0.0)
        if request.auto_repair is not None:
            await self.authoring.check_model(request.auto_repair)
        await self._resumes.resume(run, request, by)
        if request.auto_repair is not None:
            await self.authoring.look_after(run, request.auto_repair, self.resume)
        return await self.report(run)

    async def plan(self, run: str, request: PlanRequest) -> PlanReport:
        """Say what a resume would do, without spending anything."""
        return reports.plan_report(await self._resumes.plan(run, request))

    async def cancel(self, run: str, who: str) -> RunReport:
        """End the live launch of a run; a run that is not live stays as it is.

        Raises:
            UsageError: the run is not live.
        """
        report = await self.report(run)
        writing = self.authoring.cancel(run, who)
        if run not in self.launches.live and writing:
            return report
        if run not in self.launches.live:
            raise UsageError(
                f"run {run} is not live: it ended {report.status}; there is nothing to cancel",
                hint=f"tally show {run} says how it stands",
                code="TS-U003",
            )
        self.launches.cancel(
            run,
            Stop(
                CANCELLED,
                f"the run was cancelled by {who}; calls that were in flight settled and are kept",
                "tally resume goes on from here; what is committed replays for free",
            ),
        )
        return report

    async def _review(self, source: str, envelope: Envelope | None, history: History | None = None) -> Review:
        frozen = frozen_sites(history) if history is not None else None
        retired = frozenset(history.retired) if history is not None else frozenset()
        return await self._gate.ask(ReviewScript(source, envelope, frozen, retired), deadline=REVIEW_DEADLINE)


def _check_demands(faults: tuple[str, ...], latency: float) -> None:
    check_latency(latency)
    for fault in faults:
        try:
            parse_fault(fault)
        except ValueError as error:
            raise UsageError(
                f"--fail {error}",
                hint="CAPABILITY:EXECUTION:KIND[:TEXT], for the local provider only: image.generate:2:invalid_request",
            ) from None
