import json
from pathlib import Path

import pytest

from cli_support import RUN, SHOT, FakeDaemon, Stream, attempt, progress, report, status
from tallystick.cli.main import main
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.contract.source import Counterexample, Span, Violation
from tallystick.engine.messages import (
    Calls,
    CapabilityInfo,
    CheckReport,
    DoctorCheck,
    DoctorReport,
    GateReport,
    LaunchReport,
    Progress,
    RunLine,
    RunReport,
    Spend,
)

SCRIPT = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'
VIOLATION = Violation("R11", "error", Span(2, 17, 2, 58), "text.generate is not granted", "grant it")
COUNTEREXAMPLE = Counterexample(
    site="orchestrate/#1",
    kind="removed",
    message="the committed call is gone",
    hint="put it back",
    old_span=Span(2, 17, 2, 58),
    old_text='ctx.run("text.generate", {"prompt": "x"})',
)


@pytest.fixture
def script() -> str:
    Path("shots.py").write_text(SCRIPT)
    return "shots.py"


def ran(daemon: FakeDaemon, ended: RunReport, *lines: Progress) -> None:
    """Have the daemon accept a run (and a resume), stream it, and report how it ended."""
    running = report(status="running", result=None)
    daemon.says("POST", "/runs", running)
    daemon.says("POST", f"/runs/{RUN}/resume", running)
    daemon.says("POST", f"/runs/{RUN}/cancel", running)
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("snapshot"), *lines, progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", ended)


