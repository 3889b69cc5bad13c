"""The gate: does a rewrite leave every committed call where and as it stands (contract.md, section 5)?

Pure, and before any sandbox starts: a stopped candidate costs nothing. It compares sites, capabilities and
fingerprints; what the values of a call become is for the runtime rule to judge.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from tallystick.contract.errors import PrefixConflictError
from tallystick.contract.script import Script
from tallystick.contract.source import Counterexample, SiteFact, Span

_Finding: TypeAlias = Literal["removed", "capability_changed", "call_changed"]

_Expression: TypeAlias = "tuple[str, str, str]"

_FUNCTION_NUMBER = re.compile(r"(?<=<lambda)\d+(?=>)|~\d+(?=\.|$)")
_BLOCK_NUMBER = re.compile(r"\d+")


class FrozenSite(msgspec.Struct, frozen=True):
    """A site that a rewrite must leave alone, as its latest revision had it.

    ``held`` says that an attempt at it is open, unresolved or unusable (side-effecting); otherwise it has a record.
    ``capability`` is "" for a race.
    """

    site: str
    kind: Literal["call", "race"]
    capability: str
    fingerprint: str
    held: bool
    span: Span
    text: str

    @staticmethod
    def of(script: Script, fact: SiteFact, *, held: bool = False) -> "FrozenSite":
        """Freeze a site of ``script``."""
        return FrozenSite(fact.site, fact.kind, fact.capability, fact.fingerprint, held, fact.span, script.text(fact))


class Verdict(msgspec.Struct, frozen=True):
    """What the gate says of a candidate: counterexamples sorted by site, one a site; accepted when there is none."""

    accepted: bool
    counterexamples: tuple[Counterexample, ...] = ()


def freeze(entries: Iterable[FrozenSite]) -> dict[str, FrozenSite]:
    """Bring what records and attempts say of their sites, oldest first, to one entry a site.

    The latest entry gives span and text; a site is held when any entry holds it.

    Raises:
        PrefixConflictError: two entries of one site disagree on capability or fingerprint.
    """
    frozen: dict[str, FrozenSite] = {}
    for entry in entries:
        known = frozen.get(entry.site, entry)
        if (known.kind, known.capability, known.fingerprint) != (entry.kind, entry.capability, entry.fingerprint):
            raise PrefixConflictError(
                f"the records of {entry.site} disagree: {_name(known)} with fingerprint {known.fingerprint[:12]} and "
                f"{_name(entry)} with {entry.fingerprint[:12]}; nothing was started",
                hint="no rewrite can be judged against this run: check the store with `tally doctor`",
                details=[known, entry],
            )
        frozen[entry.site] = msgspec.structs.replace(entry, held=known.held or entry.held)
    return frozen


def gate(frozen: Mapping[str, FrozenSite], candidate: Script, retired: frozenset[str] = frozenset()) -> Verdict:
    """Compare a candidate with the frozen sites of its run; ``retired`` releases those that are not held."""
    facts = {fact.site: fact for fact in candidate.sites}
    changed = [
        (old, finding)
        for site, old in sorted(frozen.items())
        if old.held or site not in retired
        if (finding := _compare(old, facts.get(site))) is not None
    ]
    if not changed:
        return Verdict(accepted=True)
    intact = {site for site, old in frozen.items() if _compare(old, facts.get(site)) is None}
    free: dict[_Expression, list[SiteFact]] = {}
    for fact in candidate.sites:
        if fact.site not in intact:
            free.setdefault(_expression(fact), []).append(fact)
    counterexamples = []
    for old, finding in changed:
        equal = _nearest(old, free.get(_expression(old), []))
        new = facts.get(old.site)
        shown = new or next(iter(equal), None)
        moved = next((fact.site for fact in equal if fact.site not in frozen), None)
        happened, advice = _shift(old, equal[0]) if equal else ("", _ADVICE[finding])
        counterexamples.append(
            Counterexample(
                site=old.site,
                kind="unresolved_moved" if old.held else finding,
                message=f"{_subject(old)} {_change(finding, new)}{happened}",
                hint=_SETTLE if old.held else advice,
                old_span=old.span,
                old_text=old.text,
                new_span=shown.span if shown else None,
                new_text=candidate.text(shown) if shown else None,
                moved_to=moved if finding == "removed" else None,
            )
        )
    return Verdict(accepted=False, counterexamples=tuple(counterexamples))


def _expression(site: FrozenSite | SiteFact) -> _Expression:
    return site.kind, site.capability, site.fingerprint


def _compare(old: FrozenSite, new: SiteFact | None) -> _Finding | None:
    if new is None:
        return "removed"
    if new.capability != old.capability:
        return "capability_changed"
    return "call_changed" if new.fingerprint != old.fingerprint else None


def _numbers(site: str) -> tuple[str, list[int]]:
    """Split a site into the place that it names and its numbers: ``f/for2/#1`` is ``f/for/#`` and [2, 1]."""
    function, _, blocks = site.partition("/")
    place = f"{_FUNCTION_NUMBER.sub('', function)}/{_BLOCK_NUMBER.sub('', blocks)}"
    numbers = [*_FUNCTION_NUMBER.findall(function), *_BLOCK_NUMBER.findall(blocks)]
    return place, [int(number.lstrip("~")) for number in numbers]


