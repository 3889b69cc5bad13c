import json
from pathlib import Path

import msgspec
import pytest

from cli_support import RUN, SCRIPT, SHOT, FakeDaemon, ran, report
from tallystick.cli.main import main
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.engine.messages import GateReport, PlannedCall, PlannedStop, PlanReport

CALL = Identity("orchestrate/#1", (), 0)
DIVERGED = PlannedStop("TS-D001", "it asks for something else there: payload.prompt: 'x' -> 'y'", "restore it", CALL)
DENIED = PlannedStop("TS-P001", "text.generate is not granted", "grant it", SHOT)
HELD = PlannedStop("TS-A001", "the outcome of attempt 4 is unknown", "look it up", SHOT)


def plan(**changes: object) -> PlanReport:
    return msgspec.structs.replace(PlanReport(state="finished", replay=3), **changes)


def test_a_plan_shows_what_replays_what_is_paid_and_what_is_left_out(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = (PlannedCall(SHOT, "image.generate", 0.02), PlannedCall(CALL, "text.generate", 0.005, "paid before"))
    daemon.says(
        "POST",
        f"/runs/{RUN}/plan",
        plan(state="blocked", new=new, unknown=(CALL,), estimate_usd=0.025),
    )
    assert main(["plan", RUN, script]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.rstrip() for line in out.splitlines()] == [
        "new call                   capability      estimate  warning",
        "orchestrate.shot/#1 [3] 0  image.generate  $0.02",
        "orchestrate/#1 [] 0        text.generate   $0.005    paid before",
        "",
        "  replay         3 calls, paid already",
        "  new            2 calls, about $0.025 so far: each may lead to more",
        "  not yet known  orchestrate/#1 [] 0",
        "nothing stops it; nothing was started, nothing was spent",
    ]


def test_a_plan_is_asked_for_a_script_args_and_limits(daemon: FakeDaemon, script: str) -> None:
    daemon.says("POST", f"/runs/{RUN}/plan", plan())
    daemon.says("GET", f"/runs/{RUN}/source", {"source": SCRIPT, "args": None, "revision": 0})
    assert main(["plan", RUN]) == 0
    assert daemon.body("POST", f"/runs/{RUN}/plan") == {"source": None, "limits": {}}
    assert main(["plan", RUN, script, "--args", "[1]", "--grant", "a.b", "--repeats", "off", "--max-calls", "2"]) == 0
    assert daemon.body("POST", f"/runs/{RUN}/plan") == {
        "source": SCRIPT,
        "args": [1],
        "limits": {"grants": ["a.b"], "repeat_policy": "off", "max_calls": 2},
    }


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (plan(orphans=(SHOT,)), 0),
        (plan(stops=(DENIED,)), 6),
        (plan(stops=(DENIED, HELD)), 5),
        (plan(stops=(HELD,), diverge=(DIVERGED,)), 4),
        (plan(state="failed", error=ErrorInfo("TS-R001", "KeyError: 'brief'", "repair it")), 1),
        (plan(state="failed", error=ErrorInfo("TS-S003", "a value is damaged", "")), 7),
    ],
)
def test_a_plan_exits_as_the_resume_would(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str], found: PlanReport, status: int
) -> None:
    daemon.says("POST", f"/runs/{RUN}/plan", found)
    assert main(["plan", RUN, script]) == status
    assert ("nothing stops it" in capsys.readouterr().out) is (status == 0)
    assert main(["plan", RUN, script, "--json"]) == status
    assert json.loads(capsys.readouterr().out) == json.loads(msgspec.json.encode(found))


