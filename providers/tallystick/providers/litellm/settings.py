"""What can be set of the ``litellm`` provider (docs/litellm-provider.md), and what the rest is made of."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tallystick.providers.http import profiles
from tallystick.providers.http.credentials import KeySettings
from tallystick.providers.http.errors import RefusalKind
from tallystick.providers.http.prices import Price
from tallystick.providers.http.settings import Bytes, Downloads, HttpSettings, Timeouts

COST = "x-litellm-response-cost"
"""The header in which a LiteLLM proxy states dollars; what litellm's own table says is put there as well."""

PROXY = "litellm_proxy"

KEYS: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    PROXY: "LITELLM_PROXY_API_KEY",
}
"""The variable that holds the key of a route; any other route needs ``key``, or is left to litellm."""

Routed = Annotated[str, msgspec.Meta(pattern="^[a-z0-9_]+/.+$", description='a model like "openai/gpt-image-1"')]

# A proxy keeps the words of its provider, not its code; these count in what is a refusal by its status.
_POLICY = ("*content_policy_violation*", "*safety system*", "*ResponsibleAIPolicyViolation*")

_CHAT = ("text.generate", "storyboard.plan", "review.visual")


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the key is found: see ``credentials.KeySettings``; how it is sent is litellm's to know."""

    env: str | None = None
    keyring: str | None = None
    user: str = "tallystick"


class LitellmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the ``litellm`` provider.

    ``model`` is what litellm calls it, with its route first; ``models`` the same for single capabilities. All of them
    have one route, for they share ``key``, ``base_url`` and ``api_version``. ``options`` are further parameters of a
    capability that litellm is given, ``prices`` replace litellm's table, ``codes`` are those of
    ``Errors``. The rest is that of ``HttpSettings``.
    """

    model: Routed | None = None
    models: dict[str, Routed] = {}
    base_url: str | None = None
    api_version: str | None = None
    key: Key | None = None
    options: dict[str, dict[str, Any]] = {}
    prices: dict[str, Price] = {}
    codes: dict[str, RefusalKind] = {}
    downloads: Downloads = Downloads()
    timeouts: Timeouts = Timeouts()
    max_request: Bytes = 64 << 20
    max_answer: Bytes = 128 << 20
    proxy: bool = True

    def __post_init__(self) -> None:
        """Refuse routes that cannot share a key, and a proxy without an address."""
        routes = sorted({one.partition("/")[0] for one in (self.model, *self.models.values()) if one is not None})
        if not routes:
            raise ValueError('no model is set: name one in model, say "openai/gpt-image-1", or in models')
        if len(routes) > 1:
            raise ValueError(
                f"the models have the routes {', '.join(routes)}: make a provider of each, with its own key"
            )
        if routes == [PROXY] and self.base_url is None:
            raise ValueError("base_url must name the LiteLLM proxy, say http://127.0.0.1:4000")

    @property
    def route(self) -> str:
        """What stands before the first slash of the models."""
        return (self.model or next(iter(self.models.values()))).partition("/")[0]

    @property
    def key_settings(self) -> KeySettings | None:
        """Where the key is, by default in the route's own variable; None leaves it to litellm."""
        if self.key is not None:
            return KeySettings(env=self.key.env, keyring=self.key.keyring, user=self.key.user)
        return KeySettings(env=KEYS[self.route]) if self.route in KEYS else None

    def http(self) -> HttpSettings:
        """Return how the ``http`` provider would ask: litellm speaks the language of OpenAI on this side."""
        operations: dict[str, Any] = {
            name: {
                "body": self.options.get(name, {}),
                "price": self.prices.get(name, Price(header=COST)),
            }
            for name in ("image.generate", *_CHAT)
        }
        operations["text.generate"]["body"] = {
            "max_completion_tokens": "{$none}",
            "max_tokens": "{max_tokens}",
            **operations["text.generate"]["body"],
        }
        unknown = sorted((self.options.keys() | self.prices.keys()) - operations.keys())
        if unknown:
            raise ValueError(f'litellm serves no "{unknown[0]}" here; there are {", ".join(operations)}')
        own = {
            "profile": "openai",
            "name": "litellm",
            "base_url": self.base_url or f"https://{self.route.replace('_', '-')}.invalid",
            "key": None,
            "model": self.model,
            "models": self.models,
            "operations": operations,
            "errors": {"codes": {**dict.fromkeys(_POLICY, "content_policy"), **self.codes}},
            "downloads": self.downloads,
            "timeouts": self.timeouts,
            "max_request": self.max_request,
            "max_answer": self.max_answer,
            "proxy": self.proxy,
        }
        return msgspec.convert(msgspec.to_builtins(profiles.apply(own)), HttpSettings)
