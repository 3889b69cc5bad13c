"""Settings that cannot be are refused when the provider is made, in words that say where and what instead."""

from importlib import resources
from typing import Any

import pytest

from http_support import SECRET, STUDIO
from provider_support import MemoryArtifacts
from tallystick.providers import registry
from tallystick.providers.http import create, profiles
from tallystick.providers.registry import ProviderSetupError

OPERATION: dict[str, Any] = STUDIO["operations"]["image.generate"]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ARK_API_KEY", "STUDIO_KEY"):
        monkeypatch.setenv(name, SECRET)


def studio(**changes: Any) -> dict[str, Any]:
    return profiles.merged({**STUDIO, "base_url": "https://studio.example/v1"}, changes)


def operation(**changes: Any) -> dict[str, Any]:
    return studio(operations={"image.generate": changes})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "missing required field `base_url`"),
        ({"profile": "seadream"}, 'there is no profile "seadream"; did you mean "seedream"?'),
        ({"profile": "zzz"}, 'there is no profile "zzz"; there are openai, seedream'),
        ({"profile": "openai"}, "no model is set: name one in model, or in models for"),
        ({"profile": "openai", "models": {"image.genrate": "m"}}, 'no capability "image.genrate"; did you mean'),
        (studio(base_uri="x"), "unknown field `base_uri`"),
        (studio(base_url="studio.example"), "base_url must be an address like https://"),
        (studio(base_url="https://me:pw@studio.example"), "base_url must be an address"),
        (studio(base_url="https://studio.example/?key=1"), "base_url must be an address"),
        (studio(operations={"image.make": OPERATION}), 'no capability "image.make"'),
        (studio(idempotency_header=None), "dedupes_keys needs the idempotency_header"),
        (studio(key={"env": None}), "key needs env"),
        (studio(key={"form": "Bearer"}), 'the form of the key must hold "{key}"'),
        (studio(key={"header": "X Key"}), "header"),
        (studio(downloads={"allow": ["inside"]}), "'inside' does not appear to be an IPv4 or IPv6 network"),
        (studio(errors={"statuses": {"9xx": "unavailable"}}), "matching regex"),
        (studio(errors={"codes": {"*": "timeout"}}), "timeout"),
        (studio(errors={"code": ["a..b"]}), '"a..b" is not a path'),
        (studio(timeouts={"answer": 0}), "> 0"),
        (operation(path="jobs"), "path"),
        (operation(usage="a["), '"a\\[" is not a path'),
        (operation(price={"per_unit": {"a..b": 1}}), '"a..b" is not a path'),
        (operation(price={"fixed": -1}), ">= 0"),
        (operation(job={"id": "a..b"}), '"a..b" is not a path'),
        (operation(lookup={"entry": "a..b"}), '"a..b" is not a path'),
        (operation(body={"prompt": "{promt}"}), 'operations."image.generate": .*"promt"; did you mean "prompt"?'),
        (operation(only={"sise": ["1K"]}), 'no field "sise"; did you mean "size"'),
        (operation(body={"seed": "{$sede}"}), 'there is no "\\$sede" here; there are \\$key, \\$model'),
        (operation(body={"image": "{reference}"}), '"reference" is an artifact; write {reference|data_url} or'),
        (operation(body={"x": {"$files": "a", "url": "b"}}), "\\$files stands in a result only"),
        (
            operation(body={"x": "{prompt|shout}"}),
            r'operations\."image\.generate"\.body\.x: there is no filter "shout"',
        ),
        (operation(result={"width": "{$depth}"}), 'there is no "\\$depth" here'),
        (operation(job={"path": "/jobs/{$jobs}"}), 'there is no "\\$jobs" here; there are \\$job'),
        (operation(lookup={"path": "/jobs?key={$job}"}), 'there is no "\\$job" here; there are \\$key'),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        create(settings, MemoryArtifacts())


def test_a_result_must_have_what_the_catalogue_promises() -> None:
    poor = {**OPERATION, "result": {"images": OPERATION["result"]["images"]}}
    settings = {**studio(), "operations": {"image.generate": poor}}
    with pytest.raises(ValueError, match=r'the result lacks height, width; it is {"images": \[artifact\]'):
        create(settings, MemoryArtifacts())


def test_the_registry_explains_what_is_wrong_with_a_part_of_the_configuration() -> None:
    settings = {"plugin": "http", **studio(base_url="nowhere")}
    with pytest.raises(ProviderSetupError) as caught:
        registry.load("studio", settings, MemoryArtifacts())
    assert 'the settings of the provider "studio" are wrong: base_url must be' in caught.value.message
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"


async def test_the_registry_makes_one_for_each_name() -> None:
    for name, settings in {"a": {"profile": "openai", "model": "m-1"}, "b": studio()}.items():
        provider = registry.load(name, {"plugin": "http", **settings}, MemoryArtifacts()).provider
        assert provider.name == ("openai" if name == "a" else "studio")
        await provider.close()


def test_the_shipped_profiles_are_those_of_the_folder() -> None:
    assert profiles.names() == ("openai", "seedream")
    assert resources.files("tallystick.providers.http.profiles").joinpath("openai.toml").is_file()


@pytest.mark.parametrize("name", ["openai", "seedream"])
async def test_a_shipped_profile_needs_a_model_and_a_key_and_nothing_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = create({"profile": name, "model": "m-1"}, MemoryArtifacts())
    assert provider.name == name
    assert "image.generate" in provider.capabilities
    await provider.close()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ARK_API_KEY")
    with pytest.raises(ValueError, match=r"there is no key: the environment variable [A-Z_]+ is not set"):
        create({"profile": name, "model": "m-1"}, MemoryArtifacts())


def test_what_the_configuration_says_wins_table_by_table() -> None:
    settings = profiles.apply(
        {"profile": "openai", "operations": {"image.generate": {"body": {"quality": "low"}, "ignore": []}}}
    )
    operation = settings["operations"]["image.generate"]
    assert operation["body"] == {
        "model": "{$model}",
        "prompt": "{prompt}",
        "size": "{size}",
        "n": "{n}",
        "quality": "low",
    }
    assert operation["ignore"] == []
    assert profiles.apply({"profile": "openai"})["operations"]["image.generate"]["ignore"] == ["seed"]
