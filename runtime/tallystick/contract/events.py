"""The journal's events: everything that is ever remembered of a run (contract.md, sections 1 and 6.2).

The log is the truth and only grows. The state of a run is a fold over its events (``history.py``); nothing
else is stored that could disagree with them. Times are Unix seconds, money is micro-dollars.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.contract.capability import Effect, Envelope, FailureKind
from tallystick.contract.identity import Identity, Schemes
from tallystick.contract.source import Counterexample, SiteFact, Violation

RunStatus: TypeAlias = Literal[
    "draft", "running", "completed", "failed", "stopped", "interrupted", "cancelled", "waiting"
]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every event carries: the run it belongs to and when it was written."""

    run: str
    at: float


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as people and programs get it: a stable code, what happened, what to do next."""

    code: str
    message: str
    hint: str = ""


class FileRef(msgspec.Struct, frozen=True):
    """A file of the artifact store, by content: hex SHA-256, media type, size in bytes."""

    sha256: str
    media_type: str
    size: int


class Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON-like value that the journal keeps: inline, or as a file when it is large."""

    inline: Any = None
    file: FileRef | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a committed identity stores. ``cost`` is None when nobody knows it, which is not zero."""

    identity: Identity
    capability: str
    fingerprint: str
    digest: str
    take: str | None = None
    result: Stored
    artifacts: tuple[FileRef, ...] = ()
    usage: dict[str, Any] = {}
    cost: int | None = None
    revision: int
    launch: int
    attempt: int
    schemes: Schemes = Schemes()


class RunCreated(Event, frozen=True, kw_only=True, tag="run_created"):
    """A run exists. ``seed`` feeds the seeds of its samples."""

    name: str
    envelope: Envelope
    seed: int = 0


class RevisionAdded(Event, frozen=True, kw_only=True, tag="revision_added"):
    """A (source, args) that the checker and the gate accepted; ``digest`` is the hex SHA-256 of both."""

    revision: int
    digest: str
    source: str
    args: Any
    sites: tuple[SiteFact, ...]
    schemes: Schemes = Schemes()


class LaunchStarted(Event, frozen=True, kw_only=True, tag="launch_started"):
    """One start of a sandbox for one revision, within ``envelope``.

    ``image`` is the id of the image that the driver had pinned by then, "" where it has none or none was built yet.
    ``faults`` and ``latency`` (seconds) are failures and waits on demand, which only the local provider obeys.
    """

    launch: int
    revision: int
    driver: str
    image: str = ""
    envelope: Envelope
    allow_repeats: bool = False
    allowed_repeats: tuple[Identity, ...] = ()
    faults: tuple[str, ...] = ()
    latency: float = 0.0


class SandboxChanged(Event, frozen=True, kw_only=True, tag="sandbox_changed"):
    """A launch was let go on in another image, or under another driver, than the run had before.

    ``before`` is (driver, image) of before; its image is "" where none was known yet.
    """

    launch: int
    driver: str
    image: str
    before: tuple[str, str]


class BudgetChanged(Event, frozen=True, kw_only=True, tag="budget_changed"):
    """An operator set another budget (micro-dollars) for the run: it holds for this launch and all later ones."""

    launch: int
    budget: int
    who: str


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    """The durable note before a dispatch. ``payload`` is what is sent, ``reserved`` what the budget set aside.

    ``provider`` is the name under which the configuration knows whoever is asked. ``survived`` names the failed
    attempts that the branch had seen before it made this call: they stay failures (contract.md, section 6.3).
    ``resends`` names the unresolved attempt whose call is sent again, under the same key.
    """

    attempt: int
    launch: int
    revision: int
    identity: Identity
    capability: str
    effect: Effect
    fingerprint: str
    digest: str
    payload: Any
    take: str | None = None
    effect_key: str
    reserved: int
    reserved_tokens: int = 0
    provider: str = ""
    survived: tuple[int, ...] = ()
    resends: int | None = None


class AttemptSubmitted(Event, frozen=True, kw_only=True, tag="attempt_submitted"):
    """The provider has taken an attempt on as work of its own; ``job`` is its id for it, good beyond the connection."""

    attempt: int
    job: str


class AttemptAnswered(Event, frozen=True, kw_only=True, tag="attempt_answered"):
    """An attempt was answered and billed; ``raw`` is the answer, written down before the links in it are fetched."""

    attempt: int
    raw: Stored
    cost: int | None = None


class AttemptEnded(Event, frozen=True, kw_only=True, tag="attempt_ended"):
    """How an attempt ended without a record, or what is known of one that did not end.

    ``failed``: definitely not done. ``unknown``: perhaps done; unresolved when side-effecting. ``unusable``:
    answered and billed, but not usable; ``raw`` keeps the answer.
    """

    attempt: int
    outcome: Literal["failed", "unknown", "unusable"]
    kind: FailureKind | None = None
    text: str = ""
    cost: int | None = None
    job: str | None = None
    raw: Stored | None = None
    retry_after: float | None = None


class AttemptFound(Event, frozen=True, kw_only=True, tag="attempt_found"):
    """What became of an attempt that had ended as unknown, as its provider says when it is asked.

    It takes the place of that end. ``committed`` comes with the record, in one transaction.
    """

    attempt: int
    outcome: Literal["committed", "failed", "unusable"]
    kind: FailureKind | None = None
    text: str = ""
    cost: int | None = None
    raw: Stored | None = None


class Committed(Event, frozen=True, kw_only=True, tag="committed"):
    """An identity has its record: the attempt ended well, or an operator supplied the known result."""

    record: Record


class AttemptDecided(Event, frozen=True, kw_only=True, tag="attempt_decided"):
    """An operator's decision on an unresolved or unusable attempt, with who and why."""

    attempt: int
    decision: Literal["commit", "abandon"]
    who: str
    why: str


