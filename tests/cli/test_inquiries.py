import json

import pytest

from cli_support import RUN, SHOT, FakeDaemon, report
from tallystick.cli.main import main
from tallystick.engine.messages import CertificateReport, DifferenceReport, Explanation


def certificate(*differences: DifferenceReport, verified: bool = False) -> CertificateReport:
    return CertificateReport(
        run=RUN,
        launch=2,
        at=1_700_000_002.5,
        cut=14,
        entries=4,
        chain="4cc008",
        frozen={"orchestrate.shot/#1": ("image.generate", "df2b")},
        certificates=2,
        differences=differences if verified else None,
    )


def test_a_call_is_explained(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    said = Explanation(run=RUN, identity=SHOT, state="committed", lines=("attempt 4: it is committed", "for \x1b[1m$2"))
    daemon.says("GET", f"/runs/{RUN}/explain", said)
    assert main(["explain", RUN, str(SHOT)]) == 0
    assert capsys.readouterr().out == (
        "orchestrate.shot/#1 [3] 0 committed\n  attempt 4: it is committed\n  for \\x1b[1m$2\n"
    )
    assert daemon.asked[-1][1] == f"/v1/runs/{RUN}/explain?identity=orchestrate.shot%2F%231+%5B3%5D+0"
    assert main(["explain", RUN, str(SHOT), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "committed"


def test_what_is_no_identity_is_not_asked_about(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", RUN, "orchestrate.shot/#1"]) == 2
    assert "is not an identity" in capsys.readouterr().err
    assert daemon.asked == []


def test_a_certificate_is_shown(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", f"/runs/{RUN}/certificate", certificate())
    assert main(["certificate", RUN]) == 0
    out = capsys.readouterr().out
    assert "  records       4, up to sequence 14 of the log\n" in out
    assert "  frozen        orchestrate.shot/#1  image.generate\n" in out
    assert "verified" not in out
    assert daemon.asked[-1][1] == f"/v1/runs/{RUN}/certificate"


def test_a_certificate_is_verified(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", f"/runs/{RUN}/certificate", certificate(verified=True))
    assert main(["certificate", RUN, "--verify"]) == 0
    assert capsys.readouterr().out.endswith("verified: 2 certificates recomputed, no difference\n")
    assert daemon.asked[-1][1] == f"/v1/runs/{RUN}/certificate?verify=true"


def test_a_record_that_is_not_what_was_certified_is_named(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = DifferenceReport(1, "missing", SHOT, f"{SHOT} was certified and is gone")
    daemon.says("GET", f"/runs/{RUN}/certificate", certificate(gone, verified=True))
    assert main(["certificate", RUN, "--verify"]) == 1
    out = capsys.readouterr().out
    assert f"{SHOT} was certified and is gone" in out
    assert out.endswith("1 difference: the records are not what was certified\n")
    assert main(["certificate", RUN, "--verify", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["differences"][0]["kind"] == "missing"


def test_a_site_is_retired_for_a_reason(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("POST", f"/runs/{RUN}/retire", report())
    assert main(["retire", RUN, SHOT.site, "--why", "not wanted"]) == 0
    assert capsys.readouterr().out.startswith(f"orchestrate.shot/#1 of run {RUN} is retired")
    asked = daemon.body("POST", f"/runs/{RUN}/retire")
    assert asked.pop("who")
    assert asked == {"site": "orchestrate.shot/#1", "why": "not wanted"}
    assert main(["retire", RUN, SHOT.site, "--why", "not wanted", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == RUN


@pytest.mark.parametrize("flags", [[], ["--why", " "]])
def test_a_site_is_not_retired_without_a_reason(daemon: FakeDaemon, flags: list[str]) -> None:
    assert main(["retire", RUN, SHOT.site, *flags]) == 2
    assert daemon.asked == []
