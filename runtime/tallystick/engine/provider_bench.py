"""The providers at work: each loaded once, when a call first needs it, off the loop (some take seconds to import)."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from tallystick.providers import registry
from tallystick.providers.protocol import Artifacts, Provider

_Key: TypeAlias = tuple[str, bytes | None]


class ProviderBench:
    """Loads providers by name and closes them; those in ``ready`` need no loading, nor the registry to know them."""

    def __init__(
        self, settings: Mapping[str, Mapping[str, Any]], artifacts: Artifacts, ready: Mapping[str, Provider]
    ) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._loaded: dict[_Key, Provider] = {(name, None): provider for name, provider in ready.items()}
        self._loading = anyio.Lock()

    async def get(self, name: str, settings: Mapping[str, Any] | None = None) -> Provider:
        """Return the provider of this name, as it is configured, or with other ``settings``.

        Raises:
            ProviderSetupError: it is unknown, cannot be imported, or refuses its settings.
        """
        key = (name, None if settings is None else msgspec.json.encode(settings))
        known = self._loaded.get(key)
        if known is not None:
            return known
        async with self._loading:
            if key not in self._loaded:
                chosen = self._settings.get(name, {}) if settings is None else settings
                loaded = await anyio.to_thread.run_sync(registry.load, name, chosen, self._artifacts)
                self._loaded[key] = loaded.provider
        return self._loaded[key]

    def loaded(self, name: str) -> Provider | None:
        """Return the provider of this name where it was loaded."""
        return self._loaded.get((name, None))

    async def close(self) -> None:
        """Close every provider that was loaded."""
        for provider in self._loaded.values():
            await provider.close()
        self._loaded.clear()
