from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_support import SCRIPT, FakeDaemon
from tallystick.engine import paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point every command of a test at a state directory of its own."""
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    with FakeDaemon().serve(paths.socket_path()) as fake:
        yield fake


@pytest.fixture
def script() -> str:
    Path("shots.py").write_text(SCRIPT)
    return "shots.py"
