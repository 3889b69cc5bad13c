"""The committed prefix of a run, as the gate and the report read it (contract.md, sections 5 and 7)."""

from collections.abc import Collection

from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.gate import FrozenSite, freeze
from tallystick.contract.history import History
from tallystick.contract.identity import Identity, Schemes
from tallystick.contract.positions import SourceMap
from tallystick.contract.source import Span


def frozen_sites(history: History) -> dict[str, FrozenSite]:
    """Return the sites that a rewrite must keep: those with a record or a decided race, and those that are held.

    A site with an open or unusable side-effecting attempt is held (contract.md, section 6.2).

    Raises:
        PrefixConflictError: two records or attempts of one site disagree on capability or fingerprint.
    """
    found: dict[tuple[str, str, str, int, bool], FrozenSite] = {}
    for attempt in history.attempts.values():
        started, held = attempt.started, attempt.holds_site
        if not held and attempt.committed is None:
            continue
        site = started.identity.site
        key = (site, started.capability, started.fingerprint, started.revision, held)
        if key not in found:
            span, text = _source_of(history, started.revision, site)
            found[key] = FrozenSite(site, "call", started.capability, started.fingerprint, held, span, text)
    for race in history.races.values():
        site = race.identity.site
        key = (site, "", race.fingerprint, race.revision, False)
        if key not in found:
            span, text = _source_of(history, race.revision, site)
            found[key] = FrozenSite(site, "race", "", race.fingerprint, held=False, span=span, text=text)
    return freeze(found.values())


def orphans(history: History, invoked: Collection[Identity], raced: Collection[Identity]) -> tuple[Identity, ...]:
    """Return the committed identities that a launch did not invoke (contract.md, section 7).

    Args:
        history: the run.
        invoked: the calls that the launch invoked.
        raced: the races that it invoked: what their losers had committed is no orphan.
    """
    skipped = [
        identity for identity in history.records.keys() - set(invoked) if not is_losers(history, identity, raced)
    ]
    return tuple(sorted(skipped, key=lambda identity: identity.sort_key))


def is_losers(history: History, identity: Identity, raced: Collection[Identity]) -> bool:
    """Whether a call belongs to a branch that lost one of the decided races in ``raced``."""
    for depth, step in enumerate(identity.path):
        if not isinstance(step, str) or step.count(":") < 2:  # noqa: PLR2004 - site:occurrence:branch
            continue
        site, occurrence, branch = step.rsplit(":", 2)
        if not (occurrence.isdecimal() and branch.isdecimal()):
            continue
        race = Identity(site, identity.path[:depth], int(occurrence))
        decided = history.races.get(race)
        if decided is not None and race in raced and decided.winner != int(branch):
            return True
    return False


def check_schemes(history: History) -> None:
    """Refuse records of a scheme this build does not know: they are never re-paid (contract.md, section 2).

    Raises:
        StoreCorruptError: naming the record and its schemes.
    """
    for record in history.records.values():
        if record.schemes != Schemes():
            raise StoreCorruptError(
                f"the record of {record.identity} was written under the schemes {record.schemes}, which this build "
                "does not know",
                hint="resume this run with the release that wrote it, or a newer one",
            )


def _source_of(history: History, revision: int, site: str) -> tuple[Span, str]:
    source = history.revisions[revision]
    for fact in source.sites:
        if fact.site == site:
            return fact.span, SourceMap.of(source.source).text(fact.span)
    raise StoreCorruptError(
        f"revision {revision} of run {history.run} has an attempt at {site}, which is not one of its sites",
        hint="keep the state directory as it is and run tally doctor",
    )
