"""`cost`, and money wherever it is shown: a lower bound says that it is one."""

import pytest

from cli_support import RUN, FakeDaemon, progress, report
from tallystick.cli.main import main
from tallystick.cli.progress import event_line, status_line
from tallystick.engine.messages import RunLine, Spend
from tallystick.engine.money_messages import CostLine, CostReport, LaunchCost

LINE = CostLine(name="image.generate", calls=4, usd=0.23, unpriced=3, reserved_usd=0.06)
COST = CostReport(
    run=RUN,
    total=LINE,
    by_capability=(LINE,),
    by_launch=(LaunchCost(launch=2, revision=1, paid=LINE, replayed=5, saved_usd=0.1, saved_unpriced=1),),
    rerun_usd=0.33,
    rerun_unpriced=4,
)


def test_cost_shows_lower_bounds_as_such(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", f"/runs/{RUN}/cost", COST)
    assert main(["cost", RUN]) == 0
    out = capsys.readouterr().out
    assert "spent           at least $0.23, 3 calls unpriced" in out
    assert "replay saved    at least $0.10, 1 call unpriced" in out
    assert "without replay  at least $0.33, 4 calls unpriced" in out


def test_a_listing_shows_what_runs_have_cost(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [RunLine(run=RUN, name="a", status="completed", created=1.0, updated=2.0, usd=0.2, unpriced=1)]
    daemon.says("GET", "/runs", lines)
    assert main(["runs"]) == 0
    assert "at least $0.20, 1 call unpriced" in capsys.readouterr().out


def test_a_report_never_shows_an_unknown_cost_as_nothing(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = Spend(usd=0.0, unpriced=2, reserved_usd=0.04, replay_unpriced=1)
    daemon.says("GET", f"/runs/{RUN}", report(spend=spent))
    assert main(["show", RUN]) == 0
    assert (
        "at least $0.00, 2 calls unpriced, $0.04 reserved; replay saved at least $0.00, 1 call unpriced"
    ) in capsys.readouterr().out


def test_progress_says_that_a_price_is_unknown() -> None:
    line = event_line(progress("committed", capability="image.generate"))
    assert line is not None
    assert "cost unknown" in line.plain
    latest = progress("committed", spend=Spend(usd=0.1, unpriced=1))
    assert "at least $0.10, 1 call unpriced" in status_line(RUN, "running", latest, 1.0).plain
