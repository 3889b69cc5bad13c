"""Mutants of the accepted scripts of the corpus: none that breaks a rule gets by, none that breaks none is refused."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from conftest import LONG
from contract_corpus import SCRIPTS
from tallystick.bench.paper.mutations import DESTROYING, PRESERVING, STILL_SOUND, Mutation
from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.providers.catalogue import CATALOGUE, spec

ACCEPTED = {
    path.parent.name: path.read_text(encoding="utf-8")
    for path in SCRIPTS
    if json.loads((path.parent / "expect.json").read_text(encoding="utf-8"))["check"] == "accept"
}
WITHOUT_MUSIC = Envelope(grants=tuple(name for name in CATALOGUE if name != "music.generate"), max_calls=300)
SPECS = {name: spec(name) for name in CATALOGUE}

#: Mutants that the checker judges wrongly, with the reason; one that it comes to judge rightly fails its test.
MISJUDGED: dict[tuple[str, str], str] = {}


class Mutant(NamedTuple):
    """A script after a mutation."""

    script: str
    mutation: str
    source: str


def mutants(mutations: Mapping[str, Mutation]) -> list[Mutant]:
    """Make the mutants; the short profile keeps every second."""
    return [
        Mutant(script, mutation, mutant)
        for at, (mutation, mutate) in enumerate(mutations.items())
        for number, (script, source) in enumerate(ACCEPTED.items())
        if (LONG or (at + number) % 2 == 0) and (mutation, script) not in STILL_SOUND
        if (mutant := mutate(source)) is not None
    ]


def parametrized(found: list[Mutant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "mutant",
        [
            pytest.param(
                mutant,
                id=f"{mutant.mutation}-{mutant.script[:2]}",
                marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [],
            )
            for mutant in found
            for reason in [MISJUDGED.get((mutant.mutation, mutant.script))]
        ],
    )


BROKEN = mutants({name: mutate for name, (_, mutate) in DESTROYING.items()})
SOUND = mutants(PRESERVING)


def errors(source: str, envelope: Envelope | None = None) -> set[str]:
    found = check(source, envelope, SPECS).violations
    return {violation.rule for violation in found if violation.severity == "error"}


def test_there_are_mutants_enough_to_say_anything() -> None:
    assert len(BROKEN) >= 250
    assert {rule[:3] for rule, _ in DESTROYING.values()} == {f"R{number:02}" for number in range(13)}
    assert len(SOUND) >= 140


@parametrized(BROKEN)
def test_a_mutant_that_breaks_a_rule_is_refused_by_that_rule(mutant: Mutant) -> None:
    rules = DESTROYING[mutant.mutation][0].split("|")
    assert errors(mutant.source, WITHOUT_MUSIC if rules == ["R11"] else None) & set(rules), mutant.source


@parametrized(SOUND)
def test_a_mutant_that_breaks_no_rule_is_accepted(mutant: Mutant) -> None:
    assert errors(mutant.source) == set(), mutant.source
