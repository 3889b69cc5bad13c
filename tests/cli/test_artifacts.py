"""`artifacts`: a run's files, listed and written out."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from cli_support import RUN, SHOT, FakeDaemon, report
from tallystick.cli import exports
from tallystick.cli.main import main
from tallystick.contract.identity import Identity
from tallystick.engine.messages import Artifact

SOUND = Identity("orchestrate/for1/#2", ("narrator/../x", 0), 1)


def artifact(identity: Identity, data: bytes, media_type: str = "image/png") -> Artifact:
    return Artifact(identity, "image.generate", sha256(data).hexdigest(), media_type, len(data))


@pytest.fixture
def pictures(daemon: FakeDaemon) -> list[Artifact]:
    """Have the daemon know three files, two of them of one call."""
    found = [artifact(SHOT, b"one"), artifact(SHOT, b"two"), artifact(SOUND, b"three", "audio/wav")]
    daemon.says("GET", f"/runs/{RUN}/artifacts", found)
    for data in (b"one", b"two", b"three"):
        daemon.says("GET", f"/files/{sha256(data).hexdigest()}", data)
    return found


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_artifacts_are_listed_with_their_whole_hash(
    pictures: list[Artifact], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["artifacts", RUN]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split() == [*str(SHOT).split(), "image/png", "3", pictures[0].sha256]
    assert "--export DIR" in err
    assert main(["artifacts", RUN, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert ([each["sha256"] for each in said["artifacts"]], said["files"]) == ([each.sha256 for each in pictures], [])


@pytest.mark.usefixtures("pictures")
def test_artifacts_are_written_under_the_names_of_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["artifacts", RUN, "--export", "out/now"]) == 0
    assert contents("out/now") == {
        "orchestrate.shot-1_3_0.png": b"one",
        "orchestrate.shot-1_3_0-2.png": b"two",
        "orchestrate-for1-2_narrator-..-x.0_1.wav": b"three",
    }
    out, err = capsys.readouterr()
    assert all(Path(line).is_absolute() for line in out.splitlines())
    assert err == "3 files in out/now\n"


@pytest.mark.usefixtures("pictures")
def test_no_other_file_is_overwritten_and_the_same_one_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/orchestrate.shot-1_3_0.png").write_bytes(b"mine")
    for _ in range(2):
        assert main(["artifacts", RUN, "--export", "out", "--json"]) == 0
        files = [Path(path).name for path in json.loads(capsys.readouterr().out)["files"]]
        assert files[:2] == ["orchestrate.shot-1_3_0-2.png", "orchestrate.shot-1_3_0-3.png"]
    assert contents("out")["orchestrate.shot-1_3_0.png"] == b"mine"
    assert len(contents("out")) == 4


@pytest.mark.usefixtures("pictures")
def test_a_folder_that_cannot_be_written_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("a file")
    assert main(["artifacts", RUN, "--export", "taken"]) == 2
    assert "cannot be written to taken" in capsys.readouterr().err


def test_two_equal_files_of_one_call_are_two_files(tmp_path: Path) -> None:
    written = exports.export([artifact(SHOT, b"x")] * 2, tmp_path, lambda _: b"x")
    assert len(set(written)) == 2


def test_a_run_without_artifacts_says_so(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", f"/runs/{RUN}/artifacts", [])
    assert main(["artifacts", RUN]) == 0
    assert "no artifacts" in capsys.readouterr().err


def test_a_result_with_artifacts_points_to_them(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.says("GET", f"/runs/{RUN}", report(result={"kept": [{"$artifact": "sha256:ab"}]}))
    assert main(["show", RUN]) == 0
    assert f"files   tally artifacts {RUN} --export DIR" in capsys.readouterr().out
