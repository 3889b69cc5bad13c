"""The corpus runs, fails as its failure.json says, and its repairs end as their verdicts say."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import TallyError

CORPUS = Path(__file__).parent.parent / "corpus"

#: What a resume ends in: refused by the plan, or a report.
ENDS = {"completes": None, "diverges": "TS-D001", "unresolved": "TS-A001", "repeat_denied": "TS-P005"}


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
        error: dict[str, str] = read(self.folder / "failure.json")["error"]
        return error

    def repair(self, number: str) -> tuple[str, dict[str, Any]]:
        source = (self.folder / f"repair-{number}.py").read_text(encoding="utf-8")
        return source, read(self.folder / f"verdict-{number}.json")


ACCEPTED = [
    folder.name
    for folder in sorted(CORPUS.iterdir())
    if folder.is_dir() and read(folder / "expect.json")["check"] == "accept"
]
REPAIRS = [f"{name}/{file.stem[-1]}" for name in ACCEPTED for file in sorted((CORPUS / name).glob("repair-*.py"))]


def runtime_of(item: str) -> str | None:
    name, _, number = item.partition("/")
    runtime: str | None = Task(name).repair(number)[1]["runtime"]
    return runtime


class Ended(NamedTuple):
    """How a resume ended: its code, None when it completed, and what a completed one has to say."""

    code: str | None
    orphans: int = 0
    repeats: int = 0


async def resumed(engine: House, run: str, candidate: str, **options: Any) -> Ended:
    try:
        report = await engine.resume(run, candidate, **options)
    except TallyError as error:
        return Ended(error.code)
    repeats = [warning for warning in report.warnings if "already paid" in warning]
    if report.reason is not None:
        return Ended(report.reason)
    return Ended(None, len(report.orphans), len(repeats))


def test_every_accepted_task_and_repair_is_looked_at() -> None:
    assert len(ACCEPTED) == 27
    assert len(REPAIRS) == 82


@pytest.mark.parametrize("name", ACCEPTED)
async def test_the_first_launch_fails_as_its_failure_says(name: str) -> None:
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


@pytest.mark.parametrize("item", REPAIRS)
async def test_a_repair_ends_as_its_verdict_says(item: str) -> None:
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
        ended = await resumed(engine, failed.run, candidate, preflight=True)
        assert ended.code == (ENDS[verdict["runtime"]] if verdict["runtime"] else "TS-G001")
        assert ended.orphans == verdict.get("orphans", 0)
        assert ended.repeats == verdict.get("warned", 0)
        assert witness.count() - calls["failed_run"] == calls["repair"]
        await assert_standing(engine, failed.run)

    async with witnessed(Witness(world=witness._world)) as (engine, rerun):
        report = await engine.run(candidate, task.args, grants=task.grants)
        assert rerun.count() == calls["full_rerun"]
        await assert_standing(engine, report.run)


@pytest.mark.parametrize("item", [item for item in REPAIRS if runtime_of(item) not in (None, "completes")])
async def test_without_a_plan_a_stop_costs_no_more_than_its_verdict_allows(item: str) -> None:
    name, _, number = item.partition("/")
    task = Task(name)
    candidate, verdict = task.repair(number)
    calls = verdict["provider_calls"]
    async with witnessed(Witness.for_task(task.folder)) as (engine, witness):
        failed = await engine.run(task.script, task.args, grants=task.grants)
        witness.calm()
        ended = await resumed(engine, failed.run, candidate, preflight=False)
        assert ended.code == ENDS[verdict["runtime"]]
        assert witness.count() - calls["failed_run"] <= verdict.get("repair_calls_at_most", calls["repair"])
        await assert_standing(engine, failed.run)
