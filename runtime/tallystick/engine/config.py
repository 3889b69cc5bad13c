"""The daemon's configuration: one TOML file, every value with a default, unknown names refused."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tallystick.contract.capability import MICROS_PER_USD, CapabilitySpec
from tallystick.contract.errors import UsageError
from tallystick.providers import catalogue

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class DaemonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the daemon behaves.

    ``max_live``: sandboxes at once, further runs wait. ``warm``: guests kept ready. ``drain``: seconds that calls in
    flight get at a stop. ``auto_resume``: an interrupted run with nothing unresolved goes on by itself.
    """

    max_live: Positive = 8
    warm: Annotated[int, msgspec.Meta(ge=0)] = 2
    drain: Seconds = 10.0
    auto_resume: bool = True


class SandboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one guest, and the locks that an operator goes without, by name, on a kernel that lacks them."""

    memory_mb: Positive = 512
    cpu_seconds: Positive = 60
    allow_missing: tuple[str, ...] = ()


class CapabilityPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one capability is executed: by which provider, how many at once, for how long (s), at which price (USD)."""

    provider: str
    concurrency: Positive = 64
    timeout: Seconds = 600.0
    estimate: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. ``providers`` holds each provider's own settings, by its name."""

    daemon: DaemonSettings = DaemonSettings()
    sandbox: SandboxSettings = SandboxSettings()
    capabilities: dict[str, CapabilityPolicy] = {}
    providers: dict[str, dict[str, Any]] = {}

    def policies(self) -> dict[str, CapabilityPolicy]:
        """Return the policy of every capability that can be executed: the catalogue's defaults, then the file's."""
        bound = {name: CapabilityPolicy(provider="local") for name, known in catalogue.CATALOGUE.items() if known.bound}
        return bound | self.capabilities

    def specs(self) -> dict[str, CapabilitySpec]:
        """Return what the contract needs to know of each executable capability, with configured prices."""
        specs = {}
        for name, policy in self.policies().items():
            spec = catalogue.spec(name)
            if policy.estimate is not None:
                spec = msgspec.structs.replace(spec, estimate=round(policy.estimate * MICROS_PER_USD))
            specs[name] = spec
        return specs


def load(path: Path) -> Config:
    """Read the configuration; a missing file means every default.

    Raises:
        UsageError: not TOML, an unknown name, a value of the wrong kind, a capability that is not in the catalogue.
    """
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        raise UsageError(f"the configuration {path} cannot be read: {error.strerror}") from None
    try:
        config = msgspec.convert(tomllib.loads(text.decode()), Config)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"the configuration {path} is wrong: {error}", hint="correct it and try again") from None
    for name in config.capabilities:
        if name not in catalogue.CATALOGUE:
            nearest = catalogue.nearest(name)
            raise UsageError(
                f"the configuration {path} names the capability {name!r}, which is not in the catalogue",
                hint=f"did you mean {nearest!r}?" if nearest else "tally capabilities lists them",
            )
    return config
