"""The runtime rule: what becomes of one call, as a pure step (contract.md, section 6).

``decide`` looks at the run's history and the launch's limits and says which of the closed set of decisions
applies. Waiting for slots and budget, dispatching and committing are the broker's; whatever it does, it does
because of one of these values.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import CapabilitySpec, Envelope, FailureKind, usd
from tallystick.contract.events import ApprovalDecided, AttemptStarted, Record
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.ledger import consult
from tallystick.contract.payload import difference


class CallRequest(msgspec.Struct, frozen=True):
    """A call as the broker got it: ``payload`` is canonical data, ``digest`` its hex SHA-256."""

    identity: Identity
    capability: str
    fingerprint: str
    payload: Any
    digest: str
    take: str | None = None


class Allowance(msgspec.Struct, frozen=True):
    """What a launch may do beyond the policy: as an operator allowed it, and ``resends`` as providers promise it.

    ``resends`` are unresolved attempts whose provider would carry the call out once, however often it is sent.
    """

    all_repeats: bool = False
    repeats: frozenset[Identity] = frozenset()
    retried: frozenset[Identity] = frozenset()
    resends: frozenset[int] = frozenset()


class Terms(msgspec.Struct, frozen=True):
    """What one launch may do: its number, its limits, and what an operator allowed beyond them."""

    launch: int
    envelope: Envelope
    allowance: Allowance = Allowance()


class Replay(msgspec.Struct, frozen=True):
    """Rule 1: serve the record; no provider call."""

    record: Record


class ReplayFailure(msgspec.Struct, frozen=True):
    """Rule 3: the same failure as before; no provider call."""

    kind: FailureKind
    text: str


class Stop(msgspec.Struct, frozen=True):
    """The launch must end: nothing new starts, and the script cannot catch it. ``code`` as in errors.py."""

    code: str
    message: str
    hint: str
    identity: Identity | None = None


class Invalid(msgspec.Struct, frozen=True):
    """The payload is against the schema: a failed call without an attempt, which the script may catch."""

    text: str


class Execute(msgspec.Struct, frozen=True):
    """Rule 4: new work, to be paid once; ``warning`` is what the report should say about it.

    ``resends`` is the unresolved attempt that is sent again under its key.
    """

    estimate: int
    warning: str | None = None
    resends: int | None = None


class Wait(msgspec.Struct, frozen=True):
    """New work that is not sent before a person has approved of it; ``estimate`` is what it may cost."""

    estimate: int


Decision: TypeAlias = Replay | ReplayFailure | Stop | Invalid | Wait | Execute

DIVERGED, UNRESOLVED, UNGRANTED, OVER_BUDGET, OVER_CEILING, APPROVAL, REPEAT, NO_PROVIDER, DISAPPROVED = (
    "TS-D001",
    "TS-A001",
    "TS-P001",
    "TS-P002",
    "TS-P003",
    "TS-P004",
    "TS-P005",
    "TS-P006",
    "TS-P009",
)


def decide(
    call: CallRequest,
    *,
    history: History,
    terms: Terms,
    spec: CapabilitySpec | None,
    invalid: str | None,
    new_calls: int,
    site_calls: int,
) -> Decision:
    """Apply the runtime rule to one call.

    Args:
        call: the call, its identity already agreed between guest and host.
        history: everything the journal holds of the run.
        terms: what this launch may do.
        spec: the capability, or None when no provider is configured for it.
        invalid: what the catalogue says against the payload, or None.
        new_calls: how many calls this launch has sent or is about to.
        site_calls: how many of them stood at this site.
    """
    record = history.records.get(call.identity)
    if record is not None:
        if (record.capability, record.digest, record.take) == (call.capability, call.digest, call.take):
            return Replay(record)
        return _divergence(call, record, history)
    attempt = history.latest_attempt.get(call.identity)
    resends: int | None = None
    if attempt is not None:
        again = _known_failure(call, attempt, retried=call.identity in terms.allowance.retried)
        if again is not None:
            return again
        if attempt.open:
            if not _may_resend(call, attempt, terms.allowance):
                return unresolved(call, attempt.started)
            resends = attempt.started.attempt
    repeated = None if resends is not None else _repeated(call, history, terms, spec)
    if isinstance(repeated, Stop):
        return repeated
    if call.capability not in terms.envelope.grants:
        return _ungranted(call, terms.envelope)
    if spec is None:
        return _no_provider(call)
    if invalid is not None:
        return Invalid(invalid)
    over = _over_ceiling(call, terms.envelope, new_calls, site_calls)
    if over is not None:
        return over
    if spec.needs_approval and resends is None:
        decided = history.approvals.decision(call.identity, call.capability, call.digest, call.take)
        if decided is None:
            return Wait(spec.reservation.usd)
        if not decided.approved:
            return _disapproved(call, decided)
    notes = [repeated] if repeated is not None else []
    if attempt is not None and attempt.state == "unknown":
        notes.insert(0, runs_again(attempt.started))
    return Execute(spec.estimate, "; ".join(notes) or None, resends)


def _repeated(call: CallRequest, history: History, terms: Terms, spec: CapabilitySpec | None) -> str | Stop | None:
    """Ask the ledger: a denial, a warning, or None."""
    allowance = terms.allowance
    if spec is None or allowance.all_repeats or call.identity in allowance.repeats:
        return None
    verdict = consult(
        history,
        identity=call.identity,
        fingerprint=call.fingerprint,
        spec=spec,
        digest=call.digest,
        launch=terms.launch,
        policy=terms.envelope.repeat_policy,
        take=call.take,
    )
    if verdict is None:
        return None
    paid = "" if verdict.cost is None else f" for {usd(verdict.cost)}"
    known = f"{call.identity} asks for what {verdict.earlier} already paid{paid} (a {verdict.kind})"
    if verdict.action == "warn":
        return known
    return Stop(
        REPEAT,
        f"{known}; the call was denied before an attempt",
        'use the earlier result; a wanted second sample declares itself with take="…" in the call; or resume with '
        f"--allow-repeat '{call.identity}'",
        call.identity,
    )


def _ungranted(call: CallRequest, envelope: Envelope) -> Stop:
    granted = ", ".join(envelope.grants) or "nothing"
    return Stop(
        UNGRANTED,
        f"{call.capability} at {call.identity} is not granted to this run (granted: {granted}); nothing was spent",
        f"resume with --grant {','.join((*envelope.grants, call.capability))}, or change the script",
        call.identity,
    )


def _no_provider(call: CallRequest) -> Stop:
    return Stop(
        NO_PROVIDER,
        f"no provider is configured for {call.capability}, called at {call.identity}; nothing was spent on it",
        f'name one in the configuration under [capabilities."{call.capability}"] and resume',
        call.identity,
    )


def _disapproved(call: CallRequest, decided: ApprovalDecided) -> Stop:
    why = f": {decided.why}" if decided.why else ""
    return Stop(
        DISAPPROVED,
        f"{decided.who} has denied the call of {call.capability} at {call.identity}{why}; it was not made",
        f"change the script, or approve of it after all: tally approve RUN '{call.identity}'",
        call.identity,
    )


def awaits_approval(calls: Sequence[CallRequest]) -> Stop:
    """Return the stop of a launch that can go on only when a person has approved of these calls."""
    several = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
    first = calls[0]
    return Stop(
        APPROVAL,
        f"{first.capability} at {first.identity}{several} must be approved before it is made; everything else has "
        "settled and is kept, and nothing was spent on what waits",
        "tally approve RUN shows exactly what would be sent, and goes on with what is approved",
    )


def runs_again(lost: AttemptStarted) -> str:
    """Say that a read-only call whose outcome nobody knows is made once more (contract.md, section 6.2)."""
    return (
        f"{lost.identity} runs again: the outcome of attempt {lost.attempt} ({lost.capability}) is unknown, and a "
        "read-only call may be repeated; it may be billed twice"
    )


def _over_ceiling(call: CallRequest, envelope: Envelope, new_calls: int, site_calls: int) -> Stop | None:
    if new_calls >= envelope.max_calls:
        what = f"the launch reached its ceiling of {envelope.max_calls} new calls"
    elif site_calls >= envelope.max_calls_per_site:
        what = f"{call.identity.site} reached its ceiling of {envelope.max_calls_per_site} new calls"
    else:
        return None
    return Stop(
        OVER_CEILING,
        f"{what}, at {call.identity}",
        "raise it with --max-calls on resume; what is committed replays for free",
        call.identity,
    )


def over_budget(call: CallRequest, estimate: int, envelope: Envelope, spent: int, held: int) -> Stop:
    """Return the denial of a call whose reservation does not fit under the budget."""
    least = usd(spent + held + estimate).removeprefix("$").replace(",", "")
    return Stop(
        OVER_BUDGET,
        f"{call.capability} at {call.identity} needs {usd(estimate)}, but the budget of {usd(envelope.budget or 0)} "
        f"has {usd(spent)} spent and {usd(held)} reserved; the call was not made",
        f"resume with --budget {least} or more; what is committed replays for free",
        call.identity,
    )


def fits_budget(envelope: Envelope, spent: int, held: int, estimate: int) -> bool:
    """Whether a reservation of ``estimate`` micro-dollars fits beside what is spent and held."""
    return envelope.budget is None or spent + held + estimate <= envelope.budget


def _known_failure(call: CallRequest, attempt: Attempt, *, retried: bool) -> ReplayFailure | None:
    """Return the failure that stays one: survived, or paid for without a usable answer (contract.md, 6, rule 3)."""
    started, end = attempt.started, attempt.end
    if end is None or not _is_same(call, started):
        return None
    paid = attempt.state == "unusable" and started.effect == "side_effecting"
    if paid or (attempt.survived and not retried and attempt.state in ("failed", "unknown", "unusable")):
        return ReplayFailure(end.kind or "unavailable", end.text)
    return None


def _is_same(call: CallRequest, started: AttemptStarted) -> bool:
    return (started.capability, started.digest, started.take) == (call.capability, call.digest, call.take)


def _may_resend(call: CallRequest, attempt: Attempt, allowance: Allowance) -> bool:
    """Whether this very call may be sent again under its key, though nobody knows what became of it."""
    return (
        attempt.state == "unresolved"
        and attempt.started.attempt in allowance.resends
        and _is_same(call, attempt.started)
    )


def unresolved(call: CallRequest, started: AttemptStarted) -> Stop:
    """Return the stop of a launch that has come to a call whose outcome nobody knows."""
    return Stop(
        UNRESOLVED,
        f"the outcome of attempt {started.attempt} at {call.identity} ({started.capability}) is unknown; "
        "it may have been executed and billed, so it is not sent again",
        f"look it up at the provider (key {started.effect_key}), then tally reconcile RUN {started.attempt} "
        "--result FILE, or --abandon to permit one more execution",
        call.identity,
    )


def _divergence(call: CallRequest, record: Record, history: History) -> Stop:
    if record.capability != call.capability:
        changed = f"the capability: {record.capability} -> {call.capability}"
    elif record.digest != call.digest:
        old = history.attempts[record.attempt].started.payload
        changed = "; ".join(str(change) for change in difference(old, call.payload)) or "the payload"
    else:
        changed = f"take: {record.take!r} -> {call.take!r}"
    return Stop(
        DIVERGED,
        f"{call.identity} is committed, but this script asks for something else there: {changed}. "
        "Nothing was dispatched, and the record was not served",
        "restore what the committed call read; to replace its result, append a new call and use that result instead",
        call.identity,
    )


def race_divergence(race: Identity, known: int, width: int) -> Stop:
    """Return the stop of a launch whose decided race has another width than it had (contract.md, section 6.4)."""
    return Stop(
        DIVERGED,
        f"{race} was decided among {known} branches, but this script runs it with {width}; nothing was dispatched",
        "restore what the race is built from; to race again, append a new one and use its result instead",
        race,
    )
