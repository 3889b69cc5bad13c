"""The frame: what every bench prints and writes, and how `tally bench` lists and runs them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tallystick.bench import catalogue, plotting
from tallystick.bench.frame import Bench, Findings, Options, Plot, Table
from tallystick.cli.main import main
from tallystick.contract.errors import UsageError

PLOT = Plot(title="t", x="N", y="calls", lines={"ours": ((4, 5), (8, 9)), "theirs": ((4, 8), (8, 16))})
FOUND = Findings((Table(("what", "ms"), (("a", "1.0"), ("longer", "12.0"))),), {"a": 1.0}, plot=PLOT)


def bench(findings: Findings = FOUND) -> Bench:
    def measure(_: Options) -> Findings:
        return findings

    return Bench("sample", "What is it?\n\nSo it is.", measure)


def written(bench: Bench, folder: Path, *options: str) -> tuple[int, Any]:
    status = bench.main(["--out", str(folder / "out"), "--disk", str(folder), *options])
    return status, json.loads((folder / "out" / "sample.json").read_bytes())


def test_a_bench_prints_its_table_and_writes_json_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = written(bench(), tmp_path)
    assert status == 0
    assert capsys.readouterr().out.splitlines() == ["what      ms", "a        1.0", "longer  12.0"]
    assert told["figures"] == {"a": 1.0}
    assert told["command"][:3] == ["tally", "bench", "sample"]
    machine = told["surroundings"]
    assert machine["fdatasync_ms"] > 0
    assert machine["cores"] >= 1
    assert {"python", "tallystick", "lmdb"} <= machine["versions"].keys()
    assert (tmp_path / "out" / "sample.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "sample.svg").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # what was measured on the disk is gone


def test_with_json_the_same_object_is_all_of_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = written(bench(), tmp_path, "--json")
    assert json.loads(capsys.readouterr().out) == told


def test_what_was_missed_is_said_and_is_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = written(bench(Findings(FOUND.tables, 1, missed=("it is too slow",))), tmp_path)
    assert (status, told["missed"]) == (1, ["it is too slow"])
    assert "missed: it is too slow" in capsys.readouterr().out


def test_without_matplotlib_the_figures_are_written_and_it_is_said_why_there_is_no_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.setitem(sys.modules, name, None)
    status, _ = written(bench(), tmp_path)
    assert status == 0
    assert plotting.MISSING in capsys.readouterr().err
    assert not (tmp_path / "out" / "sample.png").exists()


def test_an_error_teaches_and_has_its_own_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_: Options) -> Findings:
        raise UsageError("nothing was spent", hint="say yes")

    assert Bench("sample", "", refuse).main(["--out", str(tmp_path), "--json"]) == 2
    said = capsys.readouterr()
    assert "error[TS-U001]: nothing was spent\n  hint: say yes" in said.err
    assert json.loads(said.out)["error"]["code"] == "TS-U001"


def test_every_bench_is_listed_with_its_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue.NAMES)
    assert all(line.endswith("?") for line in lines)
    assert main(["bench", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["benches"]) == len(catalogue.NAMES)


def test_every_file_of_a_question_is_in_the_list() -> None:
    folder = Path(catalogue.__file__).parent
    packages = {path.parent.name for path in folder.glob("*/__main__.py")}
    modules = {path.stem for path in folder.glob("*.py") if "\nmain = Bench(" in path.read_text(encoding="utf-8")}
    assert packages | modules == set(catalogue.NAMES)


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_every_bench_shows_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", name, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_an_unknown_bench_and_an_unknown_option_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "speed"]) == 2
    assert "there are fanout, durable" in capsys.readouterr().err
    assert main(["bench", "help", "--speed"]) == 2
    assert "--speed" in capsys.readouterr().err


def test_the_list_imports_no_bench() -> None:
    program = (
        "import sys; from tallystick.bench.catalogue import listing; listing(); "
        "print(*[name for name in sys.modules if name in ('matplotlib', 'lmdb', 'anyio', 'litestar')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
