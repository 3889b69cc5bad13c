"""The gate's verdict on every repair of the corpus, frozen as the first launch left it.

Each first script is run by the stand-in provider up to the failure that its failure.json describes, so which sites
are frozen or held is what really committed, not a label. What a resume of the accepted ones ends in (the rest of each
verdict) is for the tests that run the product.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from contract_corpus import REPAIRS, Launch, launch
from tallystick.contract.gate import FrozenSite, freeze, gate
from tallystick.contract.script import Script, read_script


@cache
def first_launch(task: Path) -> tuple[Script, Launch, BaseException | None]:
    script = read_script((task / "script.py").read_text())
    return (script, *launch(task, script))


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda path: f"{path.parent.name[:2]}/{path.stem[-1]}")
def test_the_gate_judges_a_repair_as_its_label_says(repair: Path) -> None:
    script, run, error = first_launch(repair.parent)
    assert error is not None, "the first launch ends in a failure"
    held = {identity.site for identity in run.unresolved}
    touched = held | {identity.site for identity in run.committed}
    frozen = freeze(
        FrozenSite.of(script, fact, held=fact.site in held) for fact in script.sites if fact.site in touched
    )
    verdict = gate(frozen, read_script(repair.read_text()))

    label = json.loads(repair.with_name(repair.name.replace("repair", "verdict")).with_suffix(".json").read_text())
    assert [{"site": found.site, "kind": found.kind} for found in verdict.counterexamples] == sorted(
        label["counterexamples"], key=lambda found: found["site"]
    )
    assert verdict.accepted is (label["gate"] == "accept")


def test_every_repair_of_the_corpus_is_judged() -> None:
    assert len(REPAIRS) == 82
