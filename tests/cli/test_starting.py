import json
from pathlib import Path

import pytest

from cli_support import (
    COUNTEREXAMPLE,
    RUN,
    SCRIPT,
    SHOT,
    VIOLATION,
    FakeDaemon,
    attempt,
    progress,
    ran,
    report,
)
from tallystick.cli.main import main
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.engine.messages import (
    Calls,
    LaunchReport,
    Spend,
)


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
        "auto_repair": None,
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
