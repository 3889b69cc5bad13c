"""Going on with a run: what stands in the way is found before anything starts (contract.md, sections 6 and 10).

The order: what an earlier launch left in flight settles; providers are asked what became of unresolved attempts;
checker; gate; the attempts that stay unresolved; for a new revision the plan; then the next launch. ``plan`` takes the
same way, asks nobody, and stops short of the launch.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import Envelope
from tallystick.contract.errors import (
    AttemptUnresolvedError,
    DivergenceError,
    PolicyDeniedError,
    TallyError,
    UsageError,
)
from tallystick.contract.events import AnyEvent, FailureRetried, RevisionAdded
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.keys import revision_digest
from tallystick.contract.payload import PayloadError, canonical
from tallystick.contract.plan import Plan
from tallystick.contract.prefix import check_schemes
from tallystick.contract.runtime_rule import DIVERGED, REPEAT, UNRESOLVED, Allowance
from tallystick.contract.script import Script
from tallystick.engine import reports
from tallystick.engine.gate_actor import Review
from tallystick.engine.inquirer import Inquirer
from tallystick.engine.launch import Launch
from tallystick.engine.launches import Launches, NextLaunch
from tallystick.engine.library import Library
from tallystick.engine.limits import envelope_of
from tallystick.engine.messages import AttemptReport, Limits, PlanRequest, ResumeRequest
from tallystick.engine.planner import Planner
from tallystick.engine.review import accepted
from tallystick.kernel import Clock

#: What a plan finds that a resume must not walk into. Other denials end a launch after its siblings have settled.
_PREFLIGHT: dict[str, type[TallyError]] = {
    DIVERGED: DivergenceError,
    UNRESOLVED: AttemptUnresolvedError,
    REPEAT: PolicyDeniedError,
}

Reviewer = Callable[[str, Envelope | None, History], Awaitable[Review]]


class MakeLaunch(Protocol):
    """Builds a launch's state machine."""

    def __call__(
        self, history: History, envelope: Envelope, number: int, revision: RevisionAdded, allowance: Allowance
    ) -> Launch:
        """Build it."""


class _Candidate(msgspec.Struct, frozen=True):
    """A script and args that checker and gate let pass for a run."""

    script: Script
    revision: RevisionAdded
    envelope: Envelope
    faults: tuple[str, ...]
    latency: float

    def is_new(self, history: History) -> bool:
        return self.revision.revision not in history.revisions


