"""A look at a configuration before a daemon starts on it: everything that is wrong with it, not only the first thing.

Providers are made as the daemon would make them, with the environment of whoever asks, so that a missing package or a
missing key is found here. Nobody is asked anything over the network.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

import msgspec

from tallystick.contract.capability import usd
from tallystick.contract.errors import StoreError, UsageError
from tallystick.engine.config import CapabilityPolicy, Config
from tallystick.engine.config import load as load_config
from tallystick.providers import catalogue, registry, shapes
from tallystick.providers.protocol import Prices, Provider
from tallystick.providers.registry import ProviderSetupError

Load: TypeAlias = Callable[[str, Mapping[str, Any]], Provider]


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, or that will surprise: where it stands, what it is, what to do."""

    severity: Literal["error", "warning"]
    where: str
    message: str
    hint: str = ""


class ConfigReport(msgspec.Struct, frozen=True):
    """What was found in a configuration; ``valid`` is the absence of errors. A file that is missing means defaults."""

    path: str
    exists: bool
    valid: bool
    findings: tuple[Finding, ...]


class _NoFiles:
    """A provider that is only looked at reads no artifact."""

    def get_file(self, sha256: str) -> NoReturn:
        """Refuse."""
        raise StoreError(f"the artifact {sha256} was asked for while a configuration was checked")


def load_provider(name: str, settings: Mapping[str, Any]) -> Provider:
    """Make a provider as the daemon would.

    Raises:
        ProviderSetupError: it cannot be used.
    """
    return registry.load(name, settings, _NoFiles()).provider


def examine(path: Path, load: Load = load_provider) -> ConfigReport:
    """Look at a configuration file.

    Args:
        path: the file; a missing one means every default.
        load: makes a provider.
    """
    findings = tuple(_findings(path, load))
    valid = not any(finding.severity == "error" for finding in findings)
    return ConfigReport(str(path), path.exists(), valid, findings)


def _findings(path: Path, load: Load) -> Iterator[Finding]:
    raw: dict[str, Any] = {}
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        yield Finding("error", "", f"this is not TOML: {error}", "correct the line that is named")
        return
    except OSError as error:
        yield Finding("error", "", f"the file cannot be read: {error.strerror}")
        return
    unknown = list(_unknown(raw))
    yield from unknown
    try:
        config = load_config(path) if not unknown else msgspec.convert(_without(raw, unknown), Config)
    except (UsageError, msgspec.ValidationError) as error:
        hint = error.hint if isinstance(error, UsageError) else ""
        yield Finding("error", "", str(error), hint)
        return
    yield from _providers(config, load)


def _unknown(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Name every key that nobody knows, with the one that was probably meant."""
    tables = {field.name: field.type for field in msgspec.structs.fields(Config)}
    yield from _strangers("", raw, tables)
    for name, kind in tables.items():
        table = raw.get(name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(table, dict):
            yield from _strangers(f"{name}.", table, kind.__struct_fields__)
    policies = raw.get("capabilities")
    for name, policy in policies.items() if isinstance(policies, dict) else ():
        where = f'capabilities."{name}"'
        if name not in catalogue.CATALOGUE:
            nearest = catalogue.nearest(name)
            hint = f"did you mean {nearest}?" if nearest else "tally capabilities lists them"
            yield Finding("error", where, "there is no such capability", hint)
        if isinstance(policy, dict):
            yield from _strangers(f"{where}.", policy, CapabilityPolicy.__struct_fields__)


def _strangers(prefix: str, table: Mapping[str, Any], known: Any) -> Iterator[Finding]:
    for key in table:
        if key not in known:
            meant = shapes.nearest(key, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            yield Finding("error", f"{prefix}{key}", "nobody knows this key", hint)


def _without(raw: Mapping[str, Any], unknown: list[Finding]) -> dict[str, Any]:
    """Return the configuration without what is unknown in it, so that the rest can be looked at."""
    gone = {finding.where for finding in unknown}

    def kept(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        return {key: value for key, value in table.items() if f"{prefix}{key}" not in gone}

    known = kept(raw, "")
    for name, table in known.items():
        if name == "capabilities" and isinstance(table, dict):
            policies = {key: one for key, one in table.items() if f'{name}."{key}"' not in gone}
            known[name] = {
                key: kept(one, f'{name}."{key}".') if isinstance(one, dict) else one for key, one in policies.items()
            }
        elif isinstance(table, dict):
            known[name] = kept(table, f"{name}.")
    return known


def _providers(config: Config, load: Load) -> Iterator[Finding]:
    """Make every provider that something asks, and look at what it says of itself."""
    policies = config.policies()
    asked: dict[str, list[str]] = {}
    for name, policy in policies.items():
        asked.setdefault(policy.provider, []).append(name)
    author = config.authoring.provider
    if author is not None:
        asked.setdefault(author, [])
    for provider_name, names in asked.items():
        try:
            provider = load(provider_name, config.providers.get(provider_name, {}))
        except ProviderSetupError as error:
            yield Finding("error", f"providers.{provider_name}", error.message, error.hint)
            continue
        for name in names:
            yield from _served(name, policies[name], provider)
    for unused in sorted(config.providers.keys() - asked.keys()):
        yield Finding("warning", f"providers.{unused}", "no capability is served by it", "name it as a provider")


def _served(name: str, policy: CapabilityPolicy, provider: Provider) -> Iterator[Finding]:
    where = f'capabilities."{name}"'
    if name not in provider.capabilities:
        serves = ", ".join(sorted(provider.capabilities))
        yield Finding("error", f"{where}.provider", f'"{policy.provider}" does not serve it; it serves {serves}')
        return
    if isinstance(provider, Prices) and not provider.prices(name):
        spec = policy.spec(name)
        yield Finding(
            "warning",
            where,
            f'"{policy.provider}" states no price for it: calls come unpriced, and a budget goes by what is set aside '
            f"for them, {usd(spec.reservation.usd)} each",
            f"give the operation a price under [providers.{policy.provider}], or set ceiling here",
        )
    if policy.retries and "unknown" in policy.retry_on and policy.spec(name).side_effecting:
        yield Finding(
            "warning",
            f"{where}.retry_on",
            "calls of unknown outcome are side effects: they are sent again only where the provider knows their keys",
        )
