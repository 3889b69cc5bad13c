import json
from pathlib import Path

import pytest

from cli_support import (
    COUNTEREXAMPLE,
    RUN,
    SCRIPT,
    VIOLATION,
    FakeDaemon,
    attempt,
    ran,
    report,
    status,
)
from tallystick.cli.main import main
from tallystick.engine.messages import (
    CapabilityInfo,
    CheckReport,
    DoctorCheck,
    DoctorReport,
    GateReport,
    RunLine,
    Status,
)


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
    assert capsys.readouterr().out == (
        "accepted: 1 committed site compared, the source keeps every committed call\n"
        f"the values that the calls are given are compared by `tally plan {RUN} {script}`\n"
    )
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


def test_a_stop_with_live_runs_says_that_they_go_on_and_cost(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.says("GET", "/status", status(live=2))
    monkeypatch.setattr("tallystick.cli.spawn.stop", lambda client: client.get("/v1/status", Status))
    assert main(["daemon", "stop"]) == 0
    out = capsys.readouterr().out
    assert "2 live runs interrupted: the next tally command starts the daemon again" in out
    assert "goes on, and costs" in out
    assert "`tally cancel RUN` ends a run" in out
    daemon.says("GET", "/status", status(live=0))
    assert main(["daemon", "stop"]) == 0
    assert capsys.readouterr().out == "stopped (process 1)\n"


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


def test_a_gate_that_does_not_get_past_the_checker_shows_its_findings(
    daemon: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says("POST", f"/runs/{RUN}/gate", GateReport(accepted=False, violations=(VIOLATION,), frozen=1))
    assert main(["gate", RUN, script]) == 3
    assert capsys.readouterr().out.startswith("error[R11]: text.generate is not granted\n --> shots.py:2:18\n")


def test_tally_alone_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "reconcile" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tallystick ")


def test_a_run_without_attempts_says_that_nothing_was_spent(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.says("GET", f"/runs/{RUN}/attempts", [])
    assert main(["attempts", RUN]) == 0
    assert capsys.readouterr().err == "no attempts: nothing was dispatched, nothing was spent\n"
