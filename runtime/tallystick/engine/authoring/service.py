"""What the daemon does for those who have scripts written or repaired: author, repair, look, cancel, and go on alone.

A run is claimed for as long as a model works on it, so that no launch and no other repair is beside it. The work is the
daemon's: a client that goes away misses nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial

import anyio.to_thread
import structlog

from tallystick.contract.authoring.prompt import AuthorTask, author_prompt, repair_prompt
from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.errors import TallyError, UsageError
from tallystick.contract.events import AnyEvent, RunCreated
from tallystick.contract.history import History
from tallystick.contract.script import Script
from tallystick.engine.authoring import briefs, reports
from tallystick.engine.authoring.actor import Work
from tallystick.engine.authoring.asking import Asker
from tallystick.engine.authoring.choices import AutoRepair
from tallystick.engine.authoring.messages import (
    AuthorRequest,
    CandidateReport,
    RepairRequest,
    SkillDocument,
    WritingReport,
)
from tallystick.engine.authoring.models import Model, Models
from tallystick.engine.authoring.session import Session, draft_status, write
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.authoring.skill import estimated_tokens, skill
from tallystick.engine.authoring.unattended import Resume, Unattended
from tallystick.engine.journal import Journal
from tallystick.engine.launches import Launches
from tallystick.engine.library import Library
from tallystick.engine.limits import check_seed, envelope_of
from tallystick.engine.messages import ResumeRequest, RunReport, RunRequest
from tallystick.engine.resumes import canonical_args, revision_of
from tallystick.engine.rows import row_of
from tallystick.engine.run_ids import new_run_id
from tallystick.engine.tree import Engine
from tallystick.kernel import Clock, Ref

#: Sessions that are over and still told of.
KEPT = 256
REQUEST_LIMIT = 8_000
NAME_LIMIT = 60

log = structlog.get_logger("tallystick.authoring")


class Authoring:
    """Runs that a model writes or repairs, by id."""

    def __init__(
        self,
        *,
        journal: Journal,
        library: Library,
        launches: Launches,
        asker: Asker,
        models: Models,
        specs: Mapping[str, CapabilitySpec],
        attempts: int,
        actor: Ref[Work],
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._library = library
        self._launches = launches
        self._asker = asker
        self._models = models
        self._specs = specs
        self._attempts = attempts
        self._actor = actor
        self._clock = clock
        self._sessions: dict[str, Session] = {}

    def skill(self) -> SkillDocument:
        """Return the document that a model gets, with the prices and capabilities that are configured."""
        text = skill(self._specs)
        return SkillDocument(text, estimated_tokens(text))

    async def author(self, request: AuthorRequest) -> WritingReport:
        """Make a run for a script that a model is to write, and begin.

        Raises:
            UsageError, StoreError: nothing was begun, nobody was asked.
        """
        if not request.request.strip() or len(request.request) > REQUEST_LIMIT:
            raise UsageError(
                f"a request of {len(request.request)} characters cannot be used; nobody was asked",
                hint=f"say in 1 to {REQUEST_LIMIT:,} characters what the script is to do",
            )
        model = await self._models.find(request.model)
        with ExitStack() as claim:
            session = await self._draft(request, claim, None)
            self._begin(session, claim, partial(self._author, session, model, request))
        return await self.report(session.run)

    async def repair(self, run: str, request: RepairRequest) -> WritingReport:
        """Begin to repair the script of a run that is not live.

        Raises:
            UsageError: there is nothing to repair, or no model to ask.
            PolicyDeniedError: the run is busy.
        """
        model = await self._models.find(request.model)
        history = await self._library.history(run)
        with ExitStack() as claim:
            claim.enter_context(self._launches.claim(run, "repair"))
            _require_cause(history, request.wish)
            session = Session(history, self._clock, "repair")
            self._begin(session, claim, partial(self._repair, session, model, request))
        return await self.report(run)

    async def look_after(self, run: str, auto: AutoRepair, resume: Resume) -> None:
        """Repair a run that was just started whenever it fails in a way that a rewrite may repair.

        Raises:
            UsageError: no model is named.
        """
        model = await self._models.find(auto.model)
        session = Session(await self._library.history(run), self._clock, "repair", auto=auto)
        self._begin(session, ExitStack(), None, self._loop(session, model, auto, resume).run)

    async def mend(self, submitted: RunRequest, auto: AutoRepair, resume: Resume) -> str:
        """Make a draft of a script that the checker refuses, have it corrected, launch it; return the run.

        Raises:
            UsageError, StoreError: nothing was begun, nobody was asked.
        """
        model = await self._models.find(auto.model)
        request = AuthorRequest(
            "Correct the script below. Keep what it does.",
            args=submitted.args,
            name=submitted.name,
            limits=submitted.limits,
            draft=submitted.source,
            seed=submitted.seed,
        )
        first = ResumeRequest(faults=submitted.faults, latency=submitted.latency, who="auto-repair")
        with ExitStack() as claim:
            session = await self._draft(request, claim, auto)

            launch = partial(self._loop(session, model, auto, resume).run, first)
            self._begin(session, claim, partial(self._author, session, model, request), launch)
        return session.run

    async def check_model(self, auto: AutoRepair) -> None:
        """Refuse a model that cannot be asked before anything starts.

        Raises:
            UsageError: none is named, or its provider cannot be used.
        """
        await self._models.find(auto.model)

    def session(self, run: str) -> Session | None:
        """Return what a model does for a run, or did last."""
        return self._sessions.get(run)

    def cancel(self, run: str, who: str) -> bool:
        """Ask for no further script of a run; False when none is being written. A call in flight settles."""
        session = self._sessions.get(run)
        if session is None or session.over:
            return False
        session.cancelled_by = who
        return True

    def completed(self, report: RunReport, history: History) -> RunReport:
        """Add to a run's report what a model has done for it."""
        return reports.with_writing(report, history, self._sessions.get(report.run))

    async def report(self, run: str, number: int | None = None) -> WritingReport:
        """Report the latest stretch of writing or repairing of a run, or one candidate of any time on its own.

        Raises:
            UsageError: there was none since the daemon started; there is no such candidate.
        """
        if number is not None:
            history = await self._library.history(run)
            if number not in history.candidates:
                raise UsageError(
                    f"run {run} has no candidate {number}; it has {len(history.candidates)}",
                    hint=f"tally show {run} lists them",
                )
            (one,) = await self._candidates(history, range(number, number + 1))
            return reports.kept_report(history, one)
        session = self._sessions.get(run)
        if session is None:
            raise UsageError(
                f"no model works on the script of run {run}",
                hint=f"tally repair {run} begins; tally show {run} lists earlier candidates",
                code="TS-U003",
            )
        history = await self._library.history(run)
        numbers = range(session.first, len(history.candidates) + 1)
        return reports.writing_report(history, session, await self._candidates(history, numbers))

    async def candidates(self, run: str) -> list[CandidateReport]:
        """List all that was ever asked of models for a run, with scripts and answers."""
        history = await self._library.history(run)
        return list(await self._candidates(history, range(1, len(history.candidates) + 1)))

    async def _candidates(self, history: History, numbers: range) -> tuple[CandidateReport, ...]:
        found = []
        session = self._sessions.get(history.run)
        writing = session is not None and session.writing
        for number in numbers:
            candidate = history.candidates[number]
            judged = candidate.judged
            source = await self._asker.keeper.read(judged.source) if judged is not None else None
            answer = await self._asker.keeper.read(judged.answer) if judged is not None else None
            found.append(reports.candidate_report(candidate, source, answer, writing=writing))
        return tuple(found)

    async def _draft(self, request: AuthorRequest, claim: ExitStack, auto: AutoRepair | None) -> Session:
        """Make a run without a script, and claim it."""
        envelope = envelope_of(request.limits, Envelope())
        check_seed(request.seed)
        canonical_args(request.args)
        now = self._clock.now()
        run = new_run_id(now)
        history = self._library.keep(History(run))
        claim.enter_context(self._launches.claim(run, "author"))
        name = request.name or " ".join(request.request.split())[:NAME_LIMIT]
        created = RunCreated(run=run, at=now, name=name, envelope=envelope, seed=request.seed)
        try:
            await self._journal.append([created], [row_of(history, "draft", now, live=False, created=created)])
        except TallyError:
            self._library.forget(run)
            raise
        return Session(history, self._clock, "author", auto=auto)

    def _begin(
        self,
        session: Session,
        claim: ExitStack,
        written: Callable[[], Awaitable[bool]] | None,
        after: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Hand work to the actor: ``written`` while the run is claimed, then ``after`` if a script was accepted."""

        async def work() -> None:
            try:
                with held:
                    going = written is None or await written()
                if going and after is not None:
                    await after()
            except TallyError as error:
                session.fail(error)
            except Exception as error:
                log.exception("repair_failed", run=session.run)
                session.fail(TallyError(f"tallystick has a fault: {error!r}", hint="tally daemon logs has the details"))
            finally:
                session.end()

        self._actor.tell(Work(work))
        held = claim.pop_all()
        self._sessions.pop(session.run, None)
        self._sessions[session.run] = session
        over = [run for run, one in self._sessions.items() if one.over]
        for run in over[: max(0, len(self._sessions) - KEPT)]:
            del self._sessions[run]

    async def _author(self, session: Session, model: Model, request: AuthorRequest) -> bool:
        """Have the script of a draft written; it becomes revision 0."""
        history = session.history

        def revision(script: Script) -> list[AnyEvent]:
            return [revision_of(history, script, request.args, self._clock.now())]

        envelope = briefs.envelope_of(history)
        task = AuthorTask(request=request.request, envelope=envelope, args=request.args, draft=request.draft)
        order = briefs.author_order(history, model, self._specs, revision)
        attempts = session.left(request.attempts or self._attempts)
        done = await write(session, self._asker, order, partial(author_prompt, task), attempts)
        row = row_of(history, draft_status(history), self._clock.now(), live=False)
        await self._journal.append([], [row])
        return done

    async def _repair(self, session: Session, model: Model, request: RepairRequest) -> bool:
        """Have the script of a run repaired; nothing is started."""
        history = session.history
        await self._launches.settle(history)
        brief = partial(briefs.repair_brief, history, model, self._specs, request)
        task, order = await anyio.to_thread.run_sync(brief)
        session.base = task.script
        attempts = session.left(request.attempts or self._attempts)
        return await write(session, self._asker, order, partial(repair_prompt, task), attempts)

    def _loop(self, session: Session, model: Model, auto: AutoRepair, resume: Resume) -> Unattended:
        async def repair() -> str | None:
            if not await self._repair(session, model, RepairRequest(model=auto.model, attempts=auto.rewrites)):
                return None
            candidates = session.history.candidates
            judged = candidates[len(candidates)].judged
            source: str | None = await self._asker.keeper.read(judged.source if judged is not None else None)
            return source

        return Unattended(session, auto, library=self._library, launches=self._launches, repair=repair, resume=resume)


def authoring_of(
    engine: Engine, settings: AuthoringSettings, *, library: Library, launches: Launches, models: Models, clock: Clock
) -> Authoring:
    """Put the parts together that an engine has."""
    asker = Asker(
        journal=engine.journal,
        keeper=engine.keeper,
        gate=engine.gate.ref,
        settings=settings,
        purse=engine.purse,
        clock=clock,
    )
    return Authoring(
        journal=engine.journal,
        library=library,
        launches=launches,
        asker=asker,
        models=models,
        specs=engine.specs,
        attempts=settings.attempts,
        actor=engine.repairs.ref,
        clock=clock,
    )


def _require_cause(history: History, wish: str) -> None:
    """Refuse to have a script repaired that there is nothing to say against.

    Raises:
        UsageError: the run has no script, or has completed, and nobody says what is to change.
    """
    if not history.revisions:
        raise UsageError(f"run {history.run} has no script to repair", hint="tally author asks for one, in a new run")
    ended = history.launch.ended if history.launch is not None else None
    if not wish.strip() and (history.launch is None or (ended is not None and ended.status == "completed")):
        how = "was never launched" if history.launch is None else "has completed"
        raise UsageError(
            f"run {history.run} {how}: there is no failure to repair; nobody was asked",
            hint="say what is to change: tally repair RUN --wish '...'",
        )
