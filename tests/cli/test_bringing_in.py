"""Files of one's own: `artifacts add`, `--args NAME=@FILE`, and `gc`."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli_support import RUN, FakeDaemon, Stream, progress, report
from tallystick.cli import arguments
from tallystick.cli.main import main
from tallystick.contract.errors import UsageError
from tallystick.engine import files
from tallystick.engine.messages import Source
from tallystick.engine.money_messages import FileReference, SweepReport

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
REFERENCE = {"$artifact": "sha256:" + "ab" * 32, "media_type": "image/png", "bytes": len(PNG)}
KEPT = FileReference(sha256="sha256:" + "ab" * 32, media_type="image/png", bytes=len(PNG))


@pytest.fixture
def keeping(daemon: FakeDaemon) -> FakeDaemon:
    """Have the daemon keep files and run scripts."""
    Path("lamp.png").write_bytes(PNG)
    daemon.says("POST", "/files", KEPT)
    for path in ("/runs", f"/runs/{RUN}/resume"):
        daemon.says("POST", path, report(status="running"))
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", report())
    daemon.says("GET", f"/runs/{RUN}/source", Source(0, "", {"brief": "b", "picture": None}))
    return daemon


def test_a_file_is_sent_as_it_is_and_shown_as_payloads_refer_to_it(
    keeping: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["artifacts", "add", "lamp.png"]) == 0
    assert keeping.body("POST", "/files") == PNG
    assert json.loads(capsys.readouterr().out) == REFERENCE
    assert main(["artifacts", "add", "lamp.png", "lamp.png", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [REFERENCE, REFERENCE]}


@pytest.mark.parametrize(
    ("given", "args"),
    [
        (["picture=@lamp.png"], {"picture": REFERENCE}),
        (['{"brief": "x"}', "picture=@lamp.png"], {"brief": "x", "picture": REFERENCE}),
        (["a=@lamp.png", "b=@lamp.png"], {"a": REFERENCE, "b": REFERENCE}),
    ],
)
def test_files_go_into_the_args_by_name(keeping: FakeDaemon, script: str, given: list[str], args: Any) -> None:
    options = [word for one in given for word in ("--args", one)]
    assert main(["run", script, *options]) == 0
    assert keeping.body("POST", "/runs")["args"] == args


def test_on_a_resume_they_go_into_the_args_of_the_run(keeping: FakeDaemon) -> None:
    assert main(["resume", RUN, "--args", "picture=@lamp.png"]) == 0
    assert keeping.body("POST", f"/runs/{RUN}/resume")["args"] == {"brief": "b", "picture": REFERENCE}


def test_args_without_files_bring_nothing_in(keeping: FakeDaemon, script: str) -> None:
    assert main(["run", script, "--args", '{"brief": "a=@b"}']) == 0
    assert keeping.body("POST", "/runs")["args"] == {"brief": "a=@b"}
    assert not [asked for asked in keeping.asked if asked[1] == "/v1/files"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["picture=lamp.png"], "picture=@FILE"),
        (["picture=@nowhere.png"], "cannot be read"),
        (["picture=@empty.png"], "is empty"),
        (["1", "2"], "two values"),
        (["{", "picture=@lamp.png"], "not JSON"),
    ],
)
def test_what_is_no_file_and_no_json_is_refused_before_anything_is_sent(given: list[str], said: str) -> None:
    Path("lamp.png").write_bytes(PNG)
    Path("empty.png").write_bytes(b"")
    with pytest.raises(UsageError) as refused:
        arguments.read(given)
    assert said in f"{refused.value.message} {refused.value.hint}"


def test_a_file_goes_into_an_object_only(keeping: FakeDaemon, script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", script, "--args", "[1]", "--args", "picture=@lamp.png"]) == 2
    assert "puts a file into an object" in capsys.readouterr().err


def test_a_file_beyond_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert arguments.MAX_FILE == files.MAX_FILE
    monkeypatch.setattr(arguments, "MAX_FILE", 8)
    Path("lamp.png").write_bytes(PNG)
    with pytest.raises(UsageError, match="larger than"):
        arguments.read_file(Path("lamp.png"))


@pytest.mark.parametrize("argv", [["add"], ["add", "lamp.png", "--export", "out"], [RUN, "lamp.png"]])
def test_files_are_for_add_alone(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["artifacts", *argv]) == 2
    assert "tally artifacts add" in capsys.readouterr().err


def test_gc_says_what_went(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("POST", "/sweep", SweepReport(dry_run=False, removed=2, bytes=4096, kept=0))
    assert main(["gc", "--older-than", "2h"]) == 0
    assert daemon.body("POST", "/sweep") == {"older_than": 7200.0, "dry_run": False}
    assert "2 files removed, 4,096 bytes" in capsys.readouterr().out
    assert main(["gc", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 2
