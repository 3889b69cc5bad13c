"""Setting up the ``litellm`` provider: what is refused, where keys are found, and that it is imported late."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from http_support import SECRET
from litellm_support import LitellmRigs, direct
from provider_support import MemoryArtifacts
from tallystick.providers import registry
from tallystick.providers.litellm import library
from tallystick.providers.litellm.advice import advise
from tallystick.providers.litellm.settings import KEYS, LitellmSettings
from tallystick.providers.registry import ProviderSetupError
from upstream_faults import Fault
from upstream_server import Upstream

WRONG = [
    ({}, "no model is set"),
    ({"model": "gpt-image-1"}, "model"),
    ({"models": {"image.generate": "openai/a", "text.generate": "gemini/b"}}, "gemini, openai"),
    ({"model": "litellm_proxy/a"}, "base_url"),
    ({"model": "openai/a", "models": {"image.paint": "openai/a"}}, "image.paint"),
    ({"model": "openai/a", "options": {"video.generate": {}}}, "video.generate"),
    ({"model": "openai/a", "key": {"env": "TALLY_NO_SUCH_KEY"}}, "TALLY_NO_SUCH_KEY is not set"),
    ({"model": "openai/a", "tries": 3}, "tries"),
]


@pytest.mark.parametrize(("settings", "said"), WRONG)
def test_settings_that_are_wrong_are_refused(
    settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, SECRET)
    with pytest.raises(ProviderSetupError) as refused:
        registry.load("pictures", {"plugin": "litellm", **settings}, MemoryArtifacts())
    assert said in refused.value.message


@pytest.mark.parametrize(("route", "variable"), KEYS.items())
def test_each_route_has_a_variable_for_its_key(route: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, SECRET)
    settings = {"plugin": "litellm", "model": f"{route}/model", "base_url": "http://127.0.0.1:4000"}
    provider = registry.load("pictures", settings, MemoryArtifacts()).provider
    assert provider.capabilities == {"image.generate", "text.generate", "storyboard.plan", "review.visual"}


def test_without_litellm_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ProviderSetupError) as refused:
        registry.load("pictures", {"plugin": "litellm", "model": "openai/a"}, MemoryArtifacts())
    assert "tallystick[litellm]" in refused.value.hint


def test_the_provider_itself_is_imported_without_litellm() -> None:
    looks = "import sys, tallystick.providers.litellm; sys.exit('litellm' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", looks], check=False).returncode == 0


async def test_options_reach_the_api_and_a_price_of_ones_own_counts(
    litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    changes: dict[str, Any] = {
        "options": {"image.generate": {"quality": "low"}},
        "prices": {"image.generate": {"fixed": 0.011}},
    }
    outcome = await litellm_rig(direct(upstream.url, **changes)).call()
    assert outcome.cost == 11_000
    assert upstream.hits[0].payload["quality"] == "low"


async def test_a_code_of_ones_own_tells_refusals_apart(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body={"error": {"code": "house_rule", "message": "no"}}))
    outcome = await litellm_rig(direct(upstream.url, codes={"house_*": "content_policy"})).call()
    assert getattr(outcome, "kind", None) == "content_policy"


async def test_a_request_that_belongs_to_no_call_does_not_leave(upstream: Upstream) -> None:
    library.load()
    clients: Any = sys.modules["litellm.llms.custom_httpx.http_handler"]
    handler = clients.AsyncHTTPHandler()
    with pytest.raises(Exception, match="belongs to no call"):
        await handler.post(f"{upstream.url}/v1/images/generations", json={"prompt": "telemetry"})
    await handler.close()
    assert upstream.connections == 0


def test_a_litellm_whose_requests_cannot_be_counted_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library.load()
    clients = sys.modules["litellm.llms.custom_httpx.http_handler"]
    monkeypatch.delattr(clients.AsyncHTTPHandler, "create_async_transport")
    with pytest.raises(ProviderSetupError, match="could not be counted"):
        library.load()


def test_each_thing_that_makes_a_proxy_send_again_is_named() -> None:
    values = {"num_retries": 2, "fallbacks": [{"a": ["b"]}], "retry_policy": {"TimeoutErrorRetries": 1}}
    entry = {"model_name": "mine", "litellm_params": {"max_retries": 1}}
    other = {"model_name": "other", "litellm_params": {"num_retries": 5}}
    said = advise({"current_values": values}, {"data": [entry, other]}, frozenset({"mine"}))
    assert [
        word for word in ("2 more times", "fallbacks", "retry_policy", "max_retries") if word in " ".join(said)
    ] == [
        "2 more times",
        "fallbacks",
        "retry_policy",
        "max_retries",
    ]
    assert "other" not in " ".join(said).replace("another", "")


def test_the_settings_are_refused_before_anything_else_is_made() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"model": 5}, LitellmSettings)
