"""The bench of repairs: its measures, its habits, its oracle of what was paid twice."""

from pathlib import Path

import msgspec
import pytest

from tallystick.bench.repair import measure
from tallystick.bench.repair.__main__ import main
from tallystick.bench.repair.corpus import moved_into_helper, tasks
from tallystick.bench.repair.measure import Episode, rate
from tallystick.contract.checker import check

CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A corpus of three tasks."""
    for name in ("01-mug-launch-stills", "08-storefront-banners", "25-two-takes-of-a-logo"):
        (tmp_path / name).symlink_to(CORPUS / name)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> list[Episode]:
    status = main([*words, "--json"])
    assert status == 0
    return msgspec.json.decode(capsys.readouterr().out, type=list[Episode])


def test_wilson_intervals_are_those_of_the_paper() -> None:
    for hits, of, low, high in ((7, 8, 0.53, 0.98), (8, 8, 0.68, 1.0), (0, 269, 0.0, 0.014), (0, 0, 0.0, 1.0)):
        found = rate(hits, of)
        assert (found.hits, found.of) == (hits, of)
        assert found.low == pytest.approx(low, abs=0.005)
        assert found.high == pytest.approx(high, abs=0.005)


def test_the_arms_differ_for_a_model_that_reads(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episodes = run(capsys, "--corpus", str(few), "--habit", "reads-the-list")
    by_arm = {arm: [one.rewrites for one in episodes if one.arm == arm] for arm in ("error", "sites", "prohibition")}
    assert by_arm == {"error": [2, 2], "sites": [1, 1], "prohibition": [1, 1]}
    assert {one.final for one in episodes} == {"completed"}
    assert all(one.paid_again == 0 for one in episodes)
    assert str(measure.first_share(one for one in episodes if one.arm == "error")).startswith("0/2")
    assert str(measure.gate_share(one for one in episodes if one.arm == "error")).startswith("2/4")


def test_scripts_that_never_ran_are_a_part_of_their_own(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--corpus", str(few), "--part", "refused", "--arms", "sites", "--attempts", "2", "--habit", "never-learns")
    (one,) = run(capsys, *words)
    assert (one.task, one.asked, one.rewrites, one.final) == ("08-storefront-banners", 2, None, "TS-M001")
    assert (one.valid, one.first_admitted, one.provider_calls) == (0, None, 0)


def test_the_table_has_a_line_for_each_arm(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(few), "--habit", "fixes-at-once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["fixes-at-once,", "arm", "error", "sites", "prohibition"]
    assert "2/2 [0.34, 1.00]" in lines[2]


def test_a_restructured_script_passes_the_checker() -> None:
    accepted = [task for task in tasks(CORPUS) if not task.refused]
    assert len(accepted) == 27
    assert [task.name for task in accepted if not check(moved_into_helper(task.script)).valid] == []
