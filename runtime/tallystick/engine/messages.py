"""What clients and the daemon say to each other over HTTP (architecture.md, section 7).

The command line imports this module and nothing else of the engine. Money is dollars here (``float``), for it is
shown and not summed; the engine counts micro-dollars. Times are Unix seconds.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.contract.capability import Effect, OrphanPolicy, RepeatPolicy
from tallystick.contract.events import ErrorInfo, RunStatus
from tallystick.contract.identity import Identity
from tallystick.engine.authoring.choices import AutoRepair, AutoRepairReport, CandidateLine
from tallystick.engine.money_messages import WaitingCall

ConflictKind: TypeAlias = Literal["unresolved_moved", "removed", "capability_changed", "call_changed"]
Phase: TypeAlias = Literal["queued", "starting", "running", "settling", "writing", "idle"]
ProgressKind: TypeAlias = Literal[
    "snapshot",
    "queued",
    "preparing",
    "launch",
    "started",
    "replayed",
    "committed",
    "failed",
    "unresolved",
    "denied",
    "waiting",
    "retrying",
    "settling",
    "log",
    "warning",
    "asked",
    "rejected",
    "accepted",
    "ended",
]

EXIT_BY_CODE = {"TS-C": 3, "TS-G": 3, "TS-M": 3, "TS-D": 4, "TS-A": 5, "TS-P": 6, "TS-S": 7, "TS-N": 7, "TS-U": 2}


def exit_code_of(code: str | None) -> int:
    """Return the command's exit status for an error code: 1 for whatever has no number of its own."""
    return EXIT_BY_CODE.get((code or "")[:4], 1)


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a run may do, as a person writes it; what is None keeps the run's or the daemon's default."""

    grants: tuple[str, ...] | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    concurrency: int | None = None
    max_calls: int | None = None
    wall_clock: float | None = None
    repeat_policy: RepeatPolicy | None = None
    orphan_policy: OrphanPolicy | None = None


class CheckRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Check a script; without limits the envelope rules are left out."""

    source: str
    limits: Limits | None = None


class Region(msgspec.Struct, frozen=True):
    """A stretch of a script: lines count from 1, columns from 0 and in characters, the end is exclusive.

    So one within a line is ``lines[line - 1][column:end_column]``.
    """

    line: int
    column: int
    end_line: int
    end_column: int


class Diagnostic(Region, frozen=True, kw_only=True):
    """One violation: which rule, where, what is wrong, and what to write instead."""

    rule: str
    severity: Literal["error", "warning"]
    message: str
    hint: str


class Excerpt(Region, frozen=True, kw_only=True):
    """A stretch of a script with its text."""

    text: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """One counterexample of the gate: the committed call at a site, and what the rewrite has in its place.

    ``new`` is None where the call is nowhere to be found; ``moved_to`` names the site of an equal one.
    """

    site: str
    kind: ConflictKind
    message: str
    hint: str
    old: Excerpt
    new: Excerpt | None = None
    moved_to: str | None = None


class Site(Region, frozen=True, kw_only=True):
    """A call or race, and how often it can be reached in a launch and under one path; None where nothing is proved."""

    site: str
    kind: Literal["call", "race"]
    capability: str
    fingerprint: str
    total: int | None
    per_path: int | None


class Fanout(Region, frozen=True, kw_only=True):
    """A fanout, and how wide it is at most."""

    kind: str
    width: int | None


class Loop(Region, frozen=True, kw_only=True):
    """A loop or comprehension, and how often it goes round at most."""

    kind: str
    rounds: int | None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the checker proved: sites, call expressions per capability, a bound of all calls, widths and rounds."""

    sites: tuple[Site, ...]
    calls: dict[str, int]
    call_bound: int | None
    fanouts: tuple[Fanout, ...] = ()
    loops: tuple[Loop, ...] = ()


class CheckReport(msgspec.Struct, frozen=True):
    """The checker's verdict; ``valid`` is the absence of errors."""

    valid: bool
    violations: tuple[Diagnostic, ...]
    facts: Facts | None = None


class RunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Submit a script. ``latency`` (seconds) and ``faults`` are for the local provider only."""

    source: str
    args: Any = None
    name: str = "script"
    limits: Limits = Limits()
    seed: int = 0
    faults: tuple[str, ...] = ()
    latency: float = 0.0
    auto_repair: AutoRepair | None = None


class ResumeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Go on with a run: with its script or another, its args or others, its limits or others."""

    source: str | None = None
    args: Any | msgspec.UnsetType = msgspec.UNSET
    limits: Limits = Limits()
    proceed: bool = False
    allow_repeats: bool = False
    allowed_repeats: tuple[Identity, ...] = ()
    retry_failed: tuple[Identity, ...] = ()
    preflight: bool = True
    who: str = "an operator"
    faults: tuple[str, ...] | None = None
    latency: float | None = None
    auto_repair: AutoRepair | None = None


class PlanRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask what a resume would do: with the run's script and args, or with others."""

    source: str | None = None
    args: Any | msgspec.UnsetType = msgspec.UNSET
    limits: Limits = Limits()


class PlannedCall(msgspec.Struct, frozen=True):
    """A call that a resume would pay for."""

    identity: Identity
    capability: str
    estimate_usd: float
    warning: str | None = None


class PlannedStop(msgspec.Struct, frozen=True):
    """Something that would stop the launch."""

    code: str
    message: str
    hint: str
    identity: Identity | None = None


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a resume would do (contract.md, section 10).

    ``replay`` counts the calls that replay; ``unknown`` lists committed calls behind a new result, of which nobody can
    say yet; ``estimate_usd`` is the price of ``new`` alone.
    """

    state: Literal["finished", "blocked", "failed"]
    replay: int
    new: tuple[PlannedCall, ...] = ()
    diverge: tuple[PlannedStop, ...] = ()
    stops: tuple[PlannedStop, ...] = ()
    orphans: tuple[Identity, ...] = ()
    unknown: tuple[Identity, ...] = ()
    estimate_usd: float = 0.0
    error: ErrorInfo | None = None


class GateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask whether a rewrite may replace a run's script; nothing is started."""

    source: str


class GateReport(msgspec.Struct, frozen=True):
    """The gate's verdict, with the checker's findings when those stop the candidate first."""

    accepted: bool
    counterexamples: tuple[Conflict, ...] = ()
    violations: tuple[Diagnostic, ...] = ()
    frozen: int = 0


class Calls(msgspec.Struct, frozen=True):
    """Calls of the latest launch, and of the whole run those whose outcome is unresolved."""

    executed: int = 0
    replayed: int = 0
    failed: int = 0
    unresolved: int = 0
    denied: int = 0


class Spend(msgspec.Struct, frozen=True):
    """Known spend of the whole run in dollars, and how many calls came without a price.

    ``replay_unpriced`` of the replays that have saved something had come without a price. ``models_usd`` is what of
    ``usd`` went to models that wrote or repaired the script. ``tokens`` are known, ``reserved_tokens`` set aside.
    """

    usd: float = 0.0
    unpriced: int = 0
    reserved_usd: float = 0.0
    replay_saved_usd: float = 0.0
    replay_unpriced: int = 0
    tokens: int = 0
    reserved_tokens: int = 0
    models_usd: float = 0.0


