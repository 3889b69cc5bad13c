"""`skill`, `author`, `repair` and `--auto-repair`: what is asked of the daemon, what is shown of a model's work."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli_support import COUNTEREXAMPLE, RUN, SCRIPT, FakeDaemon, Stream, progress, ran, rendered, report
from tallystick.cli import rewrites
from tallystick.cli.main import main
from tallystick.contract.events import ErrorInfo
from tallystick.engine.authoring.choices import AutoRepairReport, CandidateLine
from tallystick.engine.authoring.messages import CandidateReport, SkillDocument, WritingReport
from tallystick.engine.messages import Excerpt, PlannedStop, PlanReport, Region, Spend

FIXED = SCRIPT.replace('{"prompt": "x"}', '{"prompt": "x"}, take="again"')
FROZEN = Excerpt(2, 17, 2, 58, text='ctx.run("text.generate", {"prompt": "x"})')


def candidate(number: int = 1, **changes: Any) -> CandidateReport:
    plain = CandidateReport(
        candidate=number,
        purpose="repair",
        revision=0,
        state="accepted",
        provider="openai",
        model="m-1",
        at=1.0,
        digest="d" * 64,
        text="",
        cost_usd=0.003,
        tokens=2_000,
        source=FIXED,
    )
    return msgspec.structs.replace(plain, **changes)


def written(**changes: Any) -> WritingReport:
    plain = WritingReport(
        run=RUN,
        purpose="repair",
        state="accepted",
        model="m-1",
        base=SCRIPT,
        source=FIXED,
        frozen=(FROZEN,),
        candidates=(
            candidate(
                1, state="rejected", text="removed orchestrate/#1", source="x = 1\n", counterexamples=(COUNTEREXAMPLE,)
            ),
            candidate(2),
        ),
        spend=Spend(usd=0.1, models_usd=0.006),
    )
    return msgspec.structs.replace(plain, **changes)


def given_up() -> WritingReport:
    error = ErrorInfo("TS-M001", "m-1 was asked 3 time(s), and no script of it was accepted", "ask again")
    return written(state="given_up", source=None, error=error)


def works(daemon: FakeDaemon, found: WritingReport, *, path: str = f"/runs/{RUN}/repair") -> None:
    """Have the daemon take a model's work on, stream it, and report it."""
    daemon.says("POST", path, msgspec.structs.replace(found, state="writing", source=None, candidates=()))
    daemon.says(
        "GET",
        f"/runs/{RUN}/events",
        Stream(progress("snapshot"), progress("asked", text="m-1 is asked"), progress("ended")),
    )
    daemon.says("GET", f"/runs/{RUN}/repair", found)
    daemon.says("GET", f"/runs/{RUN}", report(status="failed"))


