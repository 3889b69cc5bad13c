"""The state of a run: a fold over its events, and nothing else (contract.md, sections 1 and 6.2).

``History.apply`` takes one event after another and refuses what could not have happened: a record without its
attempt, a second end of an attempt, a decision about one that is not open. Readers get the prefix, the open
attempts and the money from here.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import (
    AnyEvent,
    AttemptDecided,
    AttemptEnded,
    AttemptStarted,
    CallDenied,
    CertificateIssued,
    Committed,
    LaunchEnded,
    LaunchStarted,
    Record,
    RevisionAdded,
    RunCreated,
)
from tallystick.contract.gate import FrozenSite, freeze
from tallystick.contract.identity import Identity, Schemes
from tallystick.contract.positions import SourceMap
from tallystick.contract.source import Span

AttemptState: TypeAlias = Literal["in_flight", "committed", "failed", "unusable", "unresolved", "unknown", "abandoned"]


class Attempt:
    """One attempt and everything that was written about it."""

    __slots__ = ("committed", "decided", "ended", "started")

    def __init__(self, started: AttemptStarted) -> None:
        self.started = started
        self.ended: AttemptEnded | None = None
        self.decided: AttemptDecided | None = None
        self.committed: Record | None = None

    @property
    def state(self) -> AttemptState:
        """The attempt's state. Unknown outcomes are *unresolved* where a second execution would cost."""
        if self.committed is not None:
            return "committed"
        if self.decided is not None and self.decided.decision == "abandon":
            return "abandoned"
        if self.ended is None:
            return "in_flight"
        if self.ended.outcome == "unknown":
            return "unresolved" if self.started.effect == "side_effecting" else "unknown"
        return self.ended.outcome

    @property
    def open(self) -> bool:
        """True while the attempt holds its identity: in flight or unresolved."""
        return self.state in ("in_flight", "unresolved")

    @property
    def cost(self) -> int | None:
        """What it cost in micro-dollars; None when nobody knows. An abandoned attempt counts at its estimate."""
        if self.committed is not None:
            return self.committed.cost
        if self.state == "abandoned":
            known = self.ended.cost if self.ended is not None else None
            return self.started.reserved if known is None else known
        return self.ended.cost if self.ended is not None else None

    @property
    def held(self) -> int:
        """Micro-dollars that the budget must still set aside for it: its reservation while its cost is unknown."""
        return self.started.reserved if self.cost is None else 0


class Launch:
    """One launch and how it ended."""

    __slots__ = ("ended", "started")

    def __init__(self, started: LaunchStarted) -> None:
        self.started = started
        self.ended: LaunchEnded | None = None


