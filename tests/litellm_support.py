"""Shared by the tests of the ``litellm`` provider: providers in front of the upstream or of a proxy, with a planted key."""

from collections.abc import Mapping
from typing import Any

import msgspec

from http_support import LOOPBACK, SECRET, Rig, SwiftClock
from provider_support import MemoryArtifacts
from tallystick.providers.http import credentials
from tallystick.providers.litellm import library
from tallystick.providers.litellm.provider import LitellmProvider
from tallystick.providers.litellm.settings import LitellmSettings
from tallystick.providers.protocol import Artifacts
from upstream_apis import TEXT_IN, TEXT_OUT

# litellm's own prices of a model of text are not those of the upstream; those of gpt-image-1 are.
PRICED = {"text.generate": {"per_million": {"usage.prompt_tokens": TEXT_IN, "usage.completion_tokens": TEXT_OUT}}}


def direct(url: str, model: str = "openai/gpt-image-1", **changes: Any) -> dict[str, Any]:
    """Return settings for an API at an address, without a proxy between."""
    own = {"model": model, "base_url": f"{url}/v1", "key": {"env": "DIRECT_KEY"}}
    return {**own, "prices": PRICED, "downloads": LOOPBACK, "proxy": False, **changes}


def make(
    settings: Mapping[str, Any], artifacts: Artifacts, clock: SwiftClock, *, secret: str = SECRET
) -> LitellmProvider:
    """Make a provider whose time passes as the test says."""
    known = msgspec.convert(dict(settings), LitellmSettings)
    assert known.key_settings is not None
    credential = credentials.load(known.key_settings, {str(known.key_settings.env): secret})
    return LitellmProvider(known, credential, artifacts, library.load(), clock=clock)


class LitellmRigs:
    """Makes providers, and closes them."""

    def __init__(self) -> None:
        self._made: list[Rig] = []

    def __call__(self, settings: Mapping[str, Any], *, secret: str = SECRET) -> Rig:
        artifacts, clock = MemoryArtifacts(), SwiftClock()
        self._made.append(Rig(make(settings, artifacts, clock, secret=secret), artifacts, clock))
        return self._made[-1]

    async def close(self) -> None:
        for one in self._made:
            await one.provider.close()