def test_the_skill_document_is_printed_as_it_is(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says("GET", "/skill", SkillDocument("# Skill\n", 3))
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == "# Skill\n"
    assert main(["skill", "-o", str(tmp_path / "skill.md")]) == 0
    assert (tmp_path / "skill.md").read_text() == "# Skill\n"
    assert main(["skill", "-o", str(tmp_path / "skill.md")]) == 2


def test_a_repair_shows_verdicts_and_the_change_with_paid_lines_marked(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    works(daemon, written())
    assert (
        main(["repair", RUN, "--model", "m-1", "--base-url", "http://box/v1", "--attempts", "2", "--wish", "more"]) == 0
    )
    assert daemon.body("POST", f"/runs/{RUN}/repair") == {
        "model": {"model": "m-1", "base_url": "http://box/v1", "provider": None},
        "attempts": 2,
        "wish": "more",
        "arm": "sites",
        "budget_usd": None,
    }
    shown = capsys.readouterr()
    assert "$-" in shown.out
    assert "+    return await" in shown.out
    assert "lines with $ hold committed calls" in shown.out
    assert "candidate 1: removed orchestrate/#1" in shown.err
    assert "the committed call is gone" in shown.err
    assert f"tally repair {RUN} --candidate 2 --apply" in shown.err
    assert "2 answers of m-1, 4,000 tokens, $0.006" in shown.err
    assert not [path for _, path, _ in daemon.asked if path.endswith(("/plan", "/resume"))]


def test_an_applied_repair_shows_its_plan_and_resumes(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    ran(daemon, report())
    works(daemon, written())
    daemon.says("GET", f"/runs/{RUN}", report())
    daemon.says("POST", f"/runs/{RUN}/plan", PlanReport(state="finished", replay=7))
    assert main(["repair", RUN, "--budget", "2", "--apply", "--json"]) == 0
    assert daemon.body("POST", f"/runs/{RUN}/plan")["source"] == FIXED
    assert daemon.body("POST", f"/runs/{RUN}/resume")["limits"] == {"budget_usd": 2.0}
    shown = json.loads(capsys.readouterr().out)
    assert (shown["plan"]["replay"], shown["run"]["status"]) == (7, "completed")
    assert shown["repair"]["source"] == FIXED


def test_a_plan_with_a_stop_is_not_resumed(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    works(daemon, written())
    stop = PlannedStop("TS-D001", "orchestrate/#1 [] 0 diverges", "put it back")
    daemon.says("POST", f"/runs/{RUN}/plan", PlanReport(state="blocked", replay=1, diverge=(stop,)))
    assert main(["repair", RUN, "--apply"]) == 4
    assert "it was not resumed" in capsys.readouterr().err
    assert not [path for _, path, _ in daemon.asked if path.endswith("/resume")]


def test_a_candidate_of_before_is_taken_without_asking_anybody(daemon: FakeDaemon, tmp_path: Path) -> None:
    works(daemon, written(candidates=(candidate(2),)))
    assert main(["repair", RUN, "--candidate", "2", "-o", str(tmp_path / "fixed.py")]) == 0
    assert (tmp_path / "fixed.py").read_text() == FIXED
    assert [asked[:2] for asked in daemon.asked] == [("GET", f"/v1/runs/{RUN}/repair?candidate=2")]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_model_without_a_script_ends_with_its_code(
    daemon: FakeDaemon, as_json: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    works(daemon, given_up())
    assert main(["repair", RUN, "--apply", *as_json]) == 3
    shown = capsys.readouterr()
    assert ("TS-M001" in shown.out) if as_json else ("error[TS-M001]" in shown.err)


def test_a_script_is_written_to_a_file_and_said_to_be_a_draft(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    works(daemon, written(purpose="author", base="", frozen=()), path="/author")
    path = tmp_path / "shots.py"
    assert main(["author", "six shots", "--model", "m-1", "--grant", "a.b", "--budget", "2", "-o", str(path)]) == 0
    assert path.read_text() == FIXED
    asked = daemon.body("POST", "/author")
    assert (asked["request"], asked["limits"]) == ("six shots", {"grants": ["a.b"], "budget_usd": 2.0})
    assert f"`tally resume {RUN}` starts it" in capsys.readouterr().err


def test_a_file_that_exists_is_noticed_before_anything_is_paid(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shots.py"
    path.write_text("mine")
    assert main(["author", "six shots", "-o", str(path)]) == 2
    assert main(["repair", RUN, "-o", str(path)]) == 2
    assert path.read_text() == "mine"
    assert daemon.asked == []
    assert "nobody was asked" in capsys.readouterr().err


def test_a_run_may_repair_itself(daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    why = ErrorInfo("TS-M003", "its 2 rewrite(s) are used up", "")
    ran(daemon, report(status="failed", reason="TS-R001", auto_repair=AutoRepairReport(2, 2, over=True, why=why)))
    assert main(["run", script, "--auto-repair", "2", "--model", "m-1"]) == 1
    assert daemon.body("POST", "/runs")["auto_repair"] == {
        "rewrites": 2,
        "model": {"model": "m-1", "base_url": None, "provider": None},
    }
    assert "2 of at most 2 rewrites; it stopped: [TS-M003]" in capsys.readouterr().out
    assert main(["run", script, "--model", "m-1"]) == 2
    assert main(["resume", RUN, "--auto-repair", "1"]) == 1
    assert daemon.body("POST", f"/runs/{RUN}/resume")["auto_repair"]["rewrites"] == 1


def test_show_lists_what_models_were_asked_for(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    fields = {name: getattr(candidate(), name) for name in CandidateLine.__struct_fields__}
    rejected = CandidateLine(**{**fields, "state": "rejected", "text": "R03", "cost_usd": None})
    daemon.says("GET", f"/runs/{RUN}", report(candidates=(rejected,), spend=Spend(usd=0.5, models_usd=0.2)))
    assert main(["show", RUN]) == 0
    shown = capsys.readouterr().out
    assert "repair of revision 0" in shown
    assert "unknown" in shown
    assert "$0.20 of it for models" in shown


def test_a_diff_marks_what_is_paid_and_is_harmless() -> None:
    old = "\n".join(f"line {number}" for number in range(1, 13))
    new = old.replace("line 6", "line \x1b[31m6")
    lines = rendered(rewrites.diff(old, new, [Region(7, 0, 8, 3)]))
    assert lines[2] == "@@ -3,7 +3,7 @@"
    assert lines[3:] == [
        "  line 3",
        "  line 4",
        "  line 5",
        " -line 6",
        " +line \\x1b[31m6",
        "$ line 7",
        "$ line 8",
        "  line 9",
        "lines with $ hold committed calls, which replay for free",
    ]
    assert "the scripts are the same" in rendered(rewrites.diff(old, old, []))[-1]
