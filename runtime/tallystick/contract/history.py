"""The state of a run: a fold over its events, and nothing else (contract.md, sections 1 and 6.2).

``History.apply`` takes one event after another and refuses what could not have happened: a record without its
attempt, a second end of an attempt, a decision about one that is not open. Readers get the prefix, the open
attempts and the money from here.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from tallystick.contract.approvals import Approvals
from tallystick.contract.attempts import Attempt
from tallystick.contract.candidates import Candidate
from tallystick.contract.errors import StoreCorruptError, UsageError
from tallystick.contract.events import (
    AnyEvent,
    ApprovalAsked,
    ApprovalDecided,
    AttemptAnswered,
    AttemptDecided,
    AttemptEnded,
    AttemptFound,
    AttemptPriced,
    AttemptStarted,
    AttemptSubmitted,
    BudgetChanged,
    CallDenied,
    CandidateAsked,
    CandidateJudged,
    CertificateIssued,
    Committed,
    FailureRetried,
    LaunchEnded,
    LaunchStarted,
    RaceDecided,
    Record,
    RevisionAdded,
    RunCreated,
    SandboxChanged,
    SiteRetired,
)
from tallystick.contract.identity import Identity
from tallystick.contract.tokens import tokens_of


class Launch:
    """One launch: its limits as they stand, the image that it ran in, and how it ended."""

    __slots__ = ("ended", "envelope", "image", "started")

    def __init__(self, started: LaunchStarted) -> None:
        self.started = started
        self.envelope = started.envelope
        self.image = started.image
        self.ended: LaunchEnded | None = None


class History:
    """A run as its events tell it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.created: RunCreated | None = None
        self.revisions: dict[int, RevisionAdded] = {}
        self.launches: dict[int, Launch] = {}
        #: The driver, and the image, that the run is known to run in.
        self.sandbox: tuple[str, str] | None = None
        self.attempts: dict[int, Attempt] = {}
        self.records: dict[Identity, Record] = {}
        #: Attempts by what they asked for, (capability, digest), in their order.
        self.asked: dict[tuple[str, str], list[Attempt]] = {}
        self.latest_attempt: dict[Identity, Attempt] = {}
        self.races: dict[Identity, RaceDecided] = {}
        self.retired: set[str] = set()
        self.denials: list[CallDenied] = []
        self.approvals = Approvals()
        #: The scripts that a model was asked for, by their numbers from 1.
        self.candidates: dict[int, Candidate] = {}
        self.executions: Counter[str] = Counter()
        self.certificates: list[CertificateIssued] = []
        self.decisions: Counter[Identity] = Counter()
        self.updated = 0.0
        #: Known cost of the whole run in micro-dollars: committed, failed, unusable and abandoned attempts, and models.
        self.spent = 0
        #: Micro-dollars still set aside for ended attempts whose cost is not known, unresolved ones included.
        self.held = 0
        #: Micro-dollars reserved for attempts that have not ended.
        self.held_in_flight = 0
        #: Tokens that ended attempts and models are known to have used, and what is set aside for the other attempts.
        self.tokens = 0
        self.tokens_held = 0
        #: How many ended attempts came without a cost.
        self.unpriced = 0

    @classmethod
    def fold(cls, run: str, events: Iterable[AnyEvent]) -> "History":
        """Build a history from all events of a run, in order.

        Raises:
            StoreCorruptError: the events contradict one another.
        """
        history = cls(run)
        for event in events:
            history.apply(event)
        return history

    def apply(self, event: AnyEvent) -> None:
        """Take the next event.

        Raises:
            StoreCorruptError: it contradicts what was written before.
        """
        match event:
            case AttemptStarted():
                self._start_attempt(event)
            case Committed(record=record):
                self._commit(record)
            case AttemptSubmitted() | AttemptAnswered() | AttemptEnded() | AttemptFound() | AttemptPriced():
                self._tell(event, self._attempt(event.attempt))
            case AttemptDecided(attempt=number):
                self._decide(event, self._attempt(number))
            case RaceDecided(identity=identity):
                self._require(identity not in self.races, f"{identity} has two winners")
                self.races[identity] = event
            case FailureRetried(attempt=number):
                self._retry(event, self._attempt(number))
            case SiteRetired(site=site):
                self.retired.add(site)
            case CandidateAsked() | CandidateJudged():
                self._take_candidate(event)
            case CallDenied():
                self.denials.append(event)
            case ApprovalAsked() | ApprovalDecided():
                self.approvals.apply(event)
            case CertificateIssued():
                self.certificates.append(event)
            case RunCreated():
                self._require(self.created is None, "the run is created twice")
                self.created = event
            case RevisionAdded():
                self._require(event.revision == len(self.revisions), f"revision {event.revision} is out of order")
                self.revisions[event.revision] = event
            case LaunchStarted():
                self._require(event.launch == len(self.launches) + 1, f"launch {event.launch} is out of order")
                self.launches[event.launch] = Launch(event)
                self.sandbox = self.sandbox or (event.driver, event.image)
            case SandboxChanged():
                self._started(event.launch).image = event.image
                self.sandbox = (event.driver, event.image)
            case BudgetChanged():
                launch = self._started(event.launch)
                launch.envelope = msgspec.structs.replace(launch.envelope, budget=event.budget)
            case LaunchEnded(launch=number):
                launch = self._started(number)
                self._require(launch.ended is None, f"launch {number} ends twice")
                launch.ended = event
        self.updated = event.at

    def _started(self, number: int) -> Launch:
        launch = self.launches.get(number)
        if launch is None:
            raise self._corrupt(f"launch {number} goes on or ends without having started")
        return launch

    def _start_attempt(self, event: AttemptStarted) -> None:
        self._require(event.attempt not in self.attempts, f"attempt {event.attempt} starts twice")
        self._require(event.identity not in self.records, f"attempt {event.attempt} is for a committed identity")
        before = self.latest_attempt.get(event.identity)
        self._require(
            before is None or not before.open or _sends_again(event, before),
            f"attempt {event.attempt} is for an identity that is held",
        )
        if event.resends is not None:
            self._resend(event, before)
        attempt = Attempt(event)
        self.attempts[event.attempt] = attempt
        self.latest_attempt[event.identity] = attempt
        self.approvals.use(event)
        self.executions[event.capability] += 1
        self.asked.setdefault((event.capability, event.digest), []).append(attempt)
        self._count(attempt, 1)
        for number in event.survived:
            self._attempt(number).survived = True

    def _take_candidate(self, event: CandidateAsked | CandidateJudged) -> None:
        number = event.candidate
        if isinstance(event, CandidateAsked):
            self._require(number == len(self.candidates) + 1, f"candidate {number} is out of order")
            self.candidates[number] = Candidate(event)
            self.held_in_flight += event.reserved
            return
        candidate = self.candidates.get(number)
        if candidate is None or candidate.judged is not None:
            raise self._corrupt(f"candidate {number} is judged without having been asked for, or twice")
        candidate.judged = event
        self.held_in_flight -= candidate.asked.reserved
        self.spent += candidate.cost or 0
        self.tokens += tokens_of(event.usage) or 0
        self.held += candidate.held
        self.unpriced += candidate.cost is None

    def _resend(self, event: AttemptStarted, before: Attempt | None) -> None:
        if before is None or not _sends_again(event, before):
            raise self._corrupt(f"attempt {event.attempt} sends attempt {event.resends} again, which is another call")
        self._count(before, -1)
        before.resent = True
        self._count(before, 1)

    def _tell(
        self,
        event: AttemptSubmitted | AttemptAnswered | AttemptEnded | AttemptFound | AttemptPriced,
        attempt: Attempt,
    ) -> None:
        """Take what became known of an attempt."""
        number = event.attempt
        self._count(attempt, -1)
        match event:
            case AttemptSubmitted(job=job):
                attempt.submitted = job
            case AttemptAnswered():
                attempt.answered = event
            case AttemptEnded():
                self._require(attempt.ended is None and attempt.committed is None, f"attempt {number} ends twice")
                attempt.ended = event
            case AttemptFound():
                self._require(
                    attempt.state in ("unresolved", "unknown"), f"attempt {number} was looked up while {attempt.state}"
                )
                # The record that comes with it says the rest.
                attempt.found = event if event.outcome != "committed" else None
            case AttemptPriced():
                self._require(attempt.is_unpriced, f"attempt {number} was given a price and has one")
                attempt.priced = event
        self._count(attempt, 1)

    def _commit(self, record: Record) -> None:
        attempt = self._attempt(record.attempt)
        started = attempt.started
        self._require(record.identity not in self.records, f"{record.identity} has two records")
        over = attempt.state in ("failed", "abandoned", "resent")
        self._require(not over, f"attempt {record.attempt} has a record and is {attempt.state}")
        same = (started.identity, started.capability, started.digest, started.take)
        self._require(
            same == (record.identity, record.capability, record.digest, record.take),
            f"the record of {record.identity} is not what attempt {record.attempt} asked for",
        )
        self._count(attempt, -1)
        attempt.committed = record
        self._count(attempt, 1)
        self.records[record.identity] = record

    def _decide(self, event: AttemptDecided, attempt: Attempt) -> None:
        self._require(
            attempt.state in ("unresolved", "unusable"), f"attempt {event.attempt} was decided while {attempt.state}"
        )
        self._count(attempt, -1)
        attempt.decided = event
        self._count(attempt, 1)
        self.decisions[attempt.started.identity] += 1

    def _retry(self, event: FailureRetried, attempt: Attempt) -> None:
        self._require(attempt.survived, f"attempt {event.attempt} is retried, which no later call had seen failing")
        attempt.survived = False
        self.decisions[attempt.started.identity] += 1

    def _count(self, attempt: Attempt, sign: int) -> None:
        """Keep the sums right while an attempt changes: taken out before, put back after."""
        self.spent += sign * (attempt.cost or 0)
        self.tokens += sign * (attempt.tokens or 0)
        if attempt.state == "in_flight":
            self.held_in_flight += sign * attempt.held
        else:
            self.held += sign * attempt.held
            self.tokens_held += sign * attempt.held_tokens
            self.unpriced += sign * (attempt.cost is None)

    def _attempt(self, number: int) -> Attempt:
        try:
            return self.attempts[number]
        except KeyError:
            raise self._corrupt(f"attempt {number} is not in the journal") from None

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise self._corrupt(what)

    def _corrupt(self, what: str) -> StoreCorruptError:
        return StoreCorruptError(
            f"the journal of run {self.run} contradicts itself: {what}",
            hint="nothing was dispatched; keep the state directory as it is and run tally doctor",
        )

    # What readers ask for.

    @property
    def launch(self) -> Launch | None:
        """The latest launch."""
        return self.launches[len(self.launches)] if self.launches else None

    @property
    def revision(self) -> RevisionAdded:
        """The revision of the latest launch, which is not the newest one after a return to an older script.

        Of a draft, which was never launched, the newest one.

        Raises:
            UsageError: the run has none: a model was to write it.
        """
        if not self.revisions:
            raise UsageError(f"run {self.run} has no script yet", hint="resume it with one, or see tally author")
        return self.revisions[self.launch.started.revision if self.launch is not None else len(self.revisions) - 1]

    @property
    def unresolved(self) -> list[Attempt]:
        """Side-effecting attempts whose outcome nobody knows, oldest first."""
        return [attempt for attempt in self.attempts.values() if attempt.state == "unresolved"]

    @property
    def in_flight(self) -> list[Attempt]:
        """Attempts without an end: really in flight while their daemon lives, cut off by a crash otherwise."""
        return [attempt for attempt in self.attempts.values() if attempt.state == "in_flight"]


def _sends_again(event: AttemptStarted, before: Attempt) -> bool:
    """Whether an attempt is the call of an unresolved one once more, under the same key."""
    known = before.started
    return before.state == "unresolved" and (event.resends, event.effect_key) == (known.attempt, known.effect_key)
