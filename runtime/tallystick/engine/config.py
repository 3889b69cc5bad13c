"""The daemon's configuration: one TOML file, every value with a default, unknown names refused."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from tallystick.contract.capability import MICROS_PER_USD, CapabilitySpec
from tallystick.contract.errors import UsageError
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.rate import PATTERN as RATE
from tallystick.providers import catalogue

RetryOn: TypeAlias = Literal["rate_limited", "unavailable", "unknown"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


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
    """What guests run in, and what one of them may use.

    ``driver``: ``auto`` takes docker where an engine answers, else locked. ``image``: the id of docker's image; ""
    has it built, and pinned in the state directory. ``repin``: what happens to a run that goes on in another image or
    under another driver than before. ``max_age``: seconds after which a warm guest is replaced. ``allow_missing``: the
    locks that an operator goes without, by name, on a kernel that lacks them.
    """

    driver: Literal["auto", "docker", "locked"] = "auto"
    image: Annotated[str, msgspec.Meta(pattern="^(sha256:[0-9a-f]{64})?$")] = ""
    repin: Literal["note", "refuse"] = "note"
    max_age: Seconds = 600.0
    memory_mb: Positive = 512
    cpu_seconds: Positive = 60
    output_mb: Positive = 256
    allow_missing: tuple[str, ...] = ()


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all runs together may spend: ``cap_usd`` dollars in one day, which begins at midnight UTC."""

    cap_usd: Dollars | None = None

    @property
    def cap(self) -> int | None:
        """The cap in micro-dollars."""
        return None if self.cap_usd is None else round(self.cap_usd * MICROS_PER_USD)


class CapabilityPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one capability is executed: by which provider, how many at once, for how long (s), at which price (USD).

    ``rate`` is how many calls may start, as ``5/s`` or ``300/min``. ``retries`` more attempts follow one that ended as
    ``retry_on`` says, the first after ``retry_pause`` seconds, each later one after twice as many. A wait that the
    provider asks for is kept up to ``retry_after_cap`` seconds; 0 pays no heed to it. ``estimate`` (dollars) and
    ``estimate_tokens`` are what a call is expected to take, ``ceiling`` the most that it may cost; the budget sets the
    ceiling aside where there is one, else the estimate. ``approval``: whether a person
    must approve of each call before it is made, or of one that may cost so many dollars or more.
    """

    provider: str
    concurrency: Positive = 64
    rate: Annotated[str, msgspec.Meta(pattern=RATE)] | None = None
    timeout: Seconds = 600.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=20)] = 0
    retry_on: tuple[RetryOn, ...] = ("rate_limited", "unavailable")
    retry_pause: Seconds = 1.0
    retry_after_cap: Annotated[float, msgspec.Meta(ge=0)] = 120.0
    estimate: Dollars | None = None
    ceiling: Dollars | None = None
    estimate_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    approval: bool | Literal["always"] | Dollars = False

    def __post_init__(self) -> None:
        """Refuse a ceiling that an ordinary call would break."""
        if self.ceiling is not None and self.ceiling < (self.estimate or 0.0):
            raise ValueError(f"ceiling ({self.ceiling:g}) is below estimate ({self.estimate:g})")

    def spec(self, name: str) -> CapabilitySpec:
        """Return what the contract needs to know of the capability that this is the policy of."""
        spec = catalogue.spec(name)
        asked = self.approval
        threshold = None if asked is False else 0.0 if asked is True or asked == "always" else asked
        return msgspec.structs.replace(
            spec,
            estimate=spec.estimate if self.estimate is None else round(self.estimate * MICROS_PER_USD),
            ceiling=None if self.ceiling is None else round(self.ceiling * MICROS_PER_USD),
            tokens=spec.tokens if self.estimate_tokens is None else self.estimate_tokens,
            approval=None if threshold is None else round(threshold * MICROS_PER_USD),
        )


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. ``providers`` holds each provider's own settings, by its name."""

    daemon: DaemonSettings = DaemonSettings()
    sandbox: SandboxSettings = SandboxSettings()
    budget: BudgetSettings = BudgetSettings()
    capabilities: dict[str, CapabilityPolicy] = {}
    providers: dict[str, dict[str, Any]] = {}
    authoring: AuthoringSettings = AuthoringSettings()

    def policies(self) -> dict[str, CapabilityPolicy]:
        """Return the policy of every capability that can be executed: the catalogue's defaults, then the file's."""
        bound = {name: CapabilityPolicy(provider="local") for name, known in catalogue.CATALOGUE.items() if known.bound}
        return bound | self.capabilities

    def specs(self) -> dict[str, CapabilitySpec]:
        """Return what the contract needs to know of each executable capability, with configured prices."""
        return {name: policy.spec(name) for name, policy in self.policies().items()}


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
