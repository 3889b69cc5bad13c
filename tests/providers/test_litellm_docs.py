"""The page of the ``litellm`` provider: its examples load and bind what they say, its tables are the program's."""

import json
import re
import tomllib
from typing import Any

import msgspec
import pytest

from docs_support import DOCS, Block, blocks, marked_rows, rows
from http_support import SECRET
from provider_support import MemoryArtifacts
from tallystick.engine.config import Config
from tallystick.providers import registry
from tallystick.providers.litellm.exchange import _BEFORE
from tallystick.providers.litellm.settings import KEYS, Key, LitellmSettings

PAGE = DOCS / "litellm-provider.md"
EXAMPLES = blocks(PAGE, "toml")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setattr("tallystick.providers.http.credentials._from_keyring", lambda *_: SECRET)


def loaded(block: Block) -> tuple[Config, dict[str, Any]]:
    config = msgspec.convert(tomllib.loads(block.text), Config)
    return config, {name: registry.load(name, own, MemoryArtifacts()) for name, own in config.providers.items()}


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_loads_and_serves_what_it_binds(block: Block) -> None:
    config, providers = loaded(block)
    assert config.capabilities
    for capability, policy in config.capabilities.items():
        assert capability in providers[policy.provider].provider.capabilities


def test_there_is_an_example_of_each_route_with_its_variable() -> None:
    text = PAGE.read_text(encoding="utf-8")
    used = {model.split("/")[0] for model in re.findall(r'= "(\w+/[\w.-]+)"', text)}
    assert used >= KEYS.keys()
    assert all(f"`{variable}`" in text for variable in KEYS.values())


@pytest.mark.parametrize(("part", "kind"), [("litellm", LitellmSettings), ("key", Key)])
def test_each_setting_stands_with_its_default(part: str, kind: type[msgspec.Struct]) -> None:
    stated = {}
    for cells in rows(PAGE):
        for name in re.findall(rf"`{part}\.(\w+)`", cells[0]):
            stated[name] = cells[1]
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    assert stated.keys() == fields.keys()
    for name, words in stated.items():
        field = fields[name]
        value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if words != "see there":
            assert words == ("none" if value is None else f"`{json.dumps(value)}`"), name


def test_what_litellm_refuses_itself_stands_in_the_table() -> None:
    table = {
        error: cells[2]
        for cells in marked_rows(PAGE, "outcomes")
        if cells[0].startswith("nothing: ")
        for error in re.findall(r"`(\w+)`", cells[1])
    }
    assert table == {error: f'`Refused(kind="{kind}")`' for error, kind in _BEFORE.items()}
