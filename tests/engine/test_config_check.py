"""A configuration is looked at as a whole: every unknown key, every provider, every key that is missing."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tallystick.engine.config import load
from tallystick.engine.config_check import ConfigReport, examine

SEEDREAM = """
[capabilities."image.generate"]
provider = "pictures"

[providers.pictures]
plugin = "http"
base_url = "http://127.0.0.1:9/v1"
model = "m"
key = {env = "PICTURES_KEY"}

[providers.pictures.operations."image.generate"]
path = "/images"
body = {prompt = "{prompt}"}
result = {images = [], width = 1, height = 1}
"""


def examined(tmp_path: Path, text: str) -> ConfigReport:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return examine(path)


def told(report: ConfigReport) -> list[tuple[str, str]]:
    return [(finding.severity, finding.where) for finding in report.findings]


def test_no_file_is_every_default(tmp_path: Path) -> None:
    report = examine(tmp_path / "config.toml")
    assert (report.valid, report.exists, report.findings) == (True, False, ())


def test_every_unknown_key_is_named_with_the_one_that_was_meant(tmp_path: Path) -> None:
    report = examined(
        tmp_path,
        '[daemn]\n[daemon]\nmax_lives = 3\n[budget]\ncap = 1\n[capabilities."image.generate"]\nprovider = "local"\n'
        'estimat = 1\n[capabilities."image.genrate"]\nprovider = "local"\n',
    )
    assert not report.valid
    assert {finding.where: finding.hint for finding in report.findings} == {
        "daemn": "did you mean daemon?",
        "daemon.max_lives": "did you mean max_live?",
        "budget.cap": "did you mean cap_usd?",
        'capabilities."image.generate".estimat': "did you mean estimate?",
        'capabilities."image.genrate"': "did you mean image.generate?",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[daemon\n", "not TOML"),
        ("[daemon]\nmax_live = 0\n", "max_live"),
        ('[daemon]\nwarm = "x"\nmax_lives = 1\n', "warm"),
        ('[capabilities."image.generate"]\nprovider = "local"\nestimate = 2.0\nceiling = 1.0\n', "below estimate"),
        ('[capabilities."image.generate"]\nprovider = "local"\napproval = "sometimes"\n', "approval"),
        ("[budget]\ncap_usd = -1\n", "cap_usd"),
    ],
)
def test_a_wrong_value_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    report = examined(tmp_path, text)
    assert not report.valid
    assert any(said in finding.message for finding in report.findings)


def test_a_missing_provider_is_named_with_those_there_are(tmp_path: Path) -> None:
    report = examined(tmp_path, '[capabilities."image.generate"]\nprovider = "locale"\n')
    (finding,) = report.findings
    assert (finding.severity, finding.where) == ("error", "providers.locale")
    assert "local" in finding.hint


def test_a_missing_key_is_named_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PICTURES_KEY", raising=False)
    report = examined(tmp_path, SEEDREAM)
    assert told(report) == [("error", "providers.pictures")]
    assert "PICTURES_KEY is not set" in report.findings[0].message


def test_a_key_is_looked_for_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PICTURES_KEY", "sk-planted-secret")
    report = examined(tmp_path, SEEDREAM)
    assert report.valid
    assert "planted" not in repr(report)


def test_a_capability_without_a_price_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PICTURES_KEY", "sk-planted-secret")
    report = examined(tmp_path, SEEDREAM)
    assert told(report) == [("warning", 'capabilities."image.generate"')]
    assert "$0.02 each" in report.findings[0].message
    priced = SEEDREAM + "price = {fixed = 0.03}\n"
    assert examined(tmp_path, priced).findings == ()


def test_a_capability_that_its_provider_does_not_serve_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PICTURES_KEY", "sk-planted-secret")
    text = SEEDREAM.replace('[capabilities."image.generate"]', '[capabilities."speech.generate"]')
    report = examined(tmp_path, text)
    assert told(report) == [("error", 'capabilities."speech.generate".provider')]


def test_a_provider_that_nothing_asks_is_warned_of(tmp_path: Path) -> None:
    report = examined(tmp_path, "[providers.spare]\nplugin = 'local'\n")
    assert (report.valid, told(report)) == (True, [("warning", "providers.spare")])


def test_retries_of_unknown_outcomes_are_explained(tmp_path: Path) -> None:
    text = '[capabilities."image.generate"]\nprovider = "local"\nretries = 2\nretry_on = ["unknown"]\n'
    assert told(examined(tmp_path, text)) == [("warning", 'capabilities."image.generate".retry_on')]


@pytest.mark.parametrize(
    ("approval", "threshold"),
    [("false", None), ("true", 0), ('"always"', 0), ("0", 0), ("1", 1_000_000), ("0.25", 250_000)],
)
def test_what_an_approval_may_say(tmp_path: Path, approval: str, threshold: int | None) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[capabilities."image.generate"]\nprovider = "local"\napproval = {approval}\n')
    assert load(path).specs()["image.generate"].approval == threshold


def test_what_is_good_for_a_check_is_good_for_the_daemon(tmp_path: Path) -> None:
    text = '[budget]\ncap_usd = 5\n[capabilities."text.generate"]\nprovider = "local"\nestimate_tokens = 900\n'
    assert examined(tmp_path, text).valid
    config: Any = load(tmp_path / "config.toml")
    assert (config.budget.cap, config.specs()["text.generate"].tokens) == (5_000_000, 900)
    assert tomllib.loads(text)