def _nearest(old: FrozenSite, equal: list[SiteFact]) -> list[SiteFact]:
    """Sort equal calls: first those whose site differs from the frozen one in its numbers only, the higher ahead."""
    place, numbers = _numbers(old.site)

    def distance(fact: SiteFact) -> tuple[bool, bool, int]:
        other_place, other = _numbers(fact.site)
        return other_place != place, other < numbers, sum(abs(a - b) for a, b in zip(other, numbers, strict=False))

    return sorted(equal, key=distance)


def _name(site: FrozenSite | SiteFact) -> str:
    return "ctx.race" if site.kind == "race" else site.capability


def _subject(old: FrozenSite) -> str:
    state = (
        "call with an unsettled attempt" if old.held else "journalled race" if old.kind == "race" else "committed call"
    )
    return f"the {state} {old.site} ({_name(old)}, line {old.span.line})"


def _change(finding: _Finding, new: SiteFact | None) -> str:
    if new is None:
        return "is not in the rewrite"
    if finding == "capability_changed":
        return f"calls {_name(new) or 'a computed capability'} in the rewrite (line {new.span.line})"
    return f"is another expression in the rewrite (line {new.span.line})"


def _shift(old: FrozenSite, equal: SiteFact) -> tuple[str, str]:
    """Return what an equal call elsewhere tells of the change, and what to write instead."""
    (place, numbers), (new_place, new_numbers) = _numbers(old.site), _numbers(equal.site)
    where = f"{equal.site} (line {equal.span.line})"
    if place != new_place:
        return (
            f"; an equal call stands at {where}, where it is new work and would be paid for again",
            "leave the call in its function and block: elsewhere it is another call. Change the statements around it",
        )
    if new_numbers > numbers:
        return (
            f"; its expression now stands at {where}, which is where a call or block put ahead of it pushes it",
            "keep the committed call ahead: append the new call or block after it, not before",
        )
    return (
        f"; its expression now stands at {where}, which is where it slides when a call or block ahead of it goes",
        "leave the calls ahead of it where they were: they cost nothing on replay, and their results need not be used",
    )


_SETTLE = (
    "put the call back as and where it was, or settle its attempt first (`tally attempts`, `tally reconcile`): "
    "nobody knows yet whether it was paid for"
)
_ADVICE: dict[_Finding, str] = {
    "removed": "put the call back where it stood: it costs nothing on replay, and its result need not be used",
    "capability_changed": "put the committed call back, append the new call after it, and use the new call's result",
    "call_changed": (
        "put the expression back. For work that has not committed, change the values it reads in statements before it; "
        "to replace a committed result, append a new call after it and use that result"
    ),
}