class AttemptReport(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: what was asked, how it ended, what it cost; ``open`` ones are in flight or unresolved."""

    attempt: int
    identity: Identity
    capability: str
    effect: Effect
    state: Literal["in_flight", "committed", "failed", "unusable", "unresolved", "unknown", "resent", "abandoned"]
    revision: int
    launch: int
    started: float
    payload: Any
    take: str | None = None
    effect_key: str
    kind: str | None = None
    text: str = ""
    cost_usd: float | None = None
    reserved_usd: float = 0.0
    job: str | None = None
    decision: str | None = None


class LaunchReport(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a run and what became of it."""

    launch: int
    revision: int
    started: float
    ended: float | None = None
    status: RunStatus
    reason: str | None = None
    calls: Calls = Calls()
    driver: str = ""
    image: str = ""


class Artifact(msgspec.Struct, frozen=True):
    """A file that a record of the run names."""

    identity: Identity
    capability: str
    sha256: str
    media_type: str
    size: int


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run as `run`, `resume` and `show` report it."""

    run: str
    status: RunStatus
    reason: str | None = None
    result: Any = None
    calls: Calls = Calls()
    spend: Spend = Spend()
    orphans: tuple[Identity, ...] = ()
    unresolved: tuple[AttemptReport, ...] = ()
    waiting: tuple[WaitingCall, ...] = ()
    error: ErrorInfo | None = None
    name: str = ""
    phase: Phase = "idle"
    revision: int = 0
    launch: int = 0
    created: float = 0.0
    updated: float = 0.0
    not_reached: tuple[Identity, ...] = ()
    warnings: tuple[str, ...] = ()
    launches: tuple[LaunchReport, ...] = ()
    candidates: tuple[CandidateLine, ...] = ()
    auto_repair: AutoRepairReport | None = None
    logs: str = ""

    @property
    def exit_code(self) -> int:
        """The exit status of a command that waited for this run."""
        return 0 if self.status in ("completed", "running", "draft") else exit_code_of(self.reason)


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a listing; ``usd`` is what it is known to have cost, beside ``unpriced`` calls of unknown cost."""

    run: str
    name: str
    status: RunStatus
    created: float
    updated: float
    usd: float = 0.0
    unpriced: int = 0


class Source(msgspec.Struct, frozen=True):
    """The script and the args of one revision."""

    revision: int
    source: str
    args: Any = None


class ReconcileRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settle an unresolved or unusable attempt: with the known result, by abandoning it, or by its kept answer.

    ``reprocess`` reads the kept answer again without a new call. ``cost_usd`` alone prices an attempt that came
    without one.
    """

    abandon: bool = False
    reprocess: bool = False
    result: Any | msgspec.UnsetType = msgspec.UNSET
    cost_usd: float | None = None
    who: str
    why: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a run's live stream; ``ended`` is the last."""

    kind: ProgressKind
    at: float
    identity: Identity | None = None
    capability: str = ""
    text: str = ""
    cost_usd: float | None = None
    calls: Calls = Calls()
    in_flight: int = 0
    spend: Spend = Spend()


class CapabilityInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the catalogue; ``provider`` is None where none is configured."""

    name: str
    effect: Effect
    estimate_usd: float
    payload: str
    result: str
    description: str
    provider: str | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon as it stands."""

    version: str
    pid: int
    home: str
    store: str
    driver: str
    why_driver: str = ""
    image: str = ""
    started: float
    live: int
    queued: int
    runs: int
    tree: Any = None


class DifferenceReport(msgspec.Struct, frozen=True):
    """A record that is not what a certificate says."""

    launch: int
    kind: Literal["missing", "extra", "changed", "chain"]
    identity: Identity | None
    message: str


class CertificateReport(msgspec.Struct, frozen=True, kw_only=True):
    """The latest certificate of a run; ``differences`` of all of them where they were verified, [] when none."""

    run: str
    launch: int
    at: float
    cut: int
    entries: int
    chain: str
    frozen: dict[str, tuple[str, str]]
    certificates: int
    differences: tuple[DifferenceReport, ...] | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call, and why."""

    run: str
    identity: Identity
    state: str
    lines: tuple[str, ...]


class BudgetRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set another budget for a run, in dollars: at once where it is live, and for every later launch."""

    budget_usd: float
    who: str = "an operator"


class RetireRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Release a frozen site from the gate (contract.md, section 11)."""

    site: str
    who: str
    why: str


class DoctorCheck(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


class DoctorReport(msgspec.Struct, frozen=True):
    """Everything that was looked at; ``healthy`` when all of it holds."""

    healthy: bool
    checks: tuple[DoctorCheck, ...]


class ErrorBody(msgspec.Struct, frozen=True):
    """What every refused request gets.

    ``details`` holds violations for TS-C001, counterexamples for TS-G001, unresolved attempts for TS-A001.
    """

    error: ErrorInfo
    details: Any = None
