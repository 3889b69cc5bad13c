import ast
from pathlib import Path

import pytest

from cli_support import RUN, FakeDaemon, Stream, progress, report
from tallystick.cli.demo import story
from tallystick.cli.main import main
from tallystick.engine import paths

SCRIPTS = {path.name: path.read_text() for path in Path(story.__file__).with_name("scripts").glob("*.py")}


def test_the_repair_changes_one_line_and_the_unsafe_rewrites_carry_the_same_cure() -> None:
    original = SCRIPTS["storyboard.py"].splitlines()
    repaired = SCRIPTS["repaired.py"].splitlines()
    changed = [new for old, new in zip(original, repaired, strict=True) if old != new]
    assert len(changed) == 1
    for name, _ in story.UNSAFE:
        assert changed[0] in SCRIPTS[name].splitlines()


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_every_script_of_the_demo_is_python(name: str) -> None:
    assert any(isinstance(node, ast.AsyncFunctionDef) for node in ast.parse(SCRIPTS[name]).body)


def test_a_demo_that_goes_otherwise_says_so_and_fails(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    daemon.says("POST", "/runs", report(status="running", result=None))
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", report())
    assert main(["demo", "--home", str(tmp_path / "home")]) == 1
    err = capsys.readouterr().err
    assert "the demo did not go as it should: the run should have failed at the fourth picture, and is completed" in err
    assert ("POST", "/v1/shutdown", None) not in daemon.asked  # a daemon that was there before is left running


def test_a_demo_that_cannot_keep_its_pictures_does_not_begin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").touch()
    assert main(["demo", "--out", "taken/pictures"]) == 2
    assert "the pictures cannot be written to taken/pictures: Not a directory" in capsys.readouterr().err
    assert not paths.home().exists()