def test_a_run_is_followed_to_its_end(daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    committed = progress("committed", identity=SHOT, capability="image.generate", cost_usd=0.02)
    ran(daemon, report(), progress("started", identity=SHOT, capability="image.generate"), committed)
    assert main(["run", script, "--grant", "image.generate", "--budget", "1"]) == 0
    out, err = capsys.readouterr()
    assert out == (
        f'run {RUN} (shots) completed\n  calls   7 executed, 0 replayed\n  spend   $0.122\n  result  {{"ok": true}}\n'
    )
    assert err == f"run {RUN}\n  + image.generate   orchestrate.shot/#1 [3] 0  $0.02\n"


def test_a_request_carries_what_was_asked_and_nothing_else(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(daemon, report())
    options = "--args [1] --grant a.b,c.d --budget $1.5 --concurrency 2 --max-calls 9 --wall-clock 1.5m --repeats deny"
    more = "--orphans stop --fail a.b:1:timeout --fail a.b:2:timeout --latency 50ms --seed 7 --name n"
    assert main(["run", script, *options.split(), *more.split()]) == 0
    assert daemon.body("POST", "/runs") == {
        "source": SCRIPT,
        "args": [1],
        "name": "n",
        "limits": {
            "grants": ["a.b", "c.d"],
            "budget_usd": 1.5,
            "concurrency": 2,
            "max_calls": 9,
            "wall_clock": 90.0,
            "repeat_policy": "deny",
            "orphan_policy": "stop",
        },
        "seed": 7,
        "faults": ["a.b:1:timeout", "a.b:2:timeout"],
        "latency": 0.05,
    }


def test_a_plain_run_asks_for_the_defaults(daemon: FakeDaemon, script: str) -> None:
    ran(daemon, report())
    main(["run", script])
    asked = daemon.body("POST", "/runs")
    assert (asked["name"], asked["limits"], asked["args"], asked["faults"]) == ("shots", {}, None, [])


def test_a_resume_leaves_out_what_stays(daemon: FakeDaemon) -> None:
    ran(daemon, report())
    assert main(["resume", RUN]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/resume")
    assert "args" not in asked
    assert (asked["source"], asked["limits"], asked["faults"], asked["latency"]) == (None, {}, None, None)


def test_a_resume_carries_its_allowances(daemon: FakeDaemon, script: str) -> None:
    ran(daemon, report())
    flags = ["--script", script, "--args", "null", "--proceed", "--allow-repeats", "--allow-repeat", str(SHOT)]
    assert main(["resume", RUN, *flags]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/resume")
    assert (asked["source"], asked["args"], asked["proceed"], asked["allow_repeats"]) == (SCRIPT, None, True, True)
    assert asked["allowed_repeats"] == [{"site": "orchestrate.shot/#1", "path": [3], "occurrence": 0}]


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ("completed", 0),
        ("TS-R001", 1),
        ("TS-D001", 4),
        ("TS-A001", 5),
        ("TS-P003", 6),
        ("TS-S002", 7),
    ],
)
@pytest.mark.parametrize("command", [["run", "shots.py"], ["resume", RUN], ["watch", RUN]])
@pytest.mark.usefixtures("script")
def test_who_waits_for_a_run_exits_as_it_ended(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], ended: str, code: int, command: list[str]
) -> None:
    if ended == "completed":
        ran(daemon, report())
    else:
        ran(daemon, report(status="failed", reason=ended, result=None, error=ErrorInfo(ended, "no luck", "try again")))
    assert main(command) == code
    assert main([*command, "--json"]) == code
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["run"] == RUN


def test_a_failed_run_says_why_what_was_kept_and_how_to_go_on(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says(
        "GET",
        f"/runs/{RUN}",
        report(
            status="failed",
            reason="TS-R001",
            result=None,
            calls=Calls(executed=6, failed=1),
            spend=Spend(usd=0.1, unpriced=2, reserved_usd=0.02, replay_saved_usd=0.06),
            error=ErrorInfo("TS-R001", "CapabilityError: \x1b[31msize", "repair it"),
            not_reached=(Identity("orchestrate/#2", (), 0),),
            warnings=("paid twice",),
        ),
    )
    assert main(["show", RUN]) == 0
    assert capsys.readouterr().out == (
        f"run {RUN} (shots) failed [TS-R001]\n"
        "  error        CapabilityError: \\x1b[31msize\n"
        "  hint         repair it\n"
        "  calls        6 executed, 0 replayed, 1 failed\n"
        "  spend        at least $0.10, 2 calls unpriced, $0.02 reserved; replay saved $0.06\n"
        "  warning      paid twice\n"
        "  not reached  orchestrate/#2 [] 0\n"
        f"  next         tally resume {RUN} --script REPAIRED.py (committed calls replay, unpaid)\n"
    )


def test_show_adds_launches_and_prints(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    launch = LaunchReport(launch=1, revision=0, started=1.0, ended=3.5, status="completed", calls=Calls(executed=1))
    daemon.says("GET", f"/runs/{RUN}", report(launches=(launch,), logs="shot 1\nshot 2\n"))
    assert main(["show", RUN]) == 0
    out = capsys.readouterr().out
    assert "2.5 s" in out
    assert out.endswith("printed by the script\nshot 1\nshot 2\n")


def test_unresolved_attempts_are_named_with_the_way_to_settle_them(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = report(status="failed", reason="TS-A001", result=None, unresolved=(attempt(),))
    daemon.says("GET", f"/runs/{RUN}", ended)
    main(["show", RUN])
    out = capsys.readouterr().out
    assert f"tally reconcile {RUN} 4 --result FILE | --abandon --why '...'" in out
    assert "orchestrate.shot/#1 [3] 0" in out.split("unresolved attempts")[1]


def test_detach_returns_at_once(daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran(daemon, report())
    assert main(["run", script, "--detach"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"run {RUN} (shots) running\n")
    assert f"tally watch {RUN}" in err
    assert ("GET", f"/v1/runs/{RUN}/events", None) not in daemon.asked


def test_json_is_one_object_on_stdout_and_progress_goes_to_stderr(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(daemon, report(), progress("log", text="hello"))
    assert main(["run", script, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["calls"] == {"executed": 7, "replayed": 0, "failed": 0, "unresolved": 0, "denied": 0}
    assert out.count("\n") == 1
    assert err == f"run {RUN}\n  > hello\n"


def test_a_script_that_the_checker_refuses_is_shown(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.refuses("POST", "/runs", "TS-C001", "refused: 1 finding", hint="correct it", details=[VIOLATION])
    assert main(["run", script]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error[R11]: text.generate is not granted\n"
        " --> shots.py:2:18\n"
        "  |\n"
        '2 |     return await ctx.run("text.generate", {"prompt": "x"})\n'
        f"  |                  {'^' * 41}\n"
        "   = help: grant it\n"
        "\n"
        "error[TS-C001]: refused: 1 finding\n"
        "  hint: correct it\n"
    )


def test_a_refusal_in_json_carries_the_findings(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.refuses("POST", "/runs", "TS-C001", "refused", details=[VIOLATION])
    assert main(["run", script, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["error"]["code"] == "TS-C001"
    assert found["details"][0]["rule"] == "R11"


def test_a_rewrite_that_the_gate_stops_is_shown_beside_what_is_committed(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.refuses("POST", f"/runs/{RUN}/resume", "TS-G001", "stopped", details=[COUNTEREXAMPLE])
    daemon.says("GET", f"/runs/{RUN}/source", {"source": SCRIPT, "args": None, "revision": 0})
    Path("new.py").write_text("async def orchestrate(ctx, args):\n    return 1\n")
    assert main(["resume", RUN, "--script", "new.py"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(
        "error[removed]: the committed call is gone\n   committed at orchestrate/#1:\n --> revision 0:2"
    )
    assert err.endswith("error[TS-G001]: stopped\n")


def test_a_resume_over_unresolved_attempts_lists_them(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.refuses("POST", f"/runs/{RUN}/resume", "TS-A001", "one call may be paid", details=[attempt()])
    assert main(["resume", RUN]) == 5
    err = capsys.readouterr().err
    assert "unresolved" in err
    assert "orchestrate.shot/#1 [3] 0" in err


@pytest.mark.parametrize(
    ("code", "exit_code"), [("TS-U002", 2), ("TS-P010", 6), ("TS-S002", 7), ("TS-N001", 7), ("TS-X001", 1)]
)
def test_every_refusal_exits_by_its_code(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], code: str, exit_code: int
) -> None:
    daemon.refuses("GET", "/runs/nope", code, "no", hint="yes")
    assert main(["show", "nope"]) == exit_code
    assert capsys.readouterr() == ("", f"error[{code}]: no\n  hint: yes\n")


def test_check_shows_findings_and_a_verdict(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says("POST", "/check", CheckReport(valid=False, violations=(VIOLATION,)))
    assert main(["check", script]) == 3
    assert capsys.readouterr().out.endswith("   = help: grant it\n\n1 error\n")
    assert main(["check", script, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["valid"] is False
    daemon.says("POST", "/check", CheckReport(valid=True, violations=()))
    assert main(["check", script]) == 0
    assert capsys.readouterr().out == "no findings\n"


def test_check_asks_for_the_envelope_rules_only_with_an_envelope(daemon: FakeDaemon, script: str) -> None:
    daemon.says("POST", "/check", CheckReport(valid=True, violations=()))
    main(["check", script])
    assert daemon.body("POST", "/check")["limits"] is None
    main(["check", script, "--grant", "image.generate"])
    assert daemon.body("POST", "/check")["limits"] == {"grants": ["image.generate"]}


def test_gate_says_accepted_or_stopped(daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("POST", f"/runs/{RUN}/gate", GateReport(accepted=True, frozen=1))
    assert main(["gate", RUN, script]) == 0
    assert capsys.readouterr().out == "accepted: 1 committed site compared, none would be paid again\n"
    daemon.says("POST", f"/runs/{RUN}/gate", GateReport(accepted=False, counterexamples=(COUNTEREXAMPLE,), frozen=2))
    daemon.says("GET", f"/runs/{RUN}/source", {"source": SCRIPT, "args": None, "revision": 0})
    assert main(["gate", RUN, script]) == 3
    out = capsys.readouterr().out
    assert "error[removed]" in out
    assert out.endswith("stopped: 2 committed sites compared; nothing was started, nothing was spent\n")
    assert main(["gate", RUN, script, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["counterexamples"][0]["kind"] == "removed"


def test_runs_are_listed(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", "/runs", [RunLine(run=RUN, name="shots", status="completed", created=1.0, updated=2.0)])
    assert main(["runs", "--limit", "5", "--before", RUN]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == [RUN, "shots", "completed"]
    assert daemon.asked[-1][1] == f"/v1/runs?limit=5&before={RUN}"
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["run"] == RUN
    daemon.says("GET", "/runs", [])
    assert main(["runs"]) == 0
    assert capsys.readouterr() == ("", "no runs; `tally run SCRIPT` starts one\n")


def test_attempts_are_listed_whole_or_open_ones(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    done = attempt(attempt=1, state="committed", cost_usd=0.02, take="second take")
    failed = attempt(attempt=2, state="failed", kind="invalid_request", text="size 1x1", cost_usd=0.0)
    daemon.says("GET", f"/runs/{RUN}/attempts", [done, failed, attempt(), attempt(attempt=9, state="in_flight")])
    assert main(["attempts", RUN]) == 0
    out = capsys.readouterr().out
    assert "invalid_request: size 1x1" in out
    assert "take: second take" in out
    assert main(["attempts", RUN, "--open", "--json"]) == 0
    assert [each["attempt"] for each in json.loads(capsys.readouterr().out)["attempts"]] == [4, 9]


def test_an_attempt_is_settled_by_a_known_result(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    Path("result.json").write_text('{"images": []}')
    daemon.says("POST", f"/runs/{RUN}/attempts/4/reconcile", attempt(state="committed", decision="commit"))
    assert main(["reconcile", RUN, "4", "--result", "result.json", "--cost", "0"]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/attempts/4/reconcile")
    assert asked.pop("who")
    assert asked == {"abandon": False, "result": {"images": []}, "cost_usd": 0.0, "why": ""}
    assert "committed" in capsys.readouterr().out


def test_an_attempt_is_abandoned_for_a_reason(daemon: FakeDaemon) -> None:
    daemon.says("POST", f"/runs/{RUN}/attempts/4/reconcile", attempt(state="abandoned"))
    assert main(["reconcile", RUN, "4", "--abandon", "--why", "not on the bill"]) == 0
    asked = daemon.body("POST", f"/runs/{RUN}/attempts/4/reconcile")
    assert "result" not in asked
    assert (asked["abandon"], asked["why"], asked["cost_usd"]) == (True, "not on the bill", None)


@pytest.mark.parametrize(
    "flags", [[], ["--abandon"], ["--abandon", "--why", " "], ["--abandon", "--why", "x", "--result", "r.json"]]
)
def test_a_decision_on_an_attempt_must_be_one(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", RUN, "4", *flags]) == 2
    assert capsys.readouterr().err.startswith("error[TS-U001]")


def test_cancel_waits_for_the_end_and_is_a_success(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    ran(daemon, report(status="cancelled", reason="TS-R003", result=None))
    assert main(["cancel", RUN]) == 0
    assert f"next   tally resume {RUN}" in capsys.readouterr().out


def test_capabilities_are_listed(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    info = CapabilityInfo(
        name="image.generate",
        effect="side_effecting",
        estimate_usd=0.02,
        payload='{"prompt": str}',
        result='{"images": [artifact]}',
        description="make pictures",
    )
    daemon.says("GET", "/capabilities", [info])
    assert main(["capabilities"]) == 0
    assert capsys.readouterr().out == (
        "image.generate    side-effecting  $0.02    no provider configured\n"
        "    make pictures\n"
        '    {"prompt": str}\n'
        '    -> {"images": [artifact]}\n'
    )
    assert main(["capabilities", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["capabilities"][0]["name"] == "image.generate"


@pytest.mark.parametrize(("healthy", "code"), [(True, 0), (False, 1)])
def test_doctor_says_what_is_wrong_and_what_helps(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], healthy: bool, code: int
) -> None:
    checks = (DoctorCheck("store", ok=healthy, detail="42 pages", hint="free some space"),)
    daemon.says("GET", "/doctor", DoctorReport(healthy, checks))
    assert main(["doctor"]) == code
    assert ("free some space" in capsys.readouterr().out) is not healthy
    assert main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["healthy"] is healthy


def test_daemon_status_and_start_show_a_running_one(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", "/status", status(live=2))
    assert main(["daemon", "status"]) == 0
    assert main(["daemon", "start"]) == 0
    assert capsys.readouterr().out.count("3 in the store, 2 live, 0 queued") == 2
    assert main(["daemon", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["driver"] == "locked"


def test_without_a_daemon_status_exits_with_seven_and_stop_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["daemon", "status"]) == 7
    assert "no daemon is running" in capsys.readouterr().err
    assert main(["daemon", "stop"]) == 0
    assert capsys.readouterr().out == "no daemon was running\n"
    assert main(["daemon", "stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stopped": None}


def test_logs_show_the_end_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["daemon", "logs"]) == 0
    assert "is empty or missing" in capsys.readouterr().err
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "daemon.log").write_text("".join(f"line {number}\n" for number in range(5_000)))
    assert main(["daemon", "logs", "-n", "2"]) == 0
    assert capsys.readouterr().out == "line 4998\nline 4999\n"
    assert main(["daemon", "logs", "-n", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == ["line 4999"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run", "nowhere.py"], "No such file"),
        (["run", "."], "Is a directory"),
        (["run", "shots.py", "--args", "{"], "--args is not JSON"),
        (["run", "shots.py", "--args", "@nowhere"], "cannot be read"),
        (["run", "shots.py", "--budget", "0"], "above zero"),
        (["run", "shots.py", "--budget", "-1"], "not an amount"),
        (["run", "shots.py", "--budget", "NaN"], "not an amount"),
        (["run", "shots.py", "--latency", "50"], "not a duration"),
        (["run", "shots.py", "--concurrency", "0"], "--concurrency"),
        (["run", "shots.py", "--repeats", "maybe"], "'maybe' is not one of"),
        (["run"], "Missing argument 'SCRIPT'"),
        (["resume", RUN, "--allow-repeat", "x"], "is not an identity"),
        (["rnu"], "Did you mean 'run'"),
        (["daemon"], "Missing command"),
    ],
)
def test_bad_input_is_a_message_and_starts_nothing(
    script: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, argv: list[str], said: str
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert not (tmp_path / "home").exists()
    assert main([*argv, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "TS-U001"


def test_an_unexpected_error_is_one_line_and_a_file(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tallystick.cli.reports.status", lambda _: 1 / 0)
    daemon.says("GET", "/status", status())
    assert main(["daemon", "status"]) == 1
    err = capsys.readouterr().err
    assert "internal error, ZeroDivisionError" in err
    written = next(tmp_path.glob("tally-error-*.txt"))
    assert str(written) in err
    assert "1 / 0" in written.read_text()
