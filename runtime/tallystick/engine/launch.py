"""One launch between its guest and the broker, as a pure state machine (contract.md, section 6).

Frames and settlements go in, steps come out; the run actor does what the steps say. The host is the wall: the
table of sites, its own count of occurrences, the digest and the limits are checked here, whatever the guest says.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import CapabilitySpec, Envelope, FailureKind
from tallystick.contract.events import RevisionAdded
from tallystick.contract.history import History
from tallystick.contract.identity import Identity, Path
from tallystick.contract.payload import PayloadError, digest
from tallystick.contract.plan import gravity
from tallystick.contract.prefix import orphans
from tallystick.contract.runtime_rule import (
    Allowance,
    CallRequest,
    Execute,
    Invalid,
    Replay,
    ReplayFailure,
    Stop,
    Terms,
    Wait,
    awaits_approval,
    decide,
    race_divergence,
)
from tallystick.engine.ending import Ending, breach, ending_of, exit_stop, is_denial
from tallystick.engine.race_book import RaceBook
from tallystick.engine.steps import (
    CommittedCall,
    Decide,
    Dispatch,
    DroppedCall,
    Fail,
    FailedCall,
    Finished,
    Halt,
    Hold,
    Note,
    Serve,
    Settlement,
    Step,
    StoppedCall,
    WriteWinner,
)
from tallystick.sandbox.frames import WINDOW, Call, Crash, Done, Log, Race, Ready, Synced, ToHost, Won
from tallystick.sandbox.protocol import Exit

LOG_LIMIT = 256 << 10
WARNING_LIMIT = 1_000


class Launch:
    """The state of one launch. ``validate(capability, payload)`` returns what the catalogue says against a payload."""

    def __init__(
        self,
        *,
        number: int,
        revision: RevisionAdded,
        envelope: Envelope,
        allowance: Allowance,
        history: History,
        specs: Mapping[str, CapabilitySpec],
        validate: Callable[[str, Any], str | None],
    ) -> None:
        self.number = number
        self.revision = revision
        self.envelope = envelope
        self.stop: Stop | None = None
        self.invoked: set[Identity] = set()
        self.counts: Counter[str] = Counter()
        #: What replayed calls had cost when they were paid, and how many of them had come without a price.
        self.saved = 0
        self.saved_unpriced = 0
        self.warnings: list[str] = []
        self.pending: dict[int, CallRequest] = {}
        #: Calls that are left unanswered until a person has approved of them, and what they may cost.
        self.held: dict[int, tuple[CallRequest, int]] = {}
        self._terms = Terms(number, envelope, allowance)
        self._history = history
        self._specs = specs
        self._validate = validate
        self._sites = {fact.site: fact for fact in revision.sites}
        self._races = RaceBook(self._sites)
        self._failed: dict[int, int] = {}
        self._next: Counter[tuple[str, Path]] = Counter()
        self._busy: set[tuple[str, Path]] = set()
        self._last_id = 0
        self._probes = 0
        self._probing = False
        self._stirred = False
        self._site_calls: Counter[str] = Counter()
        self._logs: list[str] = []
        self._log_size = 0
        self._end: Done | Crash | None = None

    @property
    def accepts_work(self) -> bool:
        """False once the launch is stopped or its guest has ended: nothing new may start."""
        return self.stop is None and self._end is None

    def capability_at(self, site: str) -> str:
        """Return the capability that the script calls at a site, "" where it has none."""
        fact = self._sites.get(site)
        return fact.capability if fact is not None else ""

    @property
    def logs(self) -> str:
        """What the script printed, up to the limit."""
        return "\n".join(self._logs)

    @property
    def finished(self) -> bool:
        """True when the guest has said its last word."""
        return self._end is not None

    def on_frame(self, frame: ToHost) -> Step | None:
        """Take one frame of the guest."""
        self._stirred = self._stirred or not isinstance(frame, Log | Synced)
        if self._end is not None:
            return self.breach(f"a {type(frame).__name__} frame after the guest's last word")
        match frame:
            case Call():
                return self._on_call(frame) if self.stop is None else None
            case Race():
                return self._on_race(frame) if self.stop is None else None
            case Won():
                return self._on_won(frame) if self.stop is None else None
            case Log(text=text):
                return self._log(text)
            case Done() | Crash():
                waiting = sum(not self._races.is_lost(request.identity.path) for request in self.unanswered)
                if waiting or self._races.unwritten:
                    return self.breach(f"a {type(frame).__name__} frame with {waiting} calls in flight")
                self._end = frame
                return Finished()
            case Synced(id=probe) if self._probing and probe == self._probes:
                self._probing = False
                return self._on_idle()
            case Ready() | Synced():
                return self.breach(f"a {type(frame).__name__} frame, which nobody had asked for")

    def _on_call(self, frame: Call) -> Step | None:
        identity = Identity(frame.site, frame.path, frame.occurrence)
        wrong = self._protocol_fault(frame, identity)
        if wrong is not None:
            return self.breach(wrong)
        self._last_id = frame.id
        self._next[frame.site, frame.path] += 1
        self._busy.add((frame.site, frame.path))
        self.invoked.add(identity)
        try:
            payload_digest = digest(frame.payload)
        except PayloadError as error:
            return self._fail(frame.id, identity, frame.capability, "invalid_request", str(error))
        request = CallRequest(
            identity,
            frame.capability,
            self._sites[frame.site].fingerprint,
            frame.payload,
            payload_digest,
            frame.take,
        )
        return self._decide(frame, request)

    def _on_race(self, frame: Race) -> Step:
        identity = Identity(frame.site, frame.path, frame.occurrence)
        wrong = self._protocol_fault(frame, identity)
        if wrong is not None:
            return self.breach(wrong)
        self._last_id = frame.id
        self._next[frame.site, frame.path] += 1
        decided = self._history.races.get(identity)
        if decided is not None and decided.width != frame.width:
            return self.halt(race_divergence(identity, decided.width, frame.width))
        self._races.open(frame, decided.winner if decided is not None else None)
        return Decide(frame.id, decided.winner if decided is not None else None)

    def _on_won(self, frame: Won) -> Step:
        won = self._races.won(frame)
        if won is None:
            return self.breach(f"a winner of race {frame.id}, which has none to give")
        identity, fingerprint, width = won
        return WriteWinner(frame.id, identity, fingerprint, width, frame.winner)

    def on_written(self, race: int) -> Step:
        """Take that the winner of a race is durable: the guest may go on."""
        return Decide(race, self._races.written(race))

    def wants(self, call: int) -> bool:
        """Whether anybody waits for a call: not one in a branch that has lost its race."""
        request = self.pending.get(call)
        return request is not None and not self._races.is_lost(request.identity.path)

    def _decide(self, frame: Call, request: CallRequest) -> Step:
        call, identity = frame.id, request.identity
        decision = decide(
            request,
            history=self._history,
            terms=self._terms,
            spec=self._specs.get(request.capability),
            invalid=self._validate(request.capability, request.payload),
            new_calls=self._site_calls.total(),
            site_calls=self._site_calls[identity.site],
        )
        match decision:
            case Replay(record=record):
                self.counts["replayed"] += 1
                self._save(self._history.attempts[record.attempt])
                self._busy.discard((identity.site, identity.path))
                return Serve(call, record, replayed=True)
            case ReplayFailure(kind=kind, text=text):
                self.counts["replayed"] += 1
                self._save(self._history.latest_attempt[identity])
                self._busy.discard((identity.site, identity.path))
                return Fail(call, identity, request.capability, kind, text, replayed=True)
            case Stop():
                self.counts["denied"] += is_denial(decision)
                return self.halt(decision)
            case Invalid(text=text):
                self.counts["failed"] += 1
                return self._fail(call, identity, request.capability, "invalid_request", text)
            case Wait(estimate=estimate):
                self.held[call] = (request, estimate)
                return Hold(call, request, estimate)
            case Execute(warning=warning):
                self._site_calls[identity.site] += 1
                if warning is not None:
                    self._warn(warning)
                self.pending[call] = request
                return Dispatch(call, request, decision, self._survived(frame.seen))

    def _save(self, paid: Attempt) -> None:
        self.saved += paid.cost or 0
        self.saved_unpriced += paid.cost is None

    @property
    def unanswered(self) -> list[CallRequest]:
        """The calls that the guest waits for: in flight, or held."""
        return [*self.pending.values(), *(request for request, _ in self.held.values())]

    @property
    def waiting(self) -> list[tuple[CallRequest, int]]:
        """The calls that wait for a person, with what each may cost; those of branches that lost a race do not."""
        return [one for one in self.held.values() if not self._races.is_lost(one[0].identity.path)]

    def probe(self) -> int | None:
        """Return the number of a question to the guest whether all that is left of it waits; None to ask nothing.

        It is to be sent after every answer that stands by then.
        """
        settled = not self.pending and not self._races.unwritten
        if self._probing or not self.accepts_work or not settled or not self.waiting:
            return None
        self._probing, self._stirred = True, False
        self._probes += 1
        return self._probes

    def _on_idle(self) -> Halt | None:
        """Every branch has come to its end, or to a call that waits for an answer: for a person, if for none other."""
        if self.stop is not None or self._stirred or self.pending or not self.waiting:
            return None
        return self.halt(awaits_approval([request for request, _ in self.waiting]))

    def _survived(self, seen: tuple[int, ...]) -> tuple[int, ...]:
        """Return the failed attempts that a branch has seen and no durable attempt has marked (contract.md, 6.3).

        What an attempt under way would mark counts for nothing: it may not come to be sent.
        """
        attempts = {self._failed[call] for call in seen if call in self._failed}
        return tuple(sorted(number for number in attempts if not self._history.attempts[number].survived))

    def on_settled(self, call: int, settlement: Settlement) -> Step | None:
        """Take the broker's last word on a dispatched call."""
        request = self.pending.pop(call)
        self._busy.discard((request.identity.site, request.identity.path))
        match settlement:
            case CommittedCall(record=record):
                self.counts["executed"] += 1
                self.invoked.add(record.identity)
                return Serve(call, record, replayed=False)
            case FailedCall(kind=kind, text=text, attempt=attempt):
                self.counts["failed"] += 1
                if attempt is not None:
                    self._failed[call] = attempt
                return self._fail(call, request.identity, request.capability, kind, text)
            case StoppedCall(stop=stop, unresolved=unresolved):
                self.counts["unresolved"] += unresolved
                if self._races.is_lost(request.identity.path):
                    self._warn(f"{request.identity}, in a branch that lost its race: {stop.message}")
                    return None
                self.counts["denied"] += is_denial(stop)
                return self.halt(stop)
            case DroppedCall():
                self.invoked.discard(request.identity)
                return None

    def halt(self, stop: Stop) -> Halt:
        """Stop the launch; of several stops the gravest stays."""
        if self.stop is None or gravity(stop) < gravity(self.stop):
            self.stop = stop
        return Halt(stop)

    def _warn(self, text: str) -> None:
        if len(self.warnings) < WARNING_LIMIT:
            self.warnings.append(text)

    def _fail(self, call: int, identity: Identity, capability: str, kind: FailureKind, text: str) -> Fail:
        self._busy.discard((identity.site, identity.path))
        return Fail(call, identity, capability, kind, text)

    def _protocol_fault(self, frame: Call | Race, identity: Identity) -> str | None:
        fact = self._sites.get(frame.site)
        expected = self._next[frame.site, frame.path]
        called = frame.capability if isinstance(frame, Call) else ""
        if fact is None or (fact.kind == "race") != isinstance(frame, Race):
            return f"a {type(frame).__name__} at {frame.site!r}, which is no such site of this script"
        if fact.capability != called:
            return f"{called!r} called at {frame.site}, where the script calls {fact.capability!r}"
        if not self._races.has_begun(frame.path):
            return f"{identity} in a branch of a race that has not begun"
        if self._races.is_lost(frame.path):
            return f"{identity} in a branch that has lost its race"
        if frame.id != self._last_id + 1:
            return f"call id {frame.id} after {self._last_id}"
        if (frame.site, frame.path) in self._busy:
            return f"{identity} while another call at this site and path is in flight: their order would be chance"
        if frame.occurrence != expected:
            return f"{identity}, where the host counts occurrence {expected}"
        if len(self.pending) + len(self.held) >= WINDOW:
            return f"more than {WINDOW} calls in flight"
        return None

    def breach(self, what: str) -> Halt:
        """End a launch whose guest broke the protocol."""
        return self.halt(breach(what))

    def on_exit(self, exit_: Exit) -> None:
        """Take how the guest went; it may be the reason that the launch ends."""
        stop = exit_stop(exit_, self._end) if self.stop is None else None
        if stop is not None:
            self.halt(stop)

    def _log(self, text: str) -> Note | None:
        room = LOG_LIMIT - self._log_size
        if room <= 0:
            return None
        self._logs.append(text[:room])
        self._log_size += len(text[:room]) + 1
        return Note(text[:room])

    def ending(self) -> Ending:
        """Say what the launch ended in; called when the guest is gone and nothing is pending."""
        skipped = orphans(self._history, self.invoked, self._races.invoked)
        return ending_of(self.stop, self._end, skipped, self.envelope.orphan_policy)
