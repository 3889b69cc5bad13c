"""The journal's events: everything that is ever remembered of a run (contract.md, sections 1 and 6.2).

The log is the truth and only grows. The state of a run is a fold over its events (``history.py``); nothing
else is stored that could disagree with them. Times are Unix seconds, money is micro-dollars.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.contract.capability import Effect, Envelope, FailureKind
from tallystick.contract.identity import Identity, Schemes
from tallystick.contract.source import SiteFact

RunStatus: TypeAlias = Literal["running", "completed", "failed", "stopped", "interrupted", "cancelled", "waiting"]


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

    ``faults`` and ``latency`` (seconds) are failures and waits on demand, which only the local provider obeys.
    """

    launch: int
    revision: int
    driver: str
    envelope: Envelope
    allow_repeats: bool = False
    allowed_repeats: tuple[Identity, ...] = ()
    faults: tuple[str, ...] = ()
    latency: float = 0.0


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    """The durable note before a dispatch. ``payload`` is what is sent, ``reserved`` what the budget set aside.

    ``survived`` names the failed attempts that the branch had seen before it made this call: they stay failures
    (contract.md, section 6.3).
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
    survived: tuple[int, ...] = ()


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


class Committed(Event, frozen=True, kw_only=True, tag="committed"):
    """An identity has its record: the attempt ended well, or an operator supplied the known result."""

    record: Record


class AttemptDecided(Event, frozen=True, kw_only=True, tag="attempt_decided"):
    """An operator's decision on an unresolved or unusable attempt, with who and why."""

    attempt: int
    decision: Literal["commit", "abandon"]
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


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch_ended"):
    """A launch is over. ``orphans`` for one that ended with a result, ``not_reached`` for any other.

    ``saved`` is what its replayed calls had cost when they were paid.
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


AnyEvent: TypeAlias = (
    RunCreated
    | RevisionAdded
    | LaunchStarted
    | AttemptStarted
    | AttemptEnded
    | Committed
    | AttemptDecided
    | CallDenied
    | LaunchEnded
    | CertificateIssued
    | RaceDecided
    | FailureRetried
    | SiteRetired
)
