"""The providers at work: each loaded once, when a call first needs it, off the loop (some take seconds to import)."""

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread

from tallystick.providers import registry
from tallystick.providers.protocol import Artifacts, Provider


class ProviderBench:
    """Loads providers by name and closes them; those in ``ready`` need no loading, nor the registry to know them."""

    def __init__(
        self, settings: Mapping[str, Mapping[str, Any]], artifacts: Artifacts, ready: Mapping[str, Provider]
    ) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._loaded = dict(ready)
        self._loading = anyio.Lock()

    async def get(self, name: str) -> Provider:
        """Return the provider of this name.

        Raises:
            ProviderSetupError: it is unknown, cannot be imported, or refuses its settings.
        """
        known = self._loaded.get(name)
        if known is not None:
            return known
        async with self._loading:
            if name not in self._loaded:
                settings = self._settings.get(name, {})
                loaded = await anyio.to_thread.run_sync(registry.load, name, settings, self._artifacts)
                self._loaded[name] = loaded.provider
        return self._loaded[name]

    def loaded(self, name: str) -> Provider | None:
        """Return the provider of this name where it was loaded."""
        return self._loaded.get(name)

    async def close(self) -> None:
        """Close every provider that was loaded."""
        for provider in self._loaded.values():
            await provider.close()
        self._loaded.clear()
