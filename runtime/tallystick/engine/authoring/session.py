"""One stretch of writing or repairing: the bounded loop of model calls, and what those who watch are told of it."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from tallystick.contract.authoring.acceptance import findings
from tallystick.contract.authoring.prompt import Rejected
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.errors import NoCandidateError, TallyError
from tallystick.contract.events import CandidateJudged, ErrorInfo, RunStatus
from tallystick.contract.history import History
from tallystick.engine.authoring.asking import Asker, Order, judgement_of
from tallystick.engine.authoring.choices import AutoRepair
from tallystick.engine.authoring.messages import WritingState
from tallystick.engine.feed import Feed
from tallystick.engine.live_run import spend_of
from tallystick.engine.messages import Progress, ProgressKind
from tallystick.kernel import Clock

Purpose: TypeAlias = Literal["author", "repair"]

MODEL_FAILED = "TS-M002"


class Session:
    """What is known of a run while a model works on its script, and until the next time.

    ``first`` is the number of the first candidate of this stretch. ``auto`` is set where nobody is asked between
    repairs and launches; ``rewrites`` counts the model calls of such a session.
    """

    def __init__(self, history: History, clock: Clock, purpose: Purpose, *, auto: AutoRepair | None = None) -> None:
        self.history = history
        self.purpose: Purpose = purpose
        self.first = len(history.candidates) + 1
        self.auto = auto
        self.rewrites = 0
        self.feed = Feed()
        self.state: WritingState = "writing"
        self.writing = False
        self.over = False
        self.error: ErrorInfo | None = None
        self.base = ""
        self.model = ""
        self.cancelled_by: str | None = None
        self._clock = clock

    def line(self, kind: ProgressKind, text: str = "", cost: int | None = None) -> Progress:
        """Return a line of the stream."""
        return Progress(
            kind=kind,
            at=self._clock.now(),
            text=text,
            cost_usd=None if cost is None else cost / MICROS_PER_USD,
            spend=spend_of(self.history, 0),
        )

    def tell(self, kind: ProgressKind, text: str = "", cost: int | None = None) -> None:
        """Tell everyone who watches."""
        self.feed.publish(self.line(kind, text, cost))

    @property
    def run(self) -> str:
        """The run's id."""
        return self.history.run

    @property
    def status(self) -> RunStatus:
        """How the run stands by its journal."""
        launch = self.history.launch
        if launch is None:
            return draft_status(self.history)
        return launch.ended.status if launch.ended is not None else "interrupted"

    def left(self, wanted: int) -> int:
        """Return how many candidates may still be asked for, of those that are wanted."""
        return wanted if self.auto is None else self.auto.rewrites - self.rewrites

    def fail(self, error: TallyError) -> None:
        """Take note of what ended it."""
        self.error = ErrorInfo(error.code, error.message, error.hint)

    def end(self) -> None:
        """Tell that there is no more to come."""
        self.over = True
        if self.state == "writing":
            self.state = "given_up"
        self.tell("ended", self.status)
        self.feed.close()


def draft_status(history: History) -> RunStatus:
    """Return the status of a run that was never launched: a draft once it has a script."""
    return "draft" if history.revisions else "failed"


async def write(
    session: Session, asker: Asker, order: Order, prompt: Callable[[Rejected | None], str], attempts: int
) -> bool:
    """Ask for candidates until one is accepted, at most so often; whether one was. The session says why none was.

    Each is told what was wrong with the one before.
    """
    session.writing, session.state, session.model = True, "writing", order.model.asked
    try:
        await _ask_on(session, asker, order, prompt, attempts)
    except TallyError as error:
        session.state = "given_up"
        session.fail(error)
        return False
    finally:
        session.writing = False
    session.state, session.error = "accepted", None
    return True


async def _ask_on(
    session: Session, asker: Asker, order: Order, prompt: Callable[[Rejected | None], str], attempts: int
) -> None:
    rejected: Rejected | None = None
    asked_of = order.model.asked
    for attempt in range(1, attempts + 1):
        if session.cancelled_by is not None:
            raise NoCandidateError(
                f"the repair was cancelled by {session.cancelled_by}; the answers so far are kept",
                hint=f"tally repair {session.run} begins again",
            )
        session.tell("asked", f"{asked_of} is asked for a script, {attempt} of at most {attempts}")
        candidate = await asker.ask(session.history, order, prompt(rejected))
        session.rewrites += 1
        judged = candidate.judged
        assert judged is not None
        if judged.outcome == "accepted":
            session.tell("accepted", f"candidate {judged.candidate} {judged.text}".rstrip(), judged.cost)
            return
        why = _why(judged)
        headline, _, _ = why[0].partition("\n")
        session.tell("rejected", f"candidate {judged.candidate}: {headline}", judged.cost)
        if judged.outcome in ("failed", "unknown"):
            raise NoCandidateError(
                f"{asked_of} gave no script: {judged.text}. The run stands as it stood",
                hint=_ADVICE[judged.outcome],
                code=MODEL_FAILED,
            )
        rejected = Rejected(await asker.keeper.read(judged.source), why)
    raise NoCandidateError(
        f"{asked_of} was asked {attempts} time(s), and no script of it was accepted; nothing was started, and what is "
        "committed is kept",
        hint=f"tally show {session.run} lists the candidates and why each was refused; ask again with more "
        "--attempts or another --model, or repair it by hand",
    )


_ADVICE = {
    "failed": "see what it said: a key, a model's name, an address; nothing was billed as far as it said",
    "unknown": "it may have been billed: its reservation stays set aside in the budget of the run; ask again",
}


def _why(judged: CandidateJudged) -> tuple[str, ...]:
    return findings(judgement_of(judged)) if judged.outcome == "rejected" else (judged.text,)
