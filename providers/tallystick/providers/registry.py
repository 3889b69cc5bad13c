"""Providers by name: entry points of the group ``tallystick.providers``, loaded when a configuration names them.

A package that is merely installed runs no code here: only named providers are imported.
"""

from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any, Protocol

import msgspec

from tallystick.contract.errors import UsageError
from tallystick.providers import shapes
from tallystick.providers.protocol import API_VERSION, Artifacts, Provider

GROUP = "tallystick.providers"
PLUGIN = "plugin"
"""The setting that names the entry point of a provider which is called otherwise."""


class ProviderSetupError(UsageError):
    """A configured provider cannot be used: unknown, not importable, of another version, or with bad settings."""

    code = "TS-U020"


class Factory(Protocol):
    """What the entry point of a provider names."""

    def __call__(self, settings: Mapping[str, Any], artifacts: Artifacts) -> Provider:
        """Make a provider from the settings of its configuration.

        Raises:
            ValueError: the settings are wrong; a ``msgspec.ValidationError`` is as good.
        """


class Loaded(msgspec.Struct, frozen=True):
    """A provider with the distribution it came from, for the log; both texts are empty when it has none."""

    provider: Provider
    distribution: str
    version: str


def known(installed: Iterable[metadata.EntryPoint] | None = None) -> tuple[str, ...]:
    """Return the names of the installed providers, sorted; none of them is imported."""
    return tuple(sorted({entry.name for entry in _entries(installed)}))


def load(
    name: str,
    settings: Mapping[str, Any],
    artifacts: Artifacts,
    *,
    installed: Iterable[metadata.EntryPoint] | None = None,
) -> Loaded:
    """Import the named provider and make it.

    Args:
        name: as the configuration says it: an entry point, unless ``plugin`` among the settings names another. So one
            package can serve under several names, each with settings of its own.
        settings: the provider's own part of the configuration.
        artifacts: how the provider reads the bytes behind artifact references.
        installed: entry points to choose from instead of those of the installed distributions.

    Raises:
        ProviderSetupError: the provider cannot be used; the message says why, the hint what to do.
    """
    entries = tuple(_entries(installed))
    plugin = str(settings.get(PLUGIN, name))
    own = {key: value for key, value in settings.items() if key != PLUGIN}
    entry = next((one for one in entries if one.name == plugin), None)
    if entry is None:
        names = known(entries)
        meant = shapes.nearest(plugin, names)
        raise ProviderSetupError(
            f'there is no provider "{plugin}"; {"installed are " + ", ".join(names) if names else "none is installed"}',
            hint=f'did you mean "{meant}"?' if meant else "install the package that brings it, next to tallystick",
        )
    provider = _make(name, entry, _imported(entry), own, artifacts)
    distribution = entry.dist
    return Loaded(provider, distribution.name if distribution else "", distribution.version if distribution else "")


def _entries(installed: Iterable[metadata.EntryPoint] | None) -> Iterable[metadata.EntryPoint]:
    return metadata.entry_points(group=GROUP) if installed is None else installed


def _imported(entry: metadata.EntryPoint) -> Factory:
    try:
        factory: Factory = entry.load()
    except ModuleNotFoundError as error:
        raise ProviderSetupError(
            f'the provider "{entry.name}" ({entry.value}) cannot be imported: {error}',
            hint=f"install {error.name or 'what it needs'} into the environment of tallystick",
        ) from error
    except Exception as error:
        raise ProviderSetupError(
            f'the provider "{entry.name}" ({entry.value}) cannot be imported: {type(error).__name__}: {error}',
            hint="this is a fault of the package that brings it; reinstall or update that package",
        ) from error
    return factory


def _make(
    name: str, entry: metadata.EntryPoint, factory: Factory, settings: Mapping[str, Any], artifacts: Artifacts
) -> Provider:
    try:
        provider = factory(settings, artifacts)
    except ProviderSetupError:
        raise
    except (ValueError, msgspec.ValidationError) as error:
        raise ProviderSetupError(
            f'the settings of the provider "{name}" are wrong: {error}',
            hint=f'correct the part "{name}" of the configuration',
        ) from error
    except Exception as error:
        raise ProviderSetupError(
            f'the provider "{entry.name}" cannot be made: {type(error).__name__}: {error}',
            hint="this is a fault of the package that brings it; report it there",
        ) from error
    version = getattr(provider, "api_version", None)
    if version != API_VERSION:
        raise ProviderSetupError(
            f'the provider "{entry.name}" speaks version {version} of the provider interface; this is {API_VERSION}',
            hint="update whichever of the two is older",
        )
    return provider
