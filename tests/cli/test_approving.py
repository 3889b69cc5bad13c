"""`approve`: what is shown, what is sent, and what happens next."""

import pytest

from cli_support import RUN, SHOT, FakeDaemon, Stream, progress, report
from tallystick.cli.main import main
from tallystick.cli.next_steps import next_step
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.engine.money_messages import WaitingCall

LONG = "a lighthouse " * 200
CALL = WaitingCall(
    identity=SHOT, capability="image.generate", payload={"prompt": LONG}, digest="d" * 64, estimate_usd=0.5
)
OTHER = WaitingCall(
    identity=Identity("orchestrate/#1", (), 0), capability="image.generate", payload={"prompt": "x"}, digest="e" * 64
)


@pytest.fixture
def waiting(daemon: FakeDaemon) -> FakeDaemon:
    """Have a run wait for one call, and complete when it is resumed."""
    daemon.says("GET", f"/runs/{RUN}/approvals", [CALL])
    daemon.says("POST", f"/runs/{RUN}/approvals", CALL)
    daemon.says("POST", f"/runs/{RUN}/resume", report(status="running"))
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", report())
    return daemon


def test_the_whole_payload_is_shown_and_the_run_goes_on(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["approve", RUN, "--yes", "--why", "the cover"]) == 0
    out, err = capsys.readouterr()
    assert LONG in err
    assert "$0.50 expected" in err
    body = waiting.body("POST", f"/runs/{RUN}/approvals")
    assert body.pop("who")
    assert body == {
        "identity": {"site": SHOT.site, "path": [3], "occurrence": 0},
        "digest": "d" * 64,
        "approve": True,
        "why": "the cover",
    }
    assert "completed" in out


def test_nobody_is_asked_where_nobody_is_there(waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approve", RUN]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert not [asked for asked in waiting.asked if asked[0] == "POST"]


def test_a_denial_is_told_and_does_not_resume(waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    denied = WaitingCall(**{name: getattr(CALL, name) for name in CALL.__struct_fields__} | {"decision": "denied"})
    waiting.says("POST", f"/runs/{RUN}/approvals", denied)
    waiting.says("GET", f"/runs/{RUN}", report(status="stopped", reason="TS-P009"))
    assert main(["approve", RUN, str(SHOT), "--deny", "--yes"]) == 0
    out = capsys.readouterr().out
    assert f"{SHOT} denied; it was not made" in out
    assert f"tally resume {RUN} --script REPAIRED.py" in out
    assert [path for method, path, _ in waiting.asked if method == "POST"] == [f"/v1/runs/{RUN}/approvals"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["orchestrate/#9 [] 0", "--yes"], "does not wait"),
        ([str(SHOT), "--all"], "stands in place of a CALL"),
        (["nonsense"], "copy it from the message"),
    ],
)
def test_what_is_no_choice_is_refused(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert main(["approve", RUN, *argv]) == 2
    assert said in capsys.readouterr().err


def test_several_calls_are_not_approved_of_by_oversight(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting.says("GET", f"/runs/{RUN}/approvals", [CALL, OTHER])
    assert main(["approve", RUN, "--yes"]) == 2
    assert "--all" in capsys.readouterr().err
    assert main(["approve", RUN, "--yes", "--all"]) == 0
    assert len([path for method, path, _ in waiting.asked if (method, path) == _SENT]) == 2


_SENT = ("POST", f"/v1/runs/{RUN}/approvals")


def test_a_run_that_waits_for_nothing_says_so(waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    waiting.says("GET", f"/runs/{RUN}/approvals", [])
    assert main(["approve", RUN, "--yes"]) == 2
    assert "waits for an approval" in capsys.readouterr().err


def test_show_names_what_waits_and_the_command_that_decides(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ErrorInfo("TS-P004", "must be approved", "tally approve")
    waits = report(status="waiting", reason="TS-P004", error=error, waiting=(CALL,))
    daemon.says("GET", f"/runs/{RUN}", waits)
    assert main(["show", RUN]) == 0
    out = capsys.readouterr().out
    assert f"image.generate {SHOT}, $0.50 expected" in out
    assert f"tally approve {RUN} '{SHOT}'" in out
    assert next_step(report(status="waiting", reason="TS-P004", error=error, waiting=(CALL, OTHER))).startswith(
        f"tally approve {RUN} ("
    )
