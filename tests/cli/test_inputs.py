from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.cli import inputs, options
from tallystick.contract.capability import OrphanPolicy, RepeatPolicy
from tallystick.contract.errors import UsageError
from tallystick.contract.identity import Identity
from tallystick.engine.messages import Limits


@pytest.mark.parametrize(
    ("text", "seconds"), [("50ms", 0.05), ("2s", 2.0), ("1.5m", 90.0), ("1h", 3600.0), ("0s", 0.0), ("0.25s", 0.25)]
)
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert inputs.duration(text, "--latency") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "2", "s", "2 s", "-2s", "2S", "2sec", "1e3s", "nan", "inf", "٢s", "2s3"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match=r"--latency .* is not a duration") as caught:
        inputs.duration(text, "--latency")
    assert "50ms, 2s, 1.5m or 1h" in caught.value.hint


@pytest.mark.parametrize(("text", "amount"), [("1.50", 1.5), ("$2", 2.0), (".5", 0.5), ("3.", 3.0), ("0", 0.0)])
def test_dollars_are_read(text: str, amount: float) -> None:
    assert inputs.dollars(text, "--budget") == amount


@pytest.mark.parametrize("text", ["", "NaN", "nan", "inf", "-1", "1e3", "1,50", "€2", "1_000", "9" * 400, "1 2"])
def test_anything_else_is_no_amount(text: str) -> None:
    with pytest.raises(UsageError, match="not an amount of dollars"):
        inputs.dollars(text, "--budget")


@pytest.mark.parametrize("budget", ["0", "0.00", "$0"])
def test_a_budget_of_nothing_is_refused(budget: str) -> None:
    with pytest.raises(UsageError, match=r"--budget must be above zero"):
        inputs.limits(budget=budget)


def test_a_wall_clock_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--wall-clock must be above zero"):
        inputs.limits(wall_clock="0s")


@given(st.text())
def test_reading_amounts_and_durations_never_fails_otherwise(text: str) -> None:
    for read in (inputs.dollars, inputs.duration):
        try:
            assert read(text, "--x") >= 0
        except UsageError:
            continue


def test_grants_come_repeated_and_in_lists_each_once() -> None:
    assert inputs.names(["image.generate, text.generate", "image.generate", "a.b c.d"]) == (
        "image.generate",
        "text.generate",
        "a.b",
        "c.d",
    )
    assert inputs.names(None) is None
    assert inputs.names([""]) == ()


def test_json_comes_inline_or_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "args.json").write_text('{"brief": "a lighthouse"}')
    assert inputs.json_value("[1, null]", "--args") == [1, None]
    assert inputs.json_value(f"@{tmp_path}/args.json", "--args") == {"brief": "a lighthouse"}


@pytest.mark.parametrize("text", ["", "{brief: 1}", "NaN", "'x'", "[" * 100_000, "{} {}"])
def test_what_is_not_json_says_so(text: str) -> None:
    with pytest.raises(UsageError, match=r"--args is (not JSON|nested too deep)"):
        inputs.json_value(text, "--args")


def test_a_script_keeps_its_line_ends_and_loses_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(b"\xef\xbb\xbfA = 1\r\nB = '\xc3\xa9'\r\n")
    assert inputs.read_script(path) == "A = 1\r\nB = 'é'\r\n"


def _nothing(path: Path) -> None:
    assert not path.exists()


def _binary(path: Path) -> None:
    path.write_bytes(b"\x7fELF\x02\xff\xfe")


def _huge(path: Path) -> None:
    path.write_bytes(b"#" * 10_000_000)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "No such file or directory"),
        (Path.mkdir, "Is a directory"),
        (_binary, "is not UTF-8 text: byte 5 is 0xff"),
        (_huge, "is larger than 512 KiB; nothing was sent"),
    ],
)
def test_a_script_that_cannot_be_one_is_refused(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path / "script.py")
    with pytest.raises(UsageError, match=said) as caught:
        inputs.read_script(tmp_path / "script.py")
    assert "script.py" in caught.value.message


def test_a_name_with_a_null_byte_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        inputs.read_script(Path("a\0b"))


def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="larger than"):
        inputs.read_script(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("limits.toml", 'grants = ["image.generate"]\nbudget_usd = 1.5\nconcurrency = 4\n'),
        ("limits.json", '{"grants": ["image.generate"], "budget_usd": 1.5, "concurrency": 4}'),
    ],
)
def test_an_envelope_is_toml_or_json_and_options_win_over_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = inputs.limits(envelope=tmp_path / name, concurrency=8, repeats="deny")
    assert found == Limits(grants=("image.generate",), budget_usd=1.5, concurrency=8, repeat_policy="deny")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget = 1.0", "budget"),
        ("budget_usd = 0", "budget_usd must be above zero"),
        ("budget_usd = nan", "budget_usd must be above zero and finite"),
        ("concurrency = 'four'", "concurrency"),
        ("max_calls = -1", "max_calls must be above zero"),
        ("repeat_policy = 'sometimes'", "repeat_policy"),
        ("= 1", "Invalid"),
    ],
)
def test_a_wrong_envelope_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        inputs.read_envelope(tmp_path / "limits.toml")


def test_an_identity_is_read_as_messages_show_it() -> None:
    shown = Identity("orchestrate.shot/#1", (3, "poster"), 0)
    assert inputs.identity(str(shown), "--allow-repeat") == shown
    with pytest.raises(UsageError, match="--allow-repeat: 'shot' is not an identity"):
        inputs.identity("shot", "--allow-repeat")


def test_the_options_offer_exactly_the_policies_of_the_contract() -> None:
    assert get_args(get_args(get_args(options.Repeats)[0])[0]) == get_args(RepeatPolicy)
    assert get_args(get_args(get_args(options.Orphans)[0])[0]) == get_args(OrphanPolicy)
