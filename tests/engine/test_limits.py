"""From the limits that a person writes to an envelope, and the configuration of the daemon: wrong values by name."""

from pathlib import Path
from typing import Any

import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import UsageError
from tallystick.engine.config import Config, load
from tallystick.engine.limits import MAX_COUNT, MAX_SEED, check_latency, check_seed, cost_micros, envelope_of
from tallystick.engine.messages import Limits

BASE = Envelope(grants=("text.generate",), budget=5, concurrency=3, wall_clock=9.0, orphan_policy="stop")


def test_what_is_not_given_stays() -> None:
    assert envelope_of(Limits(), BASE) == BASE


def test_what_is_given_takes_its_place() -> None:
    given = Limits(
        grants=("image.generate", "text.generate", "image.generate"),
        budget_usd=1.25,
        concurrency=7,
        max_calls=11,
        wall_clock=2.5,
        repeat_policy="deny",
        orphan_policy="warn",
    )
    assert envelope_of(given, BASE) == Envelope(
        grants=("image.generate", "text.generate"),
        budget=1_250_000,
        concurrency=7,
        max_calls=11,
        wall_clock=2.5,
        repeat_policy="deny",
        orphan_policy="warn",
    )


def test_no_grants_are_a_grant_of_nothing() -> None:
    assert envelope_of(Limits(grants=()), BASE).grants == ()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"grants": ("image.genrate",)}, "'image.genrate' is not a capability"),
        ({"grants": ("",)}, "is not a capability"),
        ({"budget_usd": 0}, "budget"),
        ({"budget_usd": -0.01}, "budget"),
        ({"budget_usd": float("nan")}, "budget"),
        ({"budget_usd": float("inf")}, "budget"),
        ({"budget_usd": 2e6}, "budget"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": -4}, "concurrency is -4"),
        ({"max_calls": 0}, "max_calls is 0"),
        ({"max_calls": MAX_COUNT + 1}, "max_calls"),
        ({"wall_clock": 0.0}, "wall_clock"),
        ({"wall_clock": float("inf")}, "wall_clock"),
        ({"wall_clock": float("nan")}, "wall_clock"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_name(limits: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        envelope_of(Limits(**limits), BASE)


def test_the_nearest_capability_is_named() -> None:
    with pytest.raises(UsageError) as refused:
        envelope_of(Limits(grants=("image.genrate",)), BASE)
    assert "image.generate" in refused.value.hint


@pytest.mark.parametrize(("usd", "micros"), [(0, 0), (0.000001, 1), (0.1 + 0.2, 300_000), (19.99, 19_990_000)])
def test_dollars_become_whole_micro_dollars(usd: float, micros: int) -> None:
    assert cost_micros(usd) == micros


@pytest.mark.parametrize("usd", [-0.01, float("nan"), float("inf"), 1e9])
def test_a_cost_that_cannot_be_is_refused(usd: float) -> None:
    with pytest.raises(UsageError, match="cost"):
        cost_micros(usd)


def test_seeds_and_latencies_have_their_range() -> None:
    for seed in (0, MAX_SEED):
        check_seed(seed)
    for seed in (-1, MAX_SEED + 1):
        with pytest.raises(UsageError, match="seed"):
            check_seed(seed)
    for seconds in (0.0, 1.5):
        check_latency(seconds)
    for seconds in (-0.1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="latency"):
            check_latency(seconds)


# The configuration.


def test_no_file_means_every_default(tmp_path: Path) -> None:
    config = load(tmp_path / "config.toml")
    assert config == Config()
    assert set(config.policies()) == {"storyboard.plan", "image.generate", "review.visual", "text.generate"}
    assert {policy.provider for policy in config.policies().values()} == {"local"}


def test_a_file_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        """
        [daemon]
        max_live = 3
        [capabilities."video.generate"]
        provider = "http"
        concurrency = 2
        estimate = 0.25
        [providers.http]
        base_url = "https://example.test"
        """
    )
    config = load(path)
    assert (config.daemon.max_live, config.daemon.warm) == (3, 2)
    assert config.policies()["video.generate"].concurrency == 2
    assert config.specs()["video.generate"].estimate == 250_000
    assert config.specs()["image.generate"].estimate == 20_000
    assert "speech.generate" not in config.specs()
    assert config.providers["http"] == {"base_url": "https://example.test"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[daemon", "wrong"),
        ("daemon = 3", "daemon"),
        ("[daemon]\nmax_lives = 3", "max_lives"),
        ("[daemon]\nmax_live = 0", "max_live"),
        ('[daemon]\nmax_live = "many"', "max_live"),
        ("[daemon]\ndrain = 0", "drain"),
        ("[sandbox]\nmemory_mb = -1", "memory_mb"),
        ("[surprise]\nx = 1", "surprise"),
        ('[capabilities."image.generate"]\nconcurrency = 3', "provider"),
        ('[capabilities."image.generate"]\nprovider = "local"\ntimeout = 0', "timeout"),
        ('[capabilities."image.generate"]\nprovider = "local"\nestimate = -1', "estimate"),
        ('[capabilities."image.genrate"]\nprovider = "local"', "image.genrate"),
        ("\x00", "wrong"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_path_and_the_fault(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        load(path)
    assert str(path) in refused.value.message
    assert said in refused.value.message
    assert refused.value.hint


def test_a_file_that_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="wrong"):
        load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
