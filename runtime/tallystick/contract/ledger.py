"""The ledger: names a payload that was already paid for, or perhaps was (contract.md, section 6.1).

It is asked for a call at a new identity, before dispatch, and looks at the records and held attempts of earlier
launches only, so that independent samples within one launch stay possible. It depends on sources and records, never
on timing.
"""

from typing import Literal, TypeAlias

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import CapabilitySpec, RepeatPolicy
from tallystick.contract.history import History
from tallystick.contract.identity import Identity, PathStep
from tallystick.contract.source import Level, SiteFact

Kind: TypeAlias = Literal["repeat", "shift", "twin"]
_KINDS: tuple[Kind, ...] = ("repeat", "shift", "twin")


class LedgerVerdict(msgspec.Struct, frozen=True):
    """What the ledger says of a call: which attempt it repeats, how, and what the policy makes of it.

    A ``repeat`` has the same site and path, a ``shift`` the same site under another path, a ``twin`` another site.
    """

    kind: Kind
    earlier: Identity
    cost: int | None
    action: Literal["warn", "deny"]


def consult(
    history: History,
    *,
    identity: Identity,
    fingerprint: str,
    spec: CapabilitySpec,
    digest: str,
    launch: int,
    policy: RepeatPolicy,
    take: str | None = None,
) -> LedgerVerdict | None:
    """Return the verdict on a call at a new identity, or None when nothing was paid for it before.

    Under ``auto`` a side-effecting call is denied unless every revision that paid for the same could itself have
    made it. Where the facts of one prove nothing either way, it is denied unless the identity was attempted before
    with this capability and digest. A ``take`` makes it another sample: only the same take is a repeat then.
    """
    if policy == "off":
        return None
    found = [
        attempt
        for attempt in history.asked.get((spec.name, digest), ())
        if _counts(attempt, launch) and take in (None, attempt.started.take)
    ]
    if not found:
        return None
    nearest = min(found, key=lambda attempt: (_KINDS.index(_kind(attempt, identity)), _order(attempt)))
    action: Literal["warn", "deny"] = "warn"
    if policy == "deny":
        action = "deny"
    elif policy == "auto" and spec.side_effecting:
        made = {_could_have_made(history, attempt, identity, fingerprint) for attempt in found}
        known = made == {True} or (False not in made and _attempted(history, identity, spec.name, digest))
        action = "warn" if known else "deny"
    return LedgerVerdict(_kind(nearest, identity), nearest.started.identity, nearest.cost, action)


def _counts(attempt: Attempt, launch: int) -> bool:
    return attempt.started.launch < launch and (attempt.committed is not None or attempt.holds_site)


def _order(attempt: Attempt) -> int:
    return attempt.started.attempt


def _kind(attempt: Attempt, identity: Identity) -> Kind:
    earlier = attempt.started.identity
    if earlier.site != identity.site:
        return "twin"
    return "repeat" if earlier.path == identity.path else "shift"


def _could_have_made(history: History, attempt: Attempt, identity: Identity, fingerprint: str) -> bool | None:
    """Whether the revision that made this attempt could itself have reached the identity; None: not proved."""
    for fact in history.revisions[attempt.started.revision].sites:
        if fact.site == identity.site:
            return fact.fingerprint == fingerprint and _reaches(fact, identity)
    return False


def _reaches(fact: SiteFact, identity: Identity) -> bool | None:
    """Whether a call of this site can have this path and occurrence, by its facts; None where they do not say."""
    if fact.per_path is not None and identity.occurrence >= fact.per_path:
        return False
    if fact.paths is None:
        return None
    ways = [levels for levels in fact.paths if len(levels) == len(identity.path)]
    if any(all(map(_admits, levels, identity.path)) for levels in ways):
        return True if fact.per_path is not None else None
    boundless = any(level.width is None and level.names is None for levels in ways for level in levels)
    return None if boundless else False


def _admits(level: Level, step: PathStep) -> bool:
    """Whether a fanout has a branch of this step."""
    if level.race:
        site, _, branch = str(step).rpartition(":")
        known = site.rpartition(":")[0] == level.race and branch.isdecimal()
        return known and level.width is not None and int(branch) < level.width
    if level.names is not None:
        return step in level.names
    return isinstance(step, int) and level.width is not None and step < level.width


def _attempted(history: History, identity: Identity, capability: str, digest: str) -> bool:
    attempt = history.latest_attempt.get(identity)
    return attempt is not None and (attempt.started.capability, attempt.started.digest) == (capability, digest)
