"""What can only be seen of a process: signals, closed pipes, what is imported."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_support import RUN, FakeDaemon, Stream, progress, report
from tallystick.cli.demo import story
from tallystick.engine.messages import RunLine

TALLY = [sys.executable, "-m", "tallystick.cli.main"]
HEAVY = ("litellm", "aiodocker", "litestar", "uvicorn", "httpx", "anyio", "msgspec", "rich", "structlog", "lmdb", "PIL")


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*TALLY, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("command", [["run", "shots.py"], ["resume", RUN], ["watch", RUN, "--json"]])
def test_the_first_ctrl_c_lets_the_run_go_on_and_says_so(daemon: FakeDaemon, command: list[str]) -> None:
    Path("shots.py").write_text("async def orchestrate(ctx, args): ...\n")
    running = report(status="running", result=None)
    stream = Stream(progress("snapshot"), hold=True)
    daemon.says("POST", "/runs", running)
    daemon.says("POST", f"/runs/{RUN}/resume", running)
    daemon.says("GET", f"/runs/{RUN}", running)
    daemon.says("GET", f"/runs/{RUN}/events", stream)
    with start(*command) as process:
        assert stream.sent.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        stream.go_on.set()
    assert process.returncode == 130
    assert f"run {RUN} goes on. `tally watch {RUN}` follows it, `tally cancel {RUN}` ends it" in err
    assert "Traceback" not in err
    assert json.loads(out)["status"] == "running" if "--json" in command else out == ""


@pytest.mark.parametrize("argv", [["runs"], ["runs", "--json"], ["run", "shots.py"], ["--help"]])
def test_a_closed_pipe_is_quiet(daemon: FakeDaemon, argv: list[str]) -> None:
    Path("shots.py").write_text("async def orchestrate(ctx, args): ...\n")
    lines = [RunLine(run=RUN, name="x" * 400, status="completed", created=1.0, updated=1.0)] * 500
    daemon.says("GET", "/runs", lines)
    daemon.says("POST", "/runs", report(result={"text": ["x" * 400] * 500}))
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", report(result={"text": ["x" * 400] * 500}))
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*TALLY, *argv], stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    finally:
        os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1


def test_a_terminal_without_unicode_gets_escapes(daemon: FakeDaemon) -> None:
    daemon.says("GET", f"/runs/{RUN}", report(result="漢"))
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*TALLY, "show", RUN], capture_output=True, env=environment, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"\\u6f22"' in done.stdout


def test_help_loads_the_command_line_alone() -> None:
    code = "import sys; from tallystick.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    loaded = done.stderr.split()
    assert not [name for name in loaded if name.partition(".")[0] in HEAVY]
    ours = {name for name in loaded if name.startswith("tallystick.")}
    assert {name.split(".")[1] for name in ours} == {"cli", "contract"}
    assert len(ours) <= 20
    for command in ("run", "check", "gate", "resume", "runs", "show", "watch", "attempts", "reconcile", "cancel"):
        assert f"\n  {command} " in done.stdout
    for command in ("capabilities", "doctor", "daemon", "demo"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("argv", "spared"),
    [(["runs"], {"pydantic"}), (["show", RUN], {"pydantic"}), (["runs", "--json"], {"pydantic", "rich"})],
)
def test_looking_loads_no_more_than_it_shows(daemon: FakeDaemon, argv: list[str], spared: set[str]) -> None:
    daemon.says("GET", "/runs", [RunLine(run=RUN, name="shots", status="completed", created=1.0, updated=1.0)])
    daemon.says("GET", f"/runs/{RUN}", report())
    code = f"import sys; from tallystick.cli.main import main; main({argv!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert RUN in done.stdout
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded & (spared | {"litellm", "aiodocker", "litestar", "uvicorn", "httpx", "anyio", "lmdb", "PIL"}) == set()
    ours = {".".join(name.split(".")[:2]) for name in done.stderr.split() if name.startswith("tallystick.")}
    assert ours == {"tallystick.cli", "tallystick.contract", "tallystick.engine"}


def test_a_ctrl_c_before_the_run_has_an_id_says_where_to_look(daemon: FakeDaemon) -> None:
    Path("shots.py").write_text("async def orchestrate(ctx, args): ...\n")
    accepting = Stream(hold=True)
    daemon.says("POST", "/runs", accepting)
    with start("run", "shots.py") as process:
        assert accepting.sent.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        accepting.go_on.set()
    assert (process.returncode, out) == (130, "")
    assert "`tally runs` shows whether a run started" in err


def test_the_demo_does_the_main_job_on_a_daemon_of_its_own() -> None:
    done = subprocess.run([*TALLY, "demo", "--json"], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["executed"], outcome["replayed"]) == (7, 6)
    assert (outcome["paid_usd"], outcome["rerun_usd"]) == (0.122, 0.224)
    assert [Path(name).parent for name in outcome["pictures"]] == [Path("demo-out").absolute()] * 6
    assert [Path(name).read_bytes()[:8] for name in outcome["pictures"]] == [b"\x89PNG\r\n\x1a\n"] * 6
    run, *resumes = [shlex.split(line)[2:] for line in done.stderr.splitlines() if line.startswith("$ tally ")]
    assert json.loads(run[run.index("--args") + 1]) == story.ARGS
    assert [words[-1] for words in resumes] == ["moved_to_helper.py", "inserted_call.py", "repaired.py"]
    shutil.rmtree(outcome["home"])
