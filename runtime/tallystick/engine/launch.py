"""One launch between its guest and the broker, as a pure state machine (contract.md, section 6).

Frames and settlements go in, steps come out; the run actor does what the steps say. The host is the wall: the
table of sites, its own count of occurrences, the digest and the limits are checked here, whatever the guest says.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from tallystick.contract.capability import CapabilitySpec, Envelope, FailureKind
from tallystick.contract.events import ErrorInfo, Record, RevisionAdded, RunStatus
from tallystick.contract.history import History
from tallystick.contract.identity import Identity, Path
from tallystick.contract.payload import PayloadError, canonical, digest
from tallystick.contract.runtime_rule import (
    Allowance,
    CallRequest,
    Execute,
    Invalid,
    Replay,
    ReplayFailure,
    Stop,
    decide,
)
from tallystick.sandbox.frames import MAX_RESULT, WINDOW, Call, Crash, Done, Log, Ready, ToHost
from tallystick.sandbox.protocol import Exit

LOG_LIMIT = 256 << 10
WARNING_LIMIT = 1_000

SCRIPT_FAILED = "TS-R001"
CALL_FAILED = "TS-R002"
ORPHANED = "TS-R003"
BREACH = "TS-R004"
GUEST_LIMIT = "TS-R005"
BAD_RESULT = "TS-R006"
NO_SANDBOX = "TS-R007"
TOO_LARGE = "TS-R008"
CANCELLED = "TS-R009"
TOO_LONG = "TS-P007"
INTERRUPTED = "TS-N003"
STOPPING = "TS-N006"

#: The gravest stop is the run's reason: divergence, then unresolved, then denial, then the rest.
_GRAVITY = ("TS-D", "TS-A", "TS-P", "TS-S", "TS-R", "TS-N")
_STATUS: dict[str, RunStatus] = {CANCELLED: "cancelled", INTERRUPTED: "interrupted", STOPPING: "interrupted"}


class Serve(msgspec.Struct, frozen=True):
    """Reply to a call with the result of a record."""

    call: int
    record: Record
    replayed: bool


class Fail(msgspec.Struct, frozen=True):
    """Reply to a call with a failure that the script may catch."""

    call: int
    identity: Identity
    capability: str
    kind: FailureKind
    text: str


class Dispatch(msgspec.Struct, frozen=True):
    """Hand new work to the capability's actor."""

    call: int
    request: CallRequest
    execute: Execute


class Halt(msgspec.Struct, frozen=True):
    """End the guest: the launch is stopped, and what is in flight settles."""

    stop: Stop


class Finished(msgspec.Struct, frozen=True):
    """The guest has said its last word: a result, or the error that the script ended with."""


Step: TypeAlias = Serve | Fail | Dispatch | Halt | Finished


class CommittedCall(msgspec.Struct, frozen=True):
    """Settlement: the call has its record."""

    record: Record


class FailedCall(msgspec.Struct, frozen=True):
    """Settlement: a failure that the script may catch."""

    kind: FailureKind
    text: str


class StoppedCall(msgspec.Struct, frozen=True):
    """Settlement: the launch must stop; ``unresolved`` when the call's outcome is unknown, else it was denied."""

    stop: Stop
    unresolved: bool = False


class DroppedCall(msgspec.Struct, frozen=True):
    """Settlement: the launch was already stopped, and the call was never sent."""


Settlement: TypeAlias = CommittedCall | FailedCall | StoppedCall | DroppedCall


