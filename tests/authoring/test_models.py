"""Which model a choice means, on top of what is configured."""

from typing import Any

import pytest

from tallystick.contract.errors import UsageError
from tallystick.engine.authoring.choices import ModelChoice
from tallystick.engine.authoring.models import chosen
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.config import CapabilityPolicy, Config

OWN = {"plugin": "http", "profile": "openai", "base_url": "http://own/v1", "model": "own-1"}


def config(provider: str | None = None, model: str | None = None, **more: Any) -> Config:
    return Config(providers={"own": OWN}, authoring=AuthoringSettings(provider=provider, model=model), **more)


def test_the_configured_provider_is_asked_as_it_is() -> None:
    found = chosen(ModelChoice(), config("own"))
    assert (found.provider, found.model, found.settings) == ("own", "own-1", None)


def test_another_model_is_asked_of_the_configured_provider() -> None:
    found = chosen(ModelChoice("other-2"), config("own", "own-9"))
    assert found.settings == {**OWN, "model": "other-2"}
    assert chosen(ModelChoice(), config("own", "own-9")).model == "own-9"


def test_a_model_that_is_named_for_the_capability_gives_way_too() -> None:
    settings = {**OWN, "models": {"text.generate": "a", "image.generate": "b"}}
    found = chosen(ModelChoice("c"), Config(providers={"own": settings}, authoring=AuthoringSettings(provider="own")))
    assert found.settings is not None
    assert found.settings["models"] == {"text.generate": "c", "image.generate": "b"}


def test_the_model_of_one_provider_is_not_asked_of_another() -> None:
    found = chosen(ModelChoice(provider="local"), config("own", "own-9"))
    assert (found.provider, found.model, found.settings) == ("local", "", None)


def test_whoever_serves_text_to_scripts_writes_them_too() -> None:
    policy = {"text.generate": CapabilityPolicy(provider="own")}
    assert chosen(ModelChoice(), config(capabilities=policy)).provider == "own"


def test_a_bare_model_is_looked_for_by_its_name() -> None:
    found = chosen(ModelChoice("openai/gpt-9"), Config())
    assert (found.provider, found.settings) == ("litellm", {"model": "openai/gpt-9"})


def test_a_server_at_an_address_gets_no_key() -> None:
    found = chosen(ModelChoice("m", "http://box:8080/v1"), config("own"))
    assert (found.provider, found.model) == ("box", "m")
    assert found.settings is not None
    assert found.settings["key"] is None
    assert found.settings["timeouts"] == {"answer": 300.0}


@pytest.mark.parametrize(
    "choice",
    [
        ModelChoice(),
        ModelChoice("gpt-9"),
        ModelChoice("m", "http://box/v1", "own"),
        ModelChoice(None, "http://box/v1"),
        ModelChoice("m", "no address"),
    ],
)
def test_a_choice_that_means_nobody_is_refused(choice: ModelChoice) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(choice, Config())
    assert caught.value.code == "TS-U021"
    assert "nothing was asked and nothing spent" in caught.value.message
