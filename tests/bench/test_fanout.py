"""The fanout bench spends real calls: an upstream on loopback counts and bills them."""

import io
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from http_support import SECRET, settings_of
from tallystick.bench.fanout.__main__ import main
from tallystick.bench.fanout.plan import calls_of, plan
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.errors import UsageError
from upstream_apis import IMAGE_OUT, TOKENS_PER_IMAGE
from upstream_faults import Fault
from upstream_server import Upstream, running

PRICE = 0.05  # a bit more than what the upstream bills for a picture
BILLED = TOKENS_PER_IMAGE * IMAGE_OUT


class Desk:
    """A user at a desk, whose configuration names the upstream as the provider ``pictures``."""

    def __init__(self, upstream: Upstream, folder: Path) -> None:
        self.upstream = upstream
        self.folder = folder
        self.out = folder / "out"

    async def bench(self, *options: str, provider: str = "pictures") -> tuple[int, Any]:
        """Run the bench as a command, and return its status and the outcome that it wrote."""
        words = ("--provider", provider, "--config", str(self.folder / "config.toml"), "--out", str(self.out))
        argv = [*words, "--disk", str(self.folder), "--payload", '{"size": "64x48"}', *options]
        status = await anyio.to_thread.run_sync(main, argv)
        written = self.out / "fanout.json"
        return status, json.loads(written.read_bytes())["figures"]["outcome"] if written.exists() else None


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("TALLYSTICK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    async with running() as upstream:
        settings = {"plugin": "http", **settings_of(upstream.url, "openai")}
        config = {"sandbox": {"driver": "locked"}, "providers": {"pictures": settings}}
        lines = (f"{name} = {toml(value)}\n" for name, value in config.items())
        (tmp_path / "config.toml").write_text("".join(lines))
        yield Desk(upstream, tmp_path)


def toml(value: Any) -> str:
    """Write a value in one line; but for tables it is JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def says(line: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setattr("sys.stdin", io.StringIO(line))


async def test_the_calls_that_it_prints_are_those_that_arrived(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    status, outcome = await desk.bench("--n", "2,4", "--price", str(PRICE), "--yes")
    printed = capsys.readouterr().out
    assert status == 0
    for width, found in zip((2, 4), outcome["compared"], strict=True):
        contract, rerun = found["contract"], found["rerun"]
        assert (contract["calls"], contract["images"], found["replayed"]) == (width + 1, width, width - 1)
        assert (rerun["calls"], rerun["images"]) == (2 * width, 2 * width - 1)
        assert contract["usd"] < rerun["usd"]
        cells = next(line for line in printed.splitlines() if line.startswith(f"{width} ")).split()
        assert cells[1:5] == [str(width + 1), str(2 * width), str(width), str(2 * width - 1)]
    assert desk.upstream.count("image") == 1 + calls_of(2) + calls_of(4) == outcome["calls"]
    assert desk.upstream.bill == outcome["spent"]
    assert (desk.out / "fanout.png").exists()
    assert SECRET not in (desk.out / "fanout.json").read_text() + printed


async def test_a_refusal_leaves_no_spend(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for answer in ("n\n", ""):
        says(answer)(monkeypatch)
        status, outcome = await desk.bench("--n", "4")
        assert (status, outcome, desk.upstream.hits) == (2, None, [])
        assert "$0.20 in all, never more than $2.00" in capsys.readouterr().err


async def test_a_yes_spends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    says("y\n")(monkeypatch)
    status, _ = await desk.bench("--n", "2", "--price", str(PRICE))
    assert (status, desk.upstream.count("image")) == (0, 1 + calls_of(2))


async def test_what_does_not_fit_under_the_cap_is_left_out(desk: Desk) -> None:
    cap = (1 + calls_of(2)) * PRICE
    status, outcome = await desk.bench("--n", "2,4", "--price", str(PRICE), "--max-spend", str(cap), "--yes")
    assert (status, outcome["left_out"]) == (0, [4])
    assert desk.upstream.count("image") == 1 + calls_of(2)
    assert desk.upstream.bill <= cap * MICROS_PER_USD


async def test_a_provider_that_is_dearer_than_was_said_is_stopped_under_the_cap(desk: Desk) -> None:
    """Each call costs eight times what was told: the first shows it, and no second one is made."""
    cap = 0.1
    status, outcome = await desk.bench("--n", "4,8", "--price", "0.005", "--max-spend", str(cap), "--yes")
    assert (status, outcome["compared"], desk.upstream.count("image")) == (1, [], 1)
    assert BILLED <= desk.upstream.bill == outcome["spent"] <= cap * MICROS_PER_USD
    assert "give --price 0.04" in outcome["trouble"]


async def test_a_call_that_turns_dear_ends_it_before_the_next_launch(desk: Desk) -> None:
    desk.upstream.script(Fault(lie="usage"), kind="image", nth=1)  # the trial has no price of its own
    status, outcome = await desk.bench("--n", "4", "--price", "0.02", "--max-spend", "0.3", "--yes")
    assert (status, outcome["compared"], desk.upstream.count("image")) == (1, [], 1 + 4)
    assert desk.upstream.bill <= 0.3 * MICROS_PER_USD


async def test_a_bad_prompt_that_is_taken_ends_it_with_what_was_spent(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    status, outcome = await desk.bench("--n", "4,8", "--price", str(PRICE), "--yes", "--bad-prompt", "a fine prompt")
    assert (status, outcome["compared"], outcome["calls"]) == (1, [], 1 + 4)
    assert desk.upstream.count("image") == 1 + 4
    assert "is completed with 4 calls executed" in capsys.readouterr().out


async def test_local_is_not_asked_about_and_makes_the_same_calls(desk: Desk) -> None:
    status, outcome = await desk.bench("--n", "2,3", provider="local")
    assert status == 0
    assert [(each["contract"]["calls"], each["rerun"]["calls"]) for each in outcome["compared"]] == [(3, 4), (4, 6)]
    assert desk.upstream.hits == []


async def test_an_unknown_provider_is_refused_with_those_there_are(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = await desk.bench("--yes", provider="pictues")
    assert status == 2
    assert "there are http, litellm, local, pictures" in capsys.readouterr().err


async def test_a_provider_that_cannot_be_used_is_refused_before_the_question(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    status, outcome = await desk.bench("--yes")
    assert (status, outcome, desk.upstream.hits) == (2, None, [])
    assert "OPENAI_API_KEY is not set" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--n", "8,4"), ("--n", "1"), ("--max-spend", "0"), ("--payload", "[]")])
async def test_a_wrong_option_is_a_usage_error(desk: Desk, words: tuple[str, str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        await desk.bench(*words)


def test_a_plan_takes_widths_as_long_as_they_fit() -> None:
    agreed = plan((4, 8, 16, 32), 1, 20_000, 2_000_000, trial=1)
    assert (agreed.widths, agreed.left_out) == ((4, 8, 16), (32,))
    assert agreed.estimate == (1 + 9 + 17 + 33) * 20_000 <= agreed.cap
    assert plan((4, 8), 3, 20_000, 2_000_000).widths == (4, 4, 4, 8, 8, 8)
    with pytest.raises(UsageError, match="nothing was spent"):
        plan((4,), 1, 20_000, 100_000)