class History:
    """A run as its events tell it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.created: RunCreated | None = None
        self.revisions: dict[int, RevisionAdded] = {}
        self.launches: dict[int, Launch] = {}
        self.attempts: dict[int, Attempt] = {}
        self.records: dict[Identity, Record] = {}
        #: Records by what was paid for, (capability, digest), in the order of their commits.
        self.paid: dict[tuple[str, str], list[Record]] = {}
        self.latest_attempt: dict[Identity, Attempt] = {}
        self.executions: Counter[str] = Counter()
        self.certificates: list[CertificateIssued] = []
        self.decisions: Counter[Identity] = Counter()
        self.updated = 0.0
        #: Known cost of the whole run in micro-dollars: committed, failed, unusable and abandoned attempts.
        self.spent = 0
        #: Micro-dollars still set aside for ended attempts whose cost is not known, unresolved ones included.
        self.held = 0
        #: Micro-dollars reserved for attempts that have not ended.
        self.held_in_flight = 0
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
            case AttemptEnded(attempt=number):
                attempt = self._attempt(number)
                self._require(attempt.ended is None and attempt.committed is None, f"attempt {number} ends twice")
                self._count(attempt, -1)
                attempt.ended = event
                self._count(attempt, 1)
            case AttemptDecided(attempt=number):
                self._decide(event, self._attempt(number))
            case CallDenied():
                pass
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
            case LaunchEnded(launch=number):
                launch = self.launches.get(number)
                if launch is None or launch.ended is not None:
                    raise self._corrupt(f"launch {number} ends without having started, or twice")
                launch.ended = event
        self.updated = event.at

    def _start_attempt(self, event: AttemptStarted) -> None:
        self._require(event.attempt not in self.attempts, f"attempt {event.attempt} starts twice")
        self._require(event.identity not in self.records, f"attempt {event.attempt} is for a committed identity")
        before = self.latest_attempt.get(event.identity)
        self._require(before is None or not before.open, f"attempt {event.attempt} is for an identity that is held")
        attempt = Attempt(event)
        self.attempts[event.attempt] = attempt
        self.latest_attempt[event.identity] = attempt
        self.executions[event.capability] += 1
        self._count(attempt, 1)

    def _commit(self, record: Record) -> None:
        attempt = self._attempt(record.attempt)
        started = attempt.started
        self._require(record.identity not in self.records, f"{record.identity} has two records")
        same = (started.identity, started.capability, started.digest, started.take)
        self._require(
            same == (record.identity, record.capability, record.digest, record.take),
            f"the record of {record.identity} is not what attempt {record.attempt} asked for",
        )
        self._count(attempt, -1)
        attempt.committed = record
        self._count(attempt, 1)
        self.records[record.identity] = record
        self.paid.setdefault((record.capability, record.digest), []).append(record)

    def _decide(self, event: AttemptDecided, attempt: Attempt) -> None:
        self._require(
            attempt.state in ("unresolved", "unusable"), f"attempt {event.attempt} was decided while {attempt.state}"
        )
        self._count(attempt, -1)
        attempt.decided = event
        self._count(attempt, 1)
        self.decisions[attempt.started.identity] += 1

    def _count(self, attempt: Attempt, sign: int) -> None:
        """Keep the sums right while an attempt changes: taken out before, put back after."""
        self.spent += sign * (attempt.cost or 0)
        if attempt.state == "in_flight":
            self.held_in_flight += sign * attempt.held
        else:
            self.held += sign * attempt.held
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
        """The revision of the latest launch, which is not the newest one after a return to an older script."""
        return self.revisions[self.launches[len(self.launches)].started.revision]

    @property
    def unresolved(self) -> list[Attempt]:
        """Side-effecting attempts whose outcome nobody knows, oldest first."""
        return [attempt for attempt in self.attempts.values() if attempt.state == "unresolved"]

    @property
    def in_flight(self) -> list[Attempt]:
        """Attempts without an end: really in flight while their daemon lives, cut off by a crash otherwise."""
        return [attempt for attempt in self.attempts.values() if attempt.state == "in_flight"]

    def orphans(self, invoked: Iterable[Identity]) -> tuple[Identity, ...]:
        """Return the committed identities that a launch did not invoke (contract.md, section 7)."""
        skipped = self.records.keys() - set(invoked)
        return tuple(sorted(skipped, key=lambda identity: identity.sort_key))

    def check_schemes(self) -> None:
        """Refuse records of a scheme this build does not know: they are never re-paid (contract.md, section 2).

        Raises:
            StoreCorruptError: naming the record and its schemes.
        """
        for record in self.records.values():
            if record.schemes != Schemes():
                raise StoreCorruptError(
                    f"the record of {record.identity} was written under the schemes {record.schemes}, which this "
                    f"build does not know",
                    hint="resume this run with the release that wrote it, or a newer one",
                )

    def frozen_sites(self) -> dict[str, FrozenSite]:
        """Return the sites that a rewrite must keep: those with a record, and those that are held.

        A site with an open or unusable side-effecting attempt is held (contract.md, section 6.2).

        Raises:
            PrefixConflictError: two records or attempts of one site disagree on capability or fingerprint.
        """
        found: dict[tuple[str, str, str, int, bool], FrozenSite] = {}
        for attempt in self.attempts.values():
            started = attempt.started
            held = started.effect == "side_effecting" and attempt.state in ("in_flight", "unresolved", "unusable")
            if not held and attempt.committed is None:
                continue
            site = started.identity.site
            key = (site, started.capability, started.fingerprint, started.revision, held)
            if key not in found:
                span, text = self._source_of(started.revision, site)
                found[key] = FrozenSite(site, "call", started.capability, started.fingerprint, held, span, text)
        return freeze(found.values())

    def _source_of(self, revision: int, site: str) -> tuple[Span, str]:
        source = self.revisions[revision]
        for fact in source.sites:
            if fact.site == site:
                return fact.span, SourceMap.of(source.source).text(fact.span)
        raise self._corrupt(f"revision {revision} has an attempt at {site}, which is not one of its sites")