class Ending(msgspec.Struct, frozen=True):
    """What a launch ended in, before it is journalled."""

    status: RunStatus
    error: ErrorInfo | None
    orphans: tuple[Identity, ...]
    not_reached: tuple[Identity, ...]
    result: Any = None
    has_result: bool = False


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
        self.saved = 0
        self.warnings: list[str] = []
        self.pending: dict[int, CallRequest] = {}
        self._allowance = allowance
        self._history = history
        self._specs = specs
        self._validate = validate
        self._sites = {fact.site: fact for fact in revision.sites if fact.kind == "call"}
        self._next: Counter[tuple[str, Path]] = Counter()
        self._busy: set[tuple[str, Path]] = set()
        self._last_id = 0
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
        if self._end is not None:
            return self.breach(f"a {type(frame).__name__} frame after the guest's last word")
        match frame:
            case Call():
                return self._on_call(frame) if self.stop is None else None
            case Log(text=text):
                self._log(text)
                return None
            case Done() | Crash():
                if self.pending:
                    return self.breach(f"a {type(frame).__name__} frame with {len(self.pending)} calls in flight")
                self._end = frame
                return Finished()
            case Ready():
                return self.breach("a second Ready frame")

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
        return self._decide(frame.id, request)

    def _decide(self, call: int, request: CallRequest) -> Step:
        identity = request.identity
        decision = decide(
            request,
            history=self._history,
            envelope=self.envelope,
            allowance=self._allowance,
            spec=self._specs.get(request.capability),
            invalid=self._validate(request.capability, request.payload),
            launch=self.number,
            new_calls=self._site_calls.total(),
            site_calls=self._site_calls[identity.site],
        )
        match decision:
            case Replay(record=record):
                self.counts["replayed"] += 1
                self.saved += record.cost or 0
                self._busy.discard((identity.site, identity.path))
                return Serve(call, record, replayed=True)
            case ReplayFailure(kind=kind, text=text):
                self.counts["replayed"] += 1
                return self._fail(call, identity, request.capability, kind, text)
            case Stop():
                self.counts["denied"] += _is_denial(decision)
                return self.halt(decision)
            case Invalid(text=text):
                self._site_calls[identity.site] += 1
                self.counts["failed"] += 1
                return self._fail(call, identity, request.capability, "invalid_request", text)
            case Execute(warning=warning):
                self._site_calls[identity.site] += 1
                if warning is not None and len(self.warnings) < WARNING_LIMIT:
                    self.warnings.append(warning)
                self.pending[call] = request
                return Dispatch(call, request, decision)

    def on_settled(self, call: int, settlement: Settlement) -> Step | None:
        """Take the broker's last word on a dispatched call."""
        request = self.pending.pop(call)
        self._busy.discard((request.identity.site, request.identity.path))
        match settlement:
            case CommittedCall(record=record):
                self.counts["executed"] += 1
                return Serve(call, record, replayed=False)
            case FailedCall(kind=kind, text=text):
                self.counts["failed"] += 1
                return self._fail(call, request.identity, request.capability, kind, text)
            case StoppedCall(stop=stop, unresolved=unresolved):
                self.counts["unresolved"] += unresolved
                self.counts["denied"] += _is_denial(stop)
                return self.halt(stop)
            case DroppedCall():
                self.invoked.discard(request.identity)
                return None

    def halt(self, stop: Stop) -> Halt:
        """Stop the launch; of several stops the gravest stays."""
        if self.stop is None or _gravity(stop) < _gravity(self.stop):
            self.stop = stop
        return Halt(stop)

    def _fail(self, call: int, identity: Identity, capability: str, kind: FailureKind, text: str) -> Fail:
        self._busy.discard((identity.site, identity.path))
        return Fail(call, identity, capability, kind, text)

    def _protocol_fault(self, frame: Call, identity: Identity) -> str | None:
        fact = self._sites.get(frame.site)
        expected = self._next[frame.site, frame.path]
        if fact is None:
            return f"a call at {frame.site!r}, which is not a site of this script"
        if fact.capability != frame.capability:
            return f"{frame.capability!r} called at {frame.site}, where the script calls {fact.capability!r}"
        if frame.id != self._last_id + 1:
            return f"call id {frame.id} after {self._last_id}"
        if (frame.site, frame.path) in self._busy:
            return f"{identity} while another call at this site and path is in flight: their order would be chance"
        if frame.occurrence != expected:
            return f"{identity}, where the host counts occurrence {expected}"
        if len(self.pending) >= WINDOW:
            return f"more than {WINDOW} calls in flight"
        return None

    def breach(self, what: str) -> Halt:
        """End a launch whose guest broke the protocol."""
        return self.halt(
            Stop(
                BREACH,
                f"the guest broke the protocol: {what[:500]}",
                "the launch was ended and nothing further was dispatched; what is committed stands",
            )
        )

    def on_exit(self, exit_: Exit) -> None:
        """Judge how the guest went: a result counts only with exit status 0 and no limit in the way."""
        if self.stop is not None or (exit_.cause == "exit" and self._is_last_word(exit_.code)):
            return
        if exit_.cause in _LIMITS:
            what, hint = _LIMITS[exit_.cause]
            self.halt(Stop(GUEST_LIMIT, f"the sandbox ended the script: {what}{_tail(exit_)}", hint))
        else:
            how = f"signal {exit_.signal}" if exit_.signal is not None else f"status {exit_.code}"
            self.breach(f"it ended by {how} ({exit_.cause}){_tail(exit_)}")

    def _is_last_word(self, code: int | None) -> bool:
        """Whether the guest's last frame and its exit status agree: a crash was told and may exit as it likes."""
        return isinstance(self._end, Crash) or (isinstance(self._end, Done) and code == 0)

    def _log(self, text: str) -> None:
        room = LOG_LIMIT - self._log_size
        if room > 0:
            self._logs.append(text[:room])
            self._log_size += len(text[:room]) + 1

    def ending(self) -> Ending:
        """Say what the launch ended in; called when the guest is gone and nothing is pending."""
        orphans = self._history.orphans(self.invoked)
        if self.stop is not None:
            status = _STATUS.get(self.stop.code, "failed" if self.stop.code.startswith("TS-R") else "stopped")
            error = ErrorInfo(self.stop.code, self.stop.message, self.stop.hint)
            return Ending(status, error, (), orphans)
        match self._end:
            case Done(value=value):
                return self._completed(value, orphans)
            case Crash():
                return Ending("failed", _script_error(self._end), (), orphans)
            case None:
                error = ErrorInfo(BREACH, "the guest ended without a word", "resume the run; what is committed replays")
                return Ending("failed", error, (), orphans)

    def _completed(self, value: Any, orphans: tuple[Identity, ...]) -> Ending:
        try:
            canonical(value, "result", MAX_RESULT)
        except PayloadError as error:
            info = ErrorInfo(
                BAD_RESULT,
                f"orchestrate returned what is not JSON-like: {error}",
                "return plain data; every call is committed, so a resume with a corrected script replays them all",
            )
            return Ending("failed", info, (), orphans)
        if orphans and self.envelope.orphan_policy == "stop":
            info = ErrorInfo(
                ORPHANED,
                f"the script finished without {len(orphans)} committed call(s), and the orphan policy is stop: "
                + ", ".join(map(str, orphans[:5])),
                "reach them again, or resume with --orphans warn",
            )
            return Ending("failed", info, orphans, (), value, has_result=True)
        return Ending("completed", None, orphans, (), value, has_result=True)


