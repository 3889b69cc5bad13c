"""The page of the ``http`` provider: its examples work against the upstream, its tables are the program's."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from docs_support import DOCS, Block, blocks, rows
from http_support import LOOPBACK, SECRET, SwiftClock
from tallystick.engine.config import Config
from tallystick.providers import conformance, registry
from tallystick.providers.http import credentials, prices, profiles, settings
from tallystick.providers.http.errors import Errors
from tallystick.providers.http.filters import _FILTERS
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.protocol import Sample, Succeeded
from upstream_server import Upstream

PAGE = DOCS / "http-provider.md"
EXAMPLES = blocks(PAGE, "toml")
PARTS: dict[str, type[msgspec.Struct]] = {
    "http": settings.HttpSettings,
    "key": credentials.KeySettings,
    "operations.*": settings.OperationSettings,
    "job": settings.Job,
    "lookup": settings.Lookup,
    "price": prices.Price,
    "errors": Errors,
    "downloads": settings.Downloads,
    "timeouts": settings.Timeouts,
}
UNSTATED = {"see below", 'the profile\'s, or `"http"`', "`timeouts.answer`"}
SERVED = {"openai": "/v1", "seedream": "/api/v3", None: "/v1"}


def example(block: Block) -> tuple[Config, dict[str, Any]]:
    """Return the configuration of an example, and its providers' settings as far as the plugin is theirs."""
    config = msgspec.convert(tomllib.loads(block.text), Config)
    assert config.providers
    assert all(one["plugin"] == "http" for one in config.providers.values())
    return config, config.providers


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
async def test_an_example_serves_the_capabilities_that_it_binds(
    block: Block, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ARK_API_KEY", "PROXY_KEY", "STUDIO_KEY"):
        monkeypatch.setenv(name, SECRET)
    config, providers = example(block)
    for name, own in providers.items():
        loaded = registry.load(name, own, conformance.ExampleArtifacts()).provider
        bound = {capability for capability, policy in config.capabilities.items() if policy.provider == name}
        assert bound
        assert bound <= loaded.capabilities
        await loaded.close()
        here = {"base_url": upstream.url + SERVED[own.get("profile")], "downloads": LOOPBACK, "proxy": False}
        known = msgspec.convert(
            profiles.apply({key: value for key, value in profiles.merged(own, here).items() if key != "plugin"}),
            settings.HttpSettings,
        )
        provider = HttpProvider(known, credentials.load(known.key), conformance.ExampleArtifacts(), clock=SwiftClock())
        for capability in sorted(bound):
            outcome = await provider.call(capability, conformance.example(capability), "key", Sample(seed=1))
            assert isinstance(outcome, Succeeded), outcome
        assert upstream.paid_hits == len(bound)
        await provider.close()


def test_there_is_an_example_of_each_profile() -> None:
    used = {own.get("profile") for block in EXAMPLES for own in example(block)[1].values()}
    assert used == {*profiles.names(), None}


@pytest.mark.parametrize("part", PARTS)
def test_each_setting_stands_with_its_default(part: str) -> None:
    stated = {}
    for cells in rows(PAGE):
        for name in re.findall(rf"`{re.escape(part)}\.(\w+)`", cells[0]):
            stated[name] = cells[1]
    stated.pop("profile", None)
    fields = {field.name: field for field in msgspec.structs.fields(PARTS[part])}
    assert stated.keys() == fields.keys()
    for name, words in stated.items():
        if words not in UNSTATED:
            assert words == _default(fields[name]), name


def test_the_filters_are_all_there() -> None:
    named = {name for cells in rows(PAGE) for name in re.findall(r"`([\w:]+)`", cells[0])}
    assert named >= {*_FILTERS, "at:PATH"}


def test_the_files_that_the_page_names_are_shipped() -> None:
    assert (Path(profiles.__file__).parent / "openai.toml").exists()


def _default(field: Any) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return "none" if value is None else f"`{json.dumps(value)}`"
