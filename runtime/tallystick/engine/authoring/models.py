"""The model that is asked for scripts: a provider of ``text.generate`` like any other, with another model's name.

So that models for scripts come through the same providers, credentials and prices as those that scripts call, there is
no second client. A provider is loaded once for each model that is asked for.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tallystick.contract.errors import UsageError
from tallystick.engine.authoring.choices import ModelChoice
from tallystick.engine.config import Config
from tallystick.engine.provider_bench import ProviderBench
from tallystick.providers.protocol import Provider

CAPABILITY = "text.generate"
NO_MODEL = "TS-U021"
_BY_NAME = "litellm"
"""Who is asked for a model of which nothing but the name is known."""


class Model(msgspec.Struct, frozen=True):
    """Whom to ask: the provider, the name that it has in the journal, the model's name ("" where it has its own)."""

    provider_name: str
    name: str
    provider: Provider

    @property
    def asked(self) -> str:
        """What it is called in messages."""
        return self.name or self.provider_name


class _Source(msgspec.Struct, frozen=True):
    """A provider to load: under which name, and with which settings; None for one as it is configured."""

    provider: str
    model: str
    settings: Mapping[str, Any] | None = None


class Models:
    """Finds the model of a choice."""

    def __init__(self, config: Config, bench: ProviderBench) -> None:
        self._config = config
        self._bench = bench

    async def find(self, choice: ModelChoice) -> Model:
        """Return the model of a choice, on top of what the configuration says.

        Raises:
            UsageError: no model is named anywhere, or the choice contradicts itself.
            ProviderSetupError: its provider cannot be used.
        """
        source = chosen(choice, self._config)
        return Model(source.provider, source.model, await self._bench.get(source.provider, source.settings))


def chosen(choice: ModelChoice, config: Config) -> _Source:
    """Say which provider answers for a choice, and with which settings.

    Raises:
        UsageError: no model is named anywhere, or the choice contradicts itself.
    """
    settings = config.authoring
    if choice.base_url is not None:
        return _at(choice.base_url, choice.model or settings.model, choice.provider, settings.timeout)
    provider = choice.provider or settings.provider
    model = choice.model or (settings.model if choice.provider in (None, settings.provider) else None)
    if provider is None:
        policy = config.capabilities.get(CAPABILITY)
        provider = policy.provider if policy is not None and policy.provider != "local" else None
    if provider is None and model is None:
        raise UsageError(
            "no model is named that could write scripts; nothing was asked and nothing spent",
            hint="--model NAME, with --base-url URL for a server of your own, or [authoring] in the configuration",
            code=NO_MODEL,
        )
    if provider is None and model is not None and "/" not in model:
        raise UsageError(
            f"nobody is configured who would know the model {model!r}; nothing was asked and nothing spent",
            hint=f"--model ROUTE/{model}, as litellm names it (openai/gpt-5-mini), or [authoring] in the configuration",
            code=NO_MODEL,
        )
    name = provider or _BY_NAME
    own = config.providers.get(name, {})
    if model is None:
        return _Source(name, str(own.get("model", "")))
    return _Source(name, model, _with_model(own, model))


def _at(url: str, model: str | None, provider: str | None, timeout: float) -> _Source:
    """Return the server at an address, which gets no key: a key belongs to a configured provider."""
    host = urlsplit(url).hostname
    if provider is not None or model is None or host is None:
        wrong = (
            "a provider has an address of its own" if provider else "no model is named" if host else f"{url!r} is none"
        )
        raise UsageError(
            f"the base URL cannot be used: {wrong}; nothing was asked and nothing spent",
            hint="--base-url http://localhost:8080/v1 --model NAME; a server that needs a key is configured under "
            "[providers.NAME] and chosen with --provider NAME",
            code=NO_MODEL,
        )
    settings = {
        "plugin": "http",
        "profile": "openai",
        "name": host,
        "base_url": url,
        "model": model,
        "key": None,
        "timeouts": {"answer": timeout},
    }
    return _Source(host, model, settings)


def _with_model(settings: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return a provider's settings for another model, also where they name one for the capability."""
    changed = {**settings, "model": model}
    models = settings.get("models")
    if isinstance(models, Mapping) and CAPABILITY in models:
        changed["models"] = {**models, CAPABILITY: model}
    return changed
