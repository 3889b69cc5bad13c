from pathlib import Path

import pytest

from tallystick.bench import sandbox as bench
from tallystick.bench.sandbox import Figures
from tallystick.sandbox.locked import LockedDriver


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in (("STARTS", 2), ("CALLS", 40), ("LARGE_CALLS", 3)):
        monkeypatch.setattr(bench, name, count)


async def test_the_benchmark_measures_a_driver() -> None:
    figures = await bench.measure(LockedDriver())
    assert figures.driver == "locked"
    assert all(figure > 0 for figure in figures[1:])
    assert figures.cold > figures.warm


def test_the_budget_is_about_a_warm_start_and_a_call() -> None:
    within = Figures("x", cold=900, warm=15, call=1, call_p95=9, in_flight=1, large=900)
    assert within.within_budget
    assert not within._replace(warm=16).within_budget
    assert not within._replace(call=1.1).within_budget


def test_it_prints_a_line_for_each_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///surely/not/there")  # the locked driver alone
    bench.main(["--out", str(tmp_path), "--disk", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["locked"]
    assert len(lines) == 7
