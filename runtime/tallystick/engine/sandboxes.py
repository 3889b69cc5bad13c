"""Which sandbox driver a daemon uses, and why; where its image is pinned."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from tallystick.contract.errors import RunFailedError, UsageError
from tallystick.engine.config import SandboxSettings
from tallystick.engine.steps import NO_SANDBOX
from tallystick.sandbox.docker.discovery import Availability, available
from tallystick.sandbox.docker.pin import Pin, PinFile
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import Driver, SandboxError

PIN_NAME = "image.json"


Tell = Callable[[str], None]


class Chosen(msgspec.Struct, frozen=True):
    """A driver, and a sentence that says why it was chosen."""

    driver: Driver
    reason: str


async def choose(settings: SandboxSettings, *, store: str, home: Path, news: Tell) -> Chosen:
    """Choose the driver: the one that is named, else docker where an engine answers, else locked.

    Args:
        settings: the configuration's.
        store: the id of the store, which marks this daemon's containers.
        home: the state directory, where the image is pinned.
        news: told what takes long, a line at a time.

    Raises:
        UsageError: the configuration names a lock that cannot be done without.
    """
    locked = _locked(settings)
    named = "" if settings.driver == "auto" else f"sandbox.driver is {settings.driver}"
    if settings.driver == "locked":
        return Chosen(locked, named)
    found = await available()
    if found or named:
        what = f"an engine answers at {found.endpoint}" if found else f"no engine can be used: {found.reason}"
        driver = _docker(settings, found, store=store, home=home, news=news)
        return Chosen(driver, f"{named}; {what}" if named else what)
    return Chosen(locked, f"no engine can be used: {found.reason}")


async def build_image(home: Path, base: str | None, news: Tell) -> Pin:
    """Build docker's image, whether or not there is one, and pin it; every guest that is started from now on has it.

    Args:
        home: the state directory.
        base: an image to build on; None takes the registry's, or makes one of this host's interpreter.
        news: told each step.

    Raises:
        RunFailedError: no engine can be used, or the image could not be built; the pin is as it was.
    """
    from tallystick.sandbox.docker.image import rebuilt  # noqa: PLC0415 - loads the engine's client

    found = await available()
    if found.endpoint is None:
        raise _not_built(found.reason)
    try:
        return await rebuilt(found.endpoint, PinFile(home / PIN_NAME), news, base)
    except SandboxError as error:
        raise _not_built(str(error)) from None


def _not_built(why: str) -> RunFailedError:
    return RunFailedError(
        f"the image was not built: {why}", hint="the pin is as it was; tally doctor looks further", code=NO_SANDBOX
    )


def _locked(settings: SandboxSettings) -> LockedDriver:
    try:
        return LockedDriver(allow_missing=settings.allow_missing)
    except ValueError as error:
        raise UsageError(f"the configuration's sandbox.allow_missing is wrong: {error}", hint="correct it") from None


def _docker(settings: SandboxSettings, found: Availability, *, store: str, home: Path, news: Tell) -> Driver:
    from tallystick.sandbox.docker.driver import DockerDriver  # noqa: PLC0415 - as above

    return DockerDriver(
        store=store, image=settings.image or PinFile(home / PIN_NAME), endpoint=found.endpoint, progress=news
    )
