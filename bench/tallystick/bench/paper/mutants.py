"""P2: mutants of accepted scripts, those that break a rule and those that break none, as the checker judges them."""

from collections.abc import Sequence

from tallystick.bench.paper.line import Line
from tallystick.bench.paper.mutations import DESTROYING, PRESERVING, STILL_SOUND
from tallystick.bench.repair.corpus import Task
from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.providers.catalogue import CATALOGUE, spec

ENVELOPE = Envelope(grants=tuple(name for name in CATALOGUE if name != "music.generate"), max_calls=300)
ENVELOPE_RULE = "R11"
_SPECS = {name: spec(name) for name in CATALOGUE}


def p2(corpus: Sequence[Task]) -> list[Line]:
    """Return P2: false accepts among the mutants that break a rule, false refusals among those that break none."""
    bases = [task for task in corpus if not task.refused]
    broken = sound = accepted = refused = missed = 0
    for task in bases:
        for name, (rules, mutate) in DESTROYING.items():
            mutant = None if (name, task.name) in STILL_SOUND else mutate(task.script)
            if mutant is not None:
                found = _errors(mutant, ENVELOPE if rules == ENVELOPE_RULE else None)
                broken += 1
                accepted += not found
                missed += bool(found) and not found & set(rules.split("|"))
        for preserve in PRESERVING.values():
            mutant = preserve(task.script)
            if mutant is not None:
                sound += 1
                refused += bool(_errors(mutant, None))
    reason = (
        f"{len(bases)} bases with {len(DESTROYING)} mutations that break a rule and {len(PRESERVING)} that break none, "
        "where the paper has 40 with nine rules' and five"
    )
    return [
        Line("P2", "mutants that break a rule and are accepted", "0 of 269", f"{accepted} of {broken}", reason),
        Line("P2", "mutants that break none and are refused", "0 of 142", f"{refused} of {sound}", reason),
        Line("P2", "mutants refused by another rule than the broken one", "0", str(missed)),
    ]


def _errors(source: str, envelope: Envelope | None) -> set[str]:
    return {found.rule for found in check(source, envelope, _SPECS).violations if found.severity == "error"}