def test_a_stop_is_shown_where_it_stands_in_the_script(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says("POST", f"/runs/{RUN}/plan", plan(diverge=(DIVERGED,), stops=(DENIED,)))
    assert main(["plan", RUN, script]) == 4
    assert capsys.readouterr().out.splitlines() == [
        "error[TS-D001]: it asks for something else there: payload.prompt: 'x' -> 'y'",
        " --> shots.py:2:18",
        "  |",
        '2 |     return await ctx.run("text.generate", {"prompt": "x"})',
        "  |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "   = help: restore it",
        "",
        "error[TS-P001]: text.generate is not granted",  # the script at hand has no such site
        "   = help: grant it",
        "",
        "  replay  3 calls, paid already",
        "  new     none",
        "would stop: 1 divergence, 1 other stop; nothing was started, nothing was spent",
    ]


def test_a_resume_that_its_plan_stops_shows_every_stop_once(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    details = plan(diverge=(DIVERGED,), stops=(HELD,))
    daemon.refuses("POST", f"/runs/{RUN}/resume", "TS-D001", DIVERGED.message, hint="restore it", details=details)
    assert main(["resume", RUN, "--script", script]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count(DIVERGED.message) == err.count(HELD.message) == 1
    assert " --> shots.py:2:18\n" in err
    assert "the plan of this resume has 2 stops; nothing was started, nothing was spent" in err
    assert main(["resume", RUN, "--script", script, "--json"]) == 4
    body = json.loads(capsys.readouterr().out)
    assert (body["error"]["message"], body["details"]["replay"]) == (DIVERGED.message, 3)


def test_a_resume_with_other_args_quotes_the_committed_script(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.refuses("POST", f"/runs/{RUN}/resume", "TS-D001", "no", details=plan(diverge=(DIVERGED,)))
    daemon.says("GET", f"/runs/{RUN}/source", {"source": SCRIPT, "args": None, "revision": 2})
    assert main(["resume", RUN, "--args", "1"]) == 4
    assert " --> revision 2:2:18\n" in capsys.readouterr().err


def test_a_resume_may_skip_its_plan_and_retry_what_had_failed(daemon: FakeDaemon) -> None:
    ran(daemon, report())
    assert main(["resume", RUN]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/resume")
    assert (asked["preflight"], asked["retry_failed"], bool(asked["who"])) == (True, [], True)
    assert main(["resume", RUN, "--no-preflight", "--retry-failed", str(SHOT), "--retry-failed", str(CALL)]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/resume")
    assert asked["preflight"] is False
    assert [each["site"] for each in asked["retry_failed"]] == [SHOT.site, CALL.site]


def test_a_plan_that_the_checker_stops_shows_its_findings(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.py").write_text("while True: pass\n")
    finding = {"line": 1, "column": 0, "end_line": 1, "end_column": 5, "rule": "R00", "severity": "error"}
    details = [{**finding, "message": "a loop at module level", "hint": "move it"}]
    daemon.refuses("POST", f"/runs/{RUN}/plan", "TS-C001", "refused", details=details)
    assert main(["plan", RUN, "broken.py"]) == 3
    assert "error[R00]: a loop at module level\n --> broken.py:1:1\n" in capsys.readouterr().err


def test_divergences_of_one_site_are_shown_once_with_the_branches_named(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    branches = [msgspec.structs.replace(DIVERGED, identity=Identity(CALL.site, (n,), 0)) for n in range(30)]
    daemon.says("POST", f"/runs/{RUN}/plan", plan(diverge=tuple(branches), stops=(DENIED, DENIED)))
    assert main(["plan", RUN, script]) == 4
    out = capsys.readouterr().out
    assert out.count("error[TS-D001]") == out.count(" --> shots.py") == 1
    assert "   = also: orchestrate/#1 [1] 0, orchestrate/#1 [2] 0, " in out
    assert "[20] 0, 9 more\n" in out
    assert out.count("error[TS-P001]") == 2
    assert "would stop: 30 divergences" in out


@pytest.mark.parametrize(("before", "told"), [({"brief": "a"}, True), ({"brief": "b"}, False)])
@pytest.mark.parametrize("command", ["plan", "resume"])
def test_other_args_are_named_as_the_cause_of_a_divergence(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], command: str, before: object, told: bool
) -> None:
    found = plan(diverge=(DIVERGED,))
    daemon.says("POST", f"/runs/{RUN}/plan", found)
    daemon.refuses("POST", f"/runs/{RUN}/resume", "TS-D001", "no", details=found)
    daemon.says("GET", f"/runs/{RUN}/source", {"source": SCRIPT, "args": before, "revision": 0})
    assert main([command, RUN, "--args", '{"brief": "b"}']) == 4
    assert ("or start a new one with them, `tally run SCRIPT --args ...`" in capsys.readouterr().err) is told


@pytest.mark.parametrize("command", ["plan", "resume", "gate"])
def test_a_rewrite_is_named_in_either_way_but_once(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    ran(daemon, report())
    daemon.says("POST", f"/runs/{RUN}/plan", plan())
    daemon.says("POST", f"/runs/{RUN}/gate", GateReport(accepted=True, frozen=1))
    for named in ([script], ["--script", script]):
        daemon.asked.clear()
        assert main([command, RUN, *named]) == 0
        assert daemon.body("POST", f"/runs/{RUN}/{command}")["source"] == SCRIPT
    daemon.asked.clear()
    assert main([command, RUN, script, "--script", script]) == 2
    assert "two scripts are named" in capsys.readouterr().err
    assert daemon.asked == []


def test_a_gate_needs_a_rewrite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", RUN]) == 2
    assert "Missing argument 'SCRIPT'" in capsys.readouterr().err