class Resumes:
    """Plans and resumes of runs that are not live."""

    def __init__(
        self,
        *,
        launches: Launches,
        library: Library,
        planner: Planner,
        inquirer: Inquirer,
        review: Reviewer,
        make_launch: MakeLaunch,
        clock: Clock,
    ) -> None:
        self._launches = launches
        self._library = library
        self._planner = planner
        self._inquirer = inquirer
        self._review = review
        self._make_launch = make_launch
        self._clock = clock

    async def plan(self, run: str, request: PlanRequest) -> Plan:
        """Work out what a resume would do, without spending anything.

        Raises:
            PolicyDeniedError: the run is live, or another operation has it.
            ScriptRefusedError, GateStoppedError: the candidate was stopped before.
        """
        with self._launches.claim(run, "plan"):
            history = await self._library.history(run)
            candidate = await self._candidate(history, request.source, request.args, request.limits)
            allowance = Allowance(resends=await self._inquirer.resendable(history))
            return await self._rehearse(history, candidate, allowance)

    async def resume(self, run: str, request: ResumeRequest, by: str) -> None:
        """Start the next launch of a run, if nothing stands in the way.

        Raises:
            PolicyDeniedError: the run is live, another operation has it, or the plan found a repeated payment.
            ScriptRefusedError, GateStoppedError: the rewrite was stopped; nothing was spent.
            AttemptUnresolvedError: side-effecting attempts are unresolved and ``proceed`` was not asked for.
            DivergenceError: the plan found a committed call that would be another one.
        """
        with self._launches.claim(run, by):
            history = await self._library.history(run)
            await self._launches.settle(history)
            said = await self._inquirer.ask_all(history)
            candidate = await self._candidate(history, request.source, request.args, request.limits)
            resends = await self._inquirer.resendable(history)
            held = [attempt for attempt in history.unresolved if attempt.started.attempt not in resends]
            if held and not request.proceed:
                raise unresolved_error(history.run, held, said)
            retried = [self._retried(history, identity) for identity in request.retry_failed]
            allowance = Allowance(
                request.allow_repeats,
                frozenset(request.allowed_repeats),
                frozenset(request.retry_failed),
                resends,
            )
            if request.preflight and (candidate.is_new(history) or retried):
                _refuse(run, await self._rehearse(history, candidate, allowance), proceed=request.proceed)
            events: list[AnyEvent] = [
                FailureRetried(run=run, at=self._clock.now(), attempt=attempt, who=request.who) for attempt in retried
            ]
            if candidate.is_new(history):
                events.append(candidate.revision)
            await self._launches.begin(
                NextLaunch(
                    history=history,
                    revision=candidate.revision,
                    annotated=candidate.script.annotated,
                    envelope=candidate.envelope,
                    allowance=allowance,
                    faults=candidate.faults if request.faults is None else request.faults,
                    latency=candidate.latency if request.latency is None else request.latency,
                    before=tuple(events),
                )
            )

    async def _candidate(self, history: History, source: str | None, args: Any, limits: Limits) -> _Candidate:
        check_schemes(history)
        launch, created = history.launch, history.created
        before = launch.started if launch is not None else None
        # A run without a launch is a draft that a model wrote, or could not write: see the decision on drafts.
        envelope = envelope_of(limits, launch.envelope if launch else created.envelope if created else Envelope())
        known = history.revision.args if history.revisions else None
        wanted = known if args is msgspec.UNSET else args
        canonical_args(wanted)
        text = source if source is not None else history.revision.source
        script = accepted(await self._review(text, envelope, history))
        return _Candidate(
            script,
            revision_of(history, script, wanted, self._clock.now()),
            envelope,
            faults=before.faults if before is not None else (),
            latency=before.latency if before is not None else 0.0,
        )

    async def _rehearse(self, history: History, candidate: _Candidate, allowance: Allowance) -> Plan:
        number = len(history.launches) + 1
        launch = self._make_launch(history, candidate.envelope, number, candidate.revision, allowance)
        return await self._planner.plan(launch, candidate.script.annotated)

    def _retried(self, history: History, identity: Identity) -> int:
        """Return the attempt behind a survived failure that may become work again (contract.md, section 6.3)."""
        attempt = history.latest_attempt.get(identity)
        if attempt is None or not attempt.survived:
            raise UsageError(
                f"{identity} is not a failure that the script had survived",
                hint=f"tally attempts {history.run} lists the attempts; others run again by themselves",
            )
        later = [
            known
            for known in history.records
            if (known.site, known.path) == (identity.site, identity.path) and known.occurrence > identity.occurrence
        ]
        if later:
            raise UsageError(
                f"{identity} cannot be retried: {later[0]} stands after it, and would change its place",
                hint="append a new call instead",
            )
        return attempt.started.attempt


def revision_of(history: History, script: Script, args: Any, now: float) -> RevisionAdded:
    """Return the run's revision of this source and these args: the known one, or the next."""
    digest = revision_digest(script.source, canonical_args(args))
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


def canonical_args(args: Any) -> bytes:
    """Return the canonical encoding of a run's args.

    Raises:
        UsageError: they are not JSON-like.
    """
    try:
        return canonical(args, "args")
    except PayloadError as error:
        raise UsageError(f"the args cannot be used: {error}") from None


def unresolved_error(run: str, held: Sequence[Attempt], said: Mapping[int, str]) -> AttemptUnresolvedError:
    """Name the attempts that stand in the way of a resume; ``said`` is what providers answered of them."""
    attempts = [reports.attempt_report(attempt) for attempt in held]
    names = "; ".join(_named(each, said.get(each.attempt, "")) for each in attempts[:5])
    return AttemptUnresolvedError(
        f"{len(attempts)} call(s) may have been executed and billed, and nobody knows: {names}. Nothing was started",
        hint=f"tally attempts {run} shows them; settle each with tally reconcile {run} ATTEMPT "
        "--result FILE or --abandon; or resume with --proceed up to them",
        details=attempts,
    )


def _named(attempt: AttemptReport, said: str) -> str:
    name = f"attempt {attempt.attempt} at {attempt.identity} ({attempt.capability})"
    return f"{name}, of which was said: {said}" if said else name


def _refuse(run: str, plan: Plan, *, proceed: bool) -> None:
    """Raise what the plan found that a resume must not walk into; the gravest first, all of it in ``details``."""
    walked_into = {code for code in _PREFLIGHT if not (proceed and code == UNRESOLVED)}
    grave = plan.gravest
    if grave is None or grave.code not in walked_into:
        return
    others = len(plan.stops) - 1
    more = f" ({others} more of the kind found)" if others else ""
    raise _PREFLIGHT[grave.code](
        f"{grave.message}{more}; nothing was started and nothing spent",
        hint=f"{grave.hint}. tally plan {run} shows the whole plan",
        code=grave.code,
        details=reports.plan_report(plan),
    )
