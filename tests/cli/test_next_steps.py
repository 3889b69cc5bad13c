"""What `show` tells to do next, and that its parts agree."""

from pathlib import Path
from typing import Literal

import pytest

from cli_support import RUN, SHOT, FakeDaemon, attempt, ran, report
from tallystick.cli.main import main
from tallystick.cli.next_steps import next_step
from tallystick.contract.events import ErrorInfo
from tallystick.engine.messages import LaunchReport


def shown(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], **changes: object) -> str:
    daemon.says("GET", f"/runs/{RUN}", report(**changes))
    assert main(["show", RUN]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("reason", "status", "hint", "step"),
    [
        ("TS-R009", "cancelled", "", f"tally resume {RUN}"),
        ("TS-N003", "interrupted", "", f"tally resume {RUN}"),
        ("TS-A002", "stopped", "", f"tally resume {RUN}"),
        ("TS-S002", "stopped", "free some space", f"tally resume {RUN}"),
        ("TS-R001", "failed", "", f"tally resume {RUN} --script REPAIRED.py (committed calls replay, unpaid)"),
        ("TS-D001", "stopped", "", f"tally resume {RUN} --script REPAIRED.py (committed calls replay, unpaid)"),
        ("TS-P001", "stopped", "resume with --grant a.b,c.d, or change the script", "--grant a.b,c.d (committed"),
        ("TS-P001", "stopped", "grant it", "--grant NAME,... (committed"),
        ("TS-P002", "stopped", "resume with --budget 0.09 or more; what", "--budget 0.09 (committed"),
        ("TS-P003", "stopped", "raise it with --max-calls on resume", "--max-calls N (committed"),
        ("TS-P006", "stopped", "name one", f"tally resume {RUN} (committed"),
        ("TS-P007", "stopped", "", "--wall-clock TIME (committed"),
    ],
)
def test_the_next_step_fits_the_end(reason: str, status: Literal["failed"], hint: str, step: str) -> None:
    assert step in next_step(report(status=status, reason=reason, error=ErrorInfo(reason, "no luck", hint)))


def test_the_budget_that_is_missing_is_named_as_the_engine_says_it() -> None:
    from tallystick.contract.capability import Envelope
    from tallystick.contract.runtime_rule import CallRequest, over_budget

    call = CallRequest(identity=SHOT, capability="image.generate", payload={}, digest="d", fingerprint="f", take=None)
    stop = over_budget(call, 20_000, Envelope(budget=50_000), 1_040_000_000, 0)
    ended = report(status="stopped", reason="TS-P002", error=ErrorInfo(stop.code, stop.message, stop.hint))
    assert f"tally resume {RUN} --budget 1040.02 " in next_step(ended)


def test_unresolved_attempts_come_first_all_of_them_and_then_the_resume(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ErrorInfo("TS-N003", "cut off", "tally resume goes on from here")
    out = shown(daemon, capsys, status="interrupted", result=None, error=lost, unresolved=(attempt(),))
    assert f"  next   tally reconcile {RUN} 4 --result FILE | --abandon --why '...'\n" in out
    assert f"         then tally resume {RUN}\n" in out
    assert "goes on from here" not in out  # it would contradict the next step
    assert str(SHOT) in out.split("unresolved attempts")[1]
    out = shown(daemon, capsys, status="interrupted", error=lost, unresolved=(attempt(), attempt(attempt=7)))
    assert f"tally reconcile {RUN} N --result FILE | --abandon --why '...', for each N of 4, 7\n" in out
    assert f"or tally reconcile {RUN} --all --abandon --why '...'\n" in out


def test_what_the_provider_must_be_asked_stays_beside_the_next_step(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ErrorInfo("TS-A002", "nobody knows", "look it up at the provider (key ts-5)")
    assert "(key ts-5)" in shown(daemon, capsys, status="stopped", error=lost, unresolved=(attempt(),))


def test_a_launch_names_the_attempts_that_it_left_unresolved(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [LaunchReport(launch=n, revision=0, started=1.0, ended=2.0, status="stopped") for n in (1, 2)]
    out = shown(daemon, capsys, status="stopped", launches=made, unresolved=(attempt(), attempt(attempt=7)))
    first, second = (line for line in out.splitlines() if line.startswith(("1 ", "2 ")))
    assert first.rstrip().endswith("unresolved: attempt 4, 7")
    assert "unresolved" not in second


def test_a_screenful_of_orphans_is_enough(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert "... 5 more" in shown(daemon, capsys, orphans=(SHOT,) * 25)


@pytest.mark.parametrize(
    ("source", "args", "told"),
    [
        ('x = args["brief"]', None, True),
        ("x = args.get(1)", None, True),
        ("x = [y for y in args]", None, True),
        ("x = None[0]", None, False),
        ('x = args["brief"]', {"brief": None}, False),
    ],
)
def test_a_script_that_reads_args_and_was_given_none_is_told_so(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], source: str, args: object, told: bool
) -> None:
    Path("shots.py").write_text(source)
    error = ErrorInfo("TS-R001", "TypeError: 'NoneType' object is not subscriptable", "repair it")
    ran(daemon, report(status="failed", reason="TS-R001", result=None, error=error))
    daemon.says("GET", f"/runs/{RUN}/source", {"source": source, "args": args, "revision": 0})
    assert main(["run", "shots.py"]) == 1
    assert (f"no --args were given, and the script reads args: `tally resume {RUN}" in capsys.readouterr().err) is told