_LIMITS = {
    "memory": ("it ran out of memory", "keep less data at once, or raise memory_mb under [sandbox]; then resume"),
    "cpu": ("it used up its processor time", "compute less, or raise cpu_seconds under [sandbox]; then resume"),
    "output": ("it wrote more than its output allowance", "log and pass on less; then resume"),
}


def _tail(exit_: Exit) -> str:
    return f" ({exit_.text.strip()[-300:]})" if exit_.text.strip() else ""


def _is_denial(stop: Stop) -> bool:
    return stop.code.startswith("TS-P")


def _gravity(stop: Stop) -> int:
    return next((rank for rank, prefix in enumerate(_GRAVITY) if stop.code.startswith(prefix)), len(_GRAVITY))


def _script_error(crash: Crash) -> ErrorInfo:
    line = f" at line {crash.where[-1][0]} in {crash.where[-1][1]}" if crash.where else ""
    if crash.kind == "CapabilityError":
        return ErrorInfo(
            CALL_FAILED,
            f"a call failed{line} and the script did not catch it: {crash.text}",
            "repair the cause and resume; committed calls replay for free and the failed one runs again",
        )
    return ErrorInfo(
        SCRIPT_FAILED,
        f"the script raised {crash.kind}{line}: {crash.text}",
        "repair the script and resume; committed calls replay for free",
    )
