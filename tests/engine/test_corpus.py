"""The corpus runs, fails as its failure.json says, and its repairs end as their verdicts say."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import AttemptUnresolvedError, GateStoppedError

CORPUS = Path(__file__).parent.parent / "corpus"

#: What cannot be as labelled yet, and why. Each of these must fail: one that begins to pass leaves the list.
NOT_YET = {
    "15-mascot-race": "ctx.race is not built",
    "09-festival-posters/1": "survived failures are not replayed: the failed image runs again",
    "17-batch-with-handover/1": "survived failures are not replayed: the failed text runs again",
    "33-lyric-loops/1": "survived failures are not replayed: the failed clip runs again, and what followed diverges",
    "02-inbox-triage/3": "the ledger does not name shifts",
    "06-podcast-opener/2": "the ledger does not name twins",
    "06-podcast-opener/3": "the ledger does not name shifts",
    "04-picture-book/3": "its full rerun asks for an image with an empty prompt, which the catalogue refuses",
}
ENDS = {
    "completes": ("completed", None),
    "diverges": ("stopped", "TS-D001"),
    "repeat_denied": ("stopped", "TS-P005"),
}


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


class Task:
    """A task of the corpus."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = CORPUS / name
        self.script = (self.folder / "script.py").read_text(encoding="utf-8")
        task = read(self.folder / "task.json")
        self.args, self.grants = task["args"], tuple(task["grants"])

    @property
    def failed_identities(self) -> list[str]:
        failure = read(self.folder / "failure.json")
        return [one["fail_at"]["identity"] for one in (*failure.get("earlier", ()), failure) if one["fail_at"]]

    @property
    def failure(self) -> dict[str, str]:
        return read(self.folder / "failure.json")["error"]

    def repair(self, number: str) -> tuple[str, dict[str, Any]]:
        source = (self.folder / f"repair-{number}.py").read_text(encoding="utf-8")
        return source, read(self.folder / f"verdict-{number}.json")


ACCEPTED = [
    folder.name
    for folder in sorted(CORPUS.iterdir())
    if folder.is_dir() and read(folder / "expect.json")["check"] == "accept"
]
REPAIRS = [f"{name}/{file.stem[-1]}" for name in ACCEPTED for file in sorted((CORPUS / name).glob("repair-*.py"))]


def listed(items: list[str]) -> list[Any]:
    """Mark the items of the list as failing; xfail is strict here, so the list cannot grow stale."""
    marked = []
    for item in items:
        why = NOT_YET.get(item) or NOT_YET.get(item.partition("/")[0])
        marked.append(pytest.param(item, marks=pytest.mark.xfail(reason=why, strict=True)) if why else item)
    return marked


def test_the_list_names_items_of_the_corpus():
    assert len(ACCEPTED) == 27
    assert len(REPAIRS) == 82
    assert {item for item in NOT_YET if item not in REPAIRS} == {"15-mascot-race"}


@pytest.mark.parametrize("name", listed(ACCEPTED))
async def test_the_first_launch_fails_as_its_failure_says(name: str):
    task = Task(name)
    async with witnessed(Witness.for_task(task.folder)) as (engine, _):
        report = await engine.run(task.script, task.args, grants=task.grants)
        attempts = await engine.attempts(report.run)
        failed = [attempt for attempt in attempts if attempt.state != "committed"]
        assert [str(attempt.identity) for attempt in failed] == task.failed_identities
        assert report.error is not None
        if not failed:
            assert report.reason == "TS-R001"
        else:
            assert (failed[-1].kind, failed[-1].text) == (task.failure["kind"], task.failure["text"])
            assert report.reason == ("TS-A002" if failed[-1].state == "unresolved" else "TS-R002")
            assert task.failure["text"] in report.error.message
        await assert_standing(engine, report.run)


@pytest.mark.parametrize("item", listed(REPAIRS))
async def test_a_repair_ends_as_its_verdict_says(item: str):
    name, _, number = item.partition("/")
    task = Task(name)
    candidate, verdict = task.repair(number)
    calls = verdict["provider_calls"]
    async with witnessed(Witness.for_task(task.folder)) as (engine, witness):
        failed = await engine.run(task.script, task.args, grants=task.grants)
        assert witness.count() == calls["failed_run"]
        witness.calm()

        gate = await engine.gate(failed.run, candidate)
        assert gate.accepted == (verdict["gate"] == "accept")
        assert [{"site": one.site, "kind": one.kind} for one in gate.counterexamples] == verdict["counterexamples"]
        if verdict["gate"] == "stop":
            with pytest.raises(GateStoppedError):
                await engine.resume(failed.run, candidate)
        elif verdict["runtime"] == "unresolved":
            with pytest.raises(AttemptUnresolvedError):
                await engine.resume(failed.run, candidate)
        else:
            resumed = await engine.resume(failed.run, candidate)
            assert (resumed.status, resumed.reason) == ENDS[verdict["runtime"]]
            if verdict["runtime"] == "completes":
                repeats = [warning for warning in resumed.warnings if "already paid" in warning]
                found = (len(resumed.orphans), len(repeats))
                assert found == (verdict.get("orphans", 0), verdict.get("warned", 0))
        spent = witness.count() - calls["failed_run"]
        assert spent <= verdict.get("repair_calls_at_most", calls["repair"])
        if "repair_calls_at_most" not in verdict:
            # The others label a resume with a plan before it; without one, a stop beside new work may cost that work.
            assert spent == calls["repair"]
        await assert_standing(engine, failed.run)

    async with witnessed(Witness(world=witness._world)) as (engine, rerun):
        await engine.run(candidate, task.args, grants=task.grants)
        assert rerun.count() == calls["full_rerun"]