class AttemptPriced(Event, frozen=True, kw_only=True, tag="attempt_priced"):
    """What an attempt has cost that had come without a price, by an operator; of several the latest counts."""

    attempt: int
    cost: int
    who: str
    why: str


class RaceDecided(Event, frozen=True, kw_only=True, tag="race_decided"):
    """Which branch of a race won: a decision like a record, for every later launch (contract.md, section 6.4)."""

    launch: int
    revision: int
    identity: Identity
    fingerprint: str
    width: int
    winner: int


class FailureRetried(Event, frozen=True, kw_only=True, tag="failure_retried"):
    """An operator turned a survived failure back into work (contract.md, section 6.3)."""

    attempt: int
    who: str


class SiteRetired(Event, frozen=True, kw_only=True, tag="site_retired"):
    """An operator released a frozen site from the gate; its records stay (contract.md, section 11)."""

    site: str
    who: str
    why: str


class CallDenied(Event, frozen=True, kw_only=True, tag="call_denied"):
    """A call that policy refused before an attempt: no spend, no record, no frozen site."""

    launch: int
    identity: Identity
    capability: str
    code: str
    message: str


class ApprovalAsked(Event, frozen=True, kw_only=True, tag="approval_asked"):
    """A launch ended waiting with this call unsent: somebody must approve of exactly this ``payload`` first."""

    launch: int
    identity: Identity
    capability: str
    digest: str
    payload: Any
    take: str | None = None
    reserved: int = 0


class ApprovalDecided(Event, frozen=True, kw_only=True, tag="approval_decided"):
    """Somebody's word on one call as it stands: it may be made once, or it may not be made."""

    identity: Identity
    capability: str
    digest: str
    take: str | None = None
    approved: bool
    who: str
    why: str = ""


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch_ended"):
    """A launch is over. ``orphans`` for one that ended with a result, ``not_reached`` for any other.

    ``saved`` is what its replayed calls had cost when they were paid, beside ``saved_unpriced`` of unknown cost.
    """

    launch: int
    status: RunStatus
    reason: str | None = None
    error: ErrorInfo | None = None
    result: Stored | None = None
    executed: int = 0
    replayed: int = 0
    failed: int = 0
    denied: int = 0
    saved: int = 0
    saved_unpriced: int = 0
    orphans: tuple[Identity, ...] = ()
    not_reached: tuple[Identity, ...] = ()
    warnings: tuple[str, ...] = ()
    logs: Stored | None = None


class Leaf(msgspec.Struct, frozen=True):
    """A record in a certificate: its identity and the hex SHA-256 of all it says."""

    identity: Identity
    hash: str


class CertificateIssued(Event, frozen=True, kw_only=True, tag="certificate_issued"):
    """What the records of a run were when a launch ended (contract.md, section 8).

    ``cut`` is the log sequence up to which it speaks, ``added`` the leaves that no earlier certificate lists,
    ``frozen`` the frozen sites with capability and fingerprint, ``chain`` the hash over all ``entries`` leaves.
    """

    launch: int
    cut: int
    entries: int
    chain: str
    frozen: dict[str, tuple[str, str]]
    added: tuple[Leaf, ...] = ()


class CandidateAsked(Event, frozen=True, kw_only=True, tag="candidate_asked"):
    """The durable note before a model is asked for a script (contract.md, section 9).

    ``revision`` is the one to be repaired, None for a script that is to be written. ``prompt`` is what is sent,
    ``reserved`` what the budget set aside for the call.
    """

    candidate: int
    purpose: Literal["author", "repair"]
    revision: int | None = None
    provider: str
    model: str
    prompt: Stored
    key: str
    reserved: int


class CandidateJudged(Event, frozen=True, kw_only=True, tag="candidate_judged"):
    """What came of a model call, and what checker, gate and the count of calls said of its script.

    ``no_script``: the answer had none that could be judged. ``failed``: the model was not asked, or refused.
    ``unknown``: perhaps asked and billed. ``source`` is the script that was read in ``answer``, ``digest`` its hex
    SHA-256; ``text`` says what was odd, or went wrong.
    """

    candidate: int
    outcome: Literal["accepted", "rejected", "no_script", "failed", "unknown"]
    text: str = ""
    answer: Stored | None = None
    source: Stored | None = None
    digest: str = ""
    usage: dict[str, Any] = {}
    cost: int | None = None
    violations: tuple[Violation, ...] = ()
    counterexamples: tuple[Counterexample, ...] = ()
    calls: int = 0
    calls_before: int = 0


AnyEvent: TypeAlias = (
    RunCreated
    | RevisionAdded
    | LaunchStarted
    | SandboxChanged
    | BudgetChanged
    | AttemptStarted
    | AttemptSubmitted
    | AttemptAnswered
    | AttemptEnded
    | AttemptFound
    | Committed
    | AttemptDecided
    | AttemptPriced
    | CallDenied
    | ApprovalAsked
    | ApprovalDecided
    | LaunchEnded
    | CertificateIssued
    | RaceDecided
    | FailureRetried
    | SiteRetired
    | CandidateAsked
    | CandidateJudged
)
