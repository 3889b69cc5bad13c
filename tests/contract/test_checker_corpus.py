"""The checker's verdict on every script and every repair of the corpus, as labelled (contract.md, section 4)."""

import json
from pathlib import Path

import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.report import Report

CORPUS = Path(__file__).parent.parent / "corpus"
TASKS = sorted(path.parent for path in CORPUS.glob("*/expect.json"))
REPAIRS = sorted(CORPUS.glob("*/repair-*.py"))


def judged(script: Path) -> Report:
    task = json.loads((script.parent / "task.json").read_text())
    return check(script.read_text(), Envelope(grants=tuple(task["grants"])))


def shown(report: Report) -> str:
    return "\n".join(f"{one.rule} {one.span.line}: {one.message}" for one in report.violations)


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_a_first_script_is_judged_as_its_label_says(task: Path) -> None:
    label = json.loads((task / "expect.json").read_text())
    report = judged(task / "script.py")
    found, wanted = {one.rule for one in report.violations}, set(label.get("rules", ()))
    assert report.valid is (label["check"] == "accept"), shown(report)
    assert wanted <= found, shown(report)
    assert found <= wanted | set(label.get("may_also_report", ())), shown(report)


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda path: f"{path.parent.name[:2]}/{path.stem[-1]}")
def test_a_repair_is_accepted(repair: Path) -> None:
    report = judged(repair)
    assert report.violations == (), shown(report)


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_an_accepted_script_has_a_bound_at_every_site(task: Path) -> None:
    report = judged(task / "script.py")
    if report.valid:
        assert report.script is not None
        for fact in report.script.sites:
            assert fact.total is not None
            assert fact.per_path is not None
            assert 1 <= fact.per_path <= fact.total


def test_the_whole_corpus_is_judged() -> None:
    assert (len(TASKS), len(REPAIRS)) == (40, 82)
