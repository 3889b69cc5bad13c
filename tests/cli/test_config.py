"""`config check` and `config show`: without a daemon, and without showing what may be a secret."""

import json
import tomllib
from pathlib import Path

import pytest

from tallystick.cli.main import main
from tallystick.engine import paths


@pytest.fixture
def file() -> Path:
    path = paths.config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_a_good_file_exits_with_zero(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[budget]\ncap_usd = 2.5\n")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == f"good: {file}\n"


def test_a_wrong_file_exits_with_two_and_says_why(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[budget]\ncap = 2.5\n")
    assert main(["config", "check"]) == 2
    out = capsys.readouterr().out
    assert "error: budget.cap: nobody knows this key" in out
    assert "hint: did you mean cap_usd?" in out
    assert main(["config", "check", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["valid"] is False


def test_show_fills_in_every_default_and_reads_as_toml(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[budget]\ncap_usd = 2.5\n[capabilities."image.generate"]\nprovider = "local"\napproval = 0.5\n')
    assert main(["config", "show"]) == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert shown["budget"] == {"cap_usd": 2.5}
    assert shown["capabilities"]["image.generate"]["approval"] == 0.5
    assert shown["capabilities"]["text.generate"]["provider"] == "local"
    assert shown["daemon"]["max_live"] == 8


def test_show_hides_what_may_be_a_secret(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        '[providers.x]\napi_key = "sk-planted"\nkey = {env = "X_KEY"}\nheaders = {"X-Api-Key" = "sk-planted"}\n'
    )
    for argv in (["config", "show"], ["config", "show", "--json"]):
        assert main(argv) == 0
        out = capsys.readouterr().out
        assert "sk-planted" not in out
        assert "X_KEY" in out
