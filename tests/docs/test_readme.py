"""What the README shows is so: its commands are carried out with a real daemon, its transcript is the demo's."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs_support import ROOT, Block, blocks, rows
from tallystick.cli import spawn
from tallystick.engine import paths

PAGE = ROOT / "README.md"
RUN = re.compile(r"\b1m[0-9a-z]{12}\b")
CUT = "[…]"


@pytest.fixture
def workplace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, with a state directory of its own; a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="ts") as folder:
        monkeypatch.setenv(paths.HOME_VARIABLE, f"{folder}/home")
        paths.home().mkdir(mode=0o700)
        paths.config_path().write_text('[sandbox]\ndriver = "locked"\n')  # no image is built for each test
        for name in ("PYTHONDONTWRITEBYTECODE", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        work = Path(folder) / "work"
        work.mkdir()
        monkeypatch.chdir(work)
        yield work
        client = spawn.running()
        if client is not None:
            spawn.stop(client)


def tally(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Carry a command out in a process of its own, as a shell does."""
    program = [sys.executable, "-m", "tallystick.cli.main"]
    environment = dict(os.environ)  # without what readline has set behind Python's back: a width of 80 columns
    return subprocess.run(
        [*program, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=50
    )


def carried_out(block: Block, folder: Path) -> str:
    """Do what a block tells a reader to do, see that its commands end as it says, and return what they print."""
    match block.info.split():
        case ["python", "script"]:
            (folder / "shots.py").write_text(block.text, encoding="utf-8")
        case ["sh"]:
            subprocess.run(["sh", "-ec", block.text], cwd=folder, check=True)
        case ["console", "exits", *statuses]:
            commands = [shlex.split(line.removeprefix("$ ")) for line in block.text.splitlines()]
            assert {words[0] for words in commands} == {"tally"}
            done = [tally(*words[1:]) for words in commands]
            assert [each.returncode for each in done] == list(map(int, statuses)), [each.stderr for each in done]
            return "".join(each.stdout for each in done)
    return ""


def test_its_commands_do_what_it_says(workplace: Path) -> None:
    out = "".join(carried_out(block, workplace) for block in blocks(PAGE))
    assert "accepted: 2 committed sites compared, the source keeps every committed call" in out
    assert out.count("(shots) completed") == 3  # resumed, shown, and resumed after the decision
    assert len(list((workplace / "pictures").glob("orchestrate.draw-1_*_0.png"))) == 3


def test_every_block_is_carried_out_or_compared() -> None:
    kinds = {block.info for block in blocks(PAGE) if not block.info.startswith("console exits")}
    assert kinds == {"console", "text", "python script", "sh"}
    (make,) = [block for block in blocks(PAGE) if block.info == "console"]
    assert make.text.split() == ["$", "make", "demo", "$", "make", "test"]


def plain(text: str) -> str:
    """Return text with its run's id and its line breaks made equal to those of any other run."""
    return " ".join(RUN.sub("RUN", text).split())


def test_the_transcript_is_the_demos(workplace: Path) -> None:
    done = tally("demo", "--home", str(workplace.parent / "home"))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (workplace / "demo-out").iterdir()) == [f"shot-{n}.png" for n in range(1, 7)]
    (block,) = blocks(PAGE, "text")
    progress = [line for line in block.text.splitlines() if re.match(r"  [+x] ", line)]
    # how long the daemon takes to start is the machine's matter
    said = [line for line in done.stderr.splitlines() if line != "starting the daemon ..."]
    assert sorted(map(plain, progress)) == sorted(map(plain, said))
    answers = "\n".join(line for line in block.text.splitlines() if line not in progress)
    rest = plain(done.stdout)
    for part in map(plain, answers.split(CUT)):
        assert part in rest
        rest = rest.partition(part)[2]


def test_the_exit_statuses_are_those_of_the_errors_page() -> None:
    def statuses(page: Path) -> list[str]:
        return [cells[0] for cells in rows(page) if cells[0].isdigit()]

    assert statuses(PAGE) == statuses(ROOT / "docs" / "errors.md")
