"""The ledger: names a payload that was already paid for (contract.md, section 6.1).

It is asked for a call at a new identity, before dispatch, and looks at the records of earlier launches only, so
that independent samples within one launch stay possible. It depends on sources and records, never on timing.
"""

from typing import Literal

import msgspec

from tallystick.contract.capability import CapabilitySpec, RepeatPolicy
from tallystick.contract.events import Record
from tallystick.contract.history import History
from tallystick.contract.identity import Identity


class LedgerVerdict(msgspec.Struct, frozen=True):
    """What the ledger says of a call: the record it repeats, how, and what the policy makes of it."""

    kind: Literal["repeat"]
    record: Record
    action: Literal["warn", "deny"]


def consult(
    history: History, *, identity: Identity, spec: CapabilitySpec, digest: str, launch: int, policy: RepeatPolicy
) -> LedgerVerdict | None:
    """Return the verdict on a call at a new identity, or None when nothing was paid for it before.

    A ``repeat`` is the same capability and digest at the same site and path, another occurrence.
    """
    if policy == "off":
        return None
    record = _repeated(history, identity, spec.name, digest, launch)
    if record is None:
        return None
    if policy != "auto":
        return LedgerVerdict("repeat", record, policy)
    if not spec.side_effecting or _could_have_made(history, record, identity) or _attempted(history, identity, digest):
        return LedgerVerdict("repeat", record, "warn")
    return LedgerVerdict("repeat", record, "deny")


def _repeated(history: History, identity: Identity, capability: str, digest: str, launch: int) -> Record | None:
    """Return the first record at this site and path that earlier launches paid for the same."""
    repeated = (
        record
        for record in history.paid.get((capability, digest), ())
        if record.launch < launch and (record.identity.site, record.identity.path) == (identity.site, identity.path)
    )
    return min(repeated, key=lambda record: record.identity.occurrence, default=None)


def _could_have_made(history: History, record: Record, identity: Identity) -> bool:
    """Whether the revision that committed the record could itself have reached this occurrence, by its facts."""
    for fact in history.revisions[record.revision].sites:
        if fact.site == identity.site:
            return fact.per_path is not None and identity.occurrence < fact.per_path
    return False


def _attempted(history: History, identity: Identity, digest: str) -> bool:
    attempt = history.latest_attempt.get(identity)
    return attempt is not None and attempt.started.digest == digest
