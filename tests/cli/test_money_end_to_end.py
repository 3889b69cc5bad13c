"""Money and files from the command line, against a real daemon."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import spawn
from tallystick.cli.main import main
from tallystick.engine import paths

CONFIG = """
[daemon]
warm = 0
[sandbox]
driver = "locked"
[budget]
cap_usd = 0.07
[capabilities."image.edit"]
provider = "local"
approval = 0.02
"""
SCRIPT = """
async def orchestrate(ctx, args):
    edited = await ctx.run("image.edit", {"image": args["picture"], "prompt": args["prompt"]})
    await ctx.run("review.visual", {"image": edited["images"][0], "criteria": "warm"})
    return edited["images"][0]
"""
THREE = """
async def orchestrate(ctx, args):
    for number in range(3):
        await ctx.run("image.generate", {"prompt": f"shot {number}"})
"""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture(autouse=True)
def real_daemon(home: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start a daemon in a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ts") as folder:
        monkeypatch.setenv(paths.HOME_VARIABLE, f"{folder}/home")
        paths.home().mkdir(mode=0o700)
        paths.config_path().write_text(CONFIG)
        # In a process of its own, whose child the daemon is.
        program = [sys.executable, "-m", "tallystick.cli.main", "daemon", "start"]
        subprocess.run(program, check=True, capture_output=True, timeout=50)
        yield
        client = spawn.running()
        if client is not None:
            spawn.stop(client)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    def tell(status: int, *argv: str) -> Any:
        found = main([*argv, "--json"])
        out, err = capsys.readouterr()
        assert found == status, err
        return json.loads(out)

    return tell


def test_a_picture_of_ones_own_is_edited_once_it_is_approved_of(told: Any) -> None:
    Path("edit.py").write_text(SCRIPT)
    Path("lamp.png").write_bytes(PNG)
    assert told(0, "config", "check")["valid"] is True
    given = ["--args", '{"prompt": "warmer"}', "--args", "picture=@lamp.png", "--grant", "image.edit,review.visual"]
    waiting = told(6, "run", "edit.py", *given)
    assert (waiting["status"], waiting["reason"], waiting["spend"]["usd"]) == ("waiting", "TS-P004", 0.0)
    (call,) = waiting["waiting"]
    assert call["payload"]["image"]["bytes"] == len(PNG)
    done = told(0, "approve", "last", "--yes", "--why", "the cover")
    assert (done["status"], done["calls"]["executed"]) == ("completed", 2)
    cost = told(0, "cost", "last")
    assert {line["name"]: line["usd"] for line in cost["by_capability"]} == {"image.edit": 0.02, "review.visual": 0.002}

    added = told(0, "artifacts", "add", "lamp.png")["files"][0]
    assert added == call["payload"]["image"]
    assert told(0, "gc", "--dry-run")["removed"] == 0
    exported = told(0, "artifacts", "last", "--export", "out")
    assert [Path(path).suffix for path in exported["files"]] == [".png"]

    Path("three.py").write_text(THREE)
    stopped = told(6, "run", "three.py", "--grant", "image.generate")
    assert (stopped["reason"], stopped["spend"]["usd"]) == ("TS-P014", 0.04)
    assert [run["usd"] for run in told(0, "runs")["runs"]] == [0.04, 0.022]


def test_a_denied_call_stops_the_run_for_good(told: Any) -> None:
    Path("edit.py").write_text(SCRIPT)
    Path("lamp.png").write_bytes(PNG)
    given = ["--args", '{"prompt": "warmer"}', "--args", "picture=@lamp.png", "--grant", "image.edit,review.visual"]
    waiting = told(6, "run", "edit.py", *given)
    denied = told(0, "approve", "last", "--deny", "--yes", "--why", "too dear")
    assert (denied["status"], denied["reason"]) == ("stopped", "TS-P009")
    assert denied["run"] == waiting["run"]
    assert told(6, "resume", "last")["reason"] == "TS-P009"
