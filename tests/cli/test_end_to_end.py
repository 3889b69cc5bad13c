"""Plan, resume, certify: the commands against a daemon that they start themselves."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli import spawn
from tallystick.engine import paths

SCRIPT = """\
SIZES = ["1024x1024", "1792x1024"]


async def orchestrate(ctx, args):
    board = await ctx.run("storyboard.plan", {"brief": args["brief"], "shots": 2})

    async def draw(shot, size):
        return await ctx.run("image.generate", {"prompt": shot["prompt"], "size": size})

    return await ctx.parallel([draw(shot, size) for shot, size in zip(board["shots"][:2], SIZES)])
"""
SPENT = 0.022


@pytest.fixture(autouse=True)
def real_daemon(home: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the commands start a daemon in a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ts") as folder:
        monkeypatch.setenv(paths.HOME_VARIABLE, f"{folder}/home")
        paths.home().mkdir(mode=0o700)
        paths.config_path().write_text('[sandbox]\ndriver = "locked"\n')  # no image is built for each test
        yield
        client = spawn.running()
        if client is not None:
            spawn.stop(client)


def told(status: int, *argv: str) -> Any:
    """Give a command in a process of its own, see how it exits, and return what it prints."""
    program = [sys.executable, "-m", "tallystick.cli.main", *argv, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_a_rewrite_is_planned_resumed_and_certified() -> None:
    Path("shots.py").write_text(SCRIPT)
    Path("repaired.py").write_text(SCRIPT.replace("1792x", "1024x"))
    Path("diverging.py").write_text(SCRIPT.replace('["1024x', '["512x').replace("1792x", "1024x"))
    grants = ["--grant", "storyboard.plan,image.generate", "--fail", "image.generate:2:invalid_request"]
    told(1, "run", "shots.py", "--args", '{"brief": "a lighthouse"}', *grants)

    diverging = told(4, "plan", "last", "diverging.py")
    assert diverging["diverge"]
    assert told(4, "resume", "last", "--script", "diverging.py")["details"] == diverging
    repaired = told(0, "plan", "last", "repaired.py")
    assert (repaired["state"], repaired["replay"], repaired["estimate_usd"]) == ("blocked", 2, 0.02)
    report = told(0, "show", "last")
    assert report["spend"]["usd"] == SPENT, "plans have cost something"

    report = told(0, "resume", "last", "--script", "repaired.py")
    assert (report["calls"]["executed"], report["calls"]["replayed"]) == (1, 2)
    finished = told(0, "plan", "last")
    assert (finished["state"], finished["replay"], finished["new"]) == ("finished", 3, [])
    certificate = told(0, "certificate", "last", "--verify")
    assert (certificate["entries"], certificate["certificates"], certificate["differences"]) == (3, 2, [])
    assert told(0, "explain", "last", "orchestrate.draw/#1 [1] 0")["state"] == "committed"


def test_a_retired_call_may_be_left_out_and_the_plan_names_it_as_an_orphan() -> None:
    calls = '    {}await ctx.run("text.generate", {{"prompt": "{}"}})\n'
    begin = "async def orchestrate(ctx, args):\n"
    Path("two.py").write_text(begin + calls.format("", "x") + calls.format("return ", "y"))
    Path("one.py").write_text(begin + calls.format("return ", "x"))
    told(0, "run", "two.py", "--grant", "text.generate")
    told(3, "plan", "last", "one.py")
    told(0, "retire", "last", "orchestrate/#2", "--why", "a second text is not wanted")
    plan = told(0, "plan", "last", "one.py")
    assert (plan["state"], plan["orphans"]) == (
        "finished",
        [{"site": "orchestrate/#2", "path": [], "occurrence": 0}],
    )
    assert told(0, "resume", "last", "--script", "one.py")["orphans"] == plan["orphans"]
    assert told(0, "certificate", "last", "--verify")["entries"] == 2


@pytest.mark.parametrize(("silence", "said"), [(0.0, "starting the daemon ...\n"), (60.0, "")])
def test_who_waits_for_the_daemon_to_start_is_told_so(silence: float, said: str) -> None:
    # once, however long it takes; not by the second command, which finds it running
    program = f"from tallystick.cli import spawn; spawn.SILENCE = {silence}; spawn.connect(); spawn.connect()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)
    assert done.stderr == said


def test_a_lost_picture_is_brought_in_and_written_out_again() -> None:
    Path("shot.py").write_text(
        "async def orchestrate(ctx, args):\n"
        '    image = await ctx.run("image.generate", {"prompt": args["prompt"]})\n'
        '    return image["images"][0]\n'
    )
    given = ["--args", '{"prompt": "a lamp"}', "--grant", "image.generate"]
    refused = told(3, "run", "shot.py", *given[:2])
    assert "--grant image.generate" in refused["details"][0]["hint"]
    assert "image.generate:2:" in told(2, "run", "shot.py", *given, "--fail", "image.generate")["error"]["hint"]
    told(5, "run", "shot.py", *given, "--fail", "image.generate:1:unknown")
    assert "tally show" in told(2, "cancel", "last")["error"]["hint"]
    picture = b"\x89PNG\r\n\x1a\n" + b"drawn after all"
    Path("picture.png").write_bytes(picture)
    Path("result.json").write_text('{"images": [{"$file": "picture.png"}], "width": 8, "height": 8}')
    told(0, "reconcile", "last", "1", "--result", "result.json", "--cost", "0.02")
    assert told(0, "resume", "last")["calls"]["executed"] == 0
    (written,) = told(0, "artifacts", "last", "--export", "out")["files"]
    assert (Path(written).name, Path(written).read_bytes()) == ("orchestrate-1_0.png", picture)
