"""Trying the sandbox from the command line, without a daemon: progress, and the table of what was found."""

import os
from pathlib import Path

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from tallystick.cli.reports import table_of
from tallystick.cli.terminal import note, plain
from tallystick.contract.errors import DaemonError, RunFailedError
from tallystick.engine import paths, sandboxes
from tallystick.engine.acceptance import run
from tallystick.engine.config import SandboxSettings, load
from tallystick.engine.steps import NO_SANDBOX
from tallystick.sandbox.acceptance import Check
from tallystick.sandbox.acceptance.check import CHECKS
from tallystick.sandbox.protocol import SandboxError


class Found(msgspec.Struct, frozen=True):
    """What an acceptance came to: the driver, why it was that one, whether all holds, and each try."""

    driver: str
    why: str
    holds: bool
    checks: tuple[Check, ...]


def tell(text: str) -> None:
    """Tell what takes long."""
    note(f"  . {plain(text)}")


def state_directory() -> Path:
    """Return the state directory, made where it was missing.

    Raises:
        DaemonError: it cannot be used.
    """
    home = paths.home()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DaemonError(
            f"the state directory {home} is not usable: {error.strerror}",
            hint="make it writable, or point TALLYSTICK_HOME at another folder",
        ) from None
    return home


async def tried(driver: str | None) -> Found:
    """Run the acceptance of a driver; None takes the one that the configuration chooses.

    Raises:
        RunFailedError: the driver cannot start a guest.
    """
    settings = load(paths.config_path()).sandbox
    if driver is not None:
        settings = msgspec.convert({**msgspec.to_builtins(settings), "driver": driver}, SandboxSettings)
    chosen = await sandboxes.choose(settings, store=f"acceptance-{os.getpid()}", home=state_directory(), news=tell)
    note(f"trying the {chosen.driver.name} sandbox ({chosen.reason})")
    try:
        checks = await run(chosen.driver)
    except SandboxError as error:
        raise RunFailedError(
            f"the {chosen.driver.name} sandbox cannot start a guest: {error}", hint="see tally doctor", code=NO_SANDBOX
        ) from None
    finally:
        await chosen.driver.close()
    holds = all(check.ok for check in checks) and {check.check for check in checks} == set(CHECKS)
    return Found(chosen.driver.name, chosen.reason, holds, tuple(checks))


def table(found: Found) -> RenderableType:
    """Return a line for each check, each try that failed below it, and the verdict."""
    rows = table_of("", "check", "tries", "what failed")
    for name in CHECKS:
        tries = [check for check in found.checks if check.check == name]
        failed = [check for check in tries if not check.ok]
        mark = Text("FAIL", "bold red") if failed or not tries else Text("holds", "green")
        rows.add_row(
            mark,
            name,
            str(len(tries)),
            "\n".join(f"{plain(check.name)}: {plain(check.detail[:300])}" for check in failed),
        )
    failures = sum(not check.ok for check in found.checks)
    verdict = (
        Text(f"{len(found.checks)} tries: every wall holds", "green")
        if found.holds
        else Text(f"{failures} of {len(found.checks)} tries got through: do not run scripts of others here", "bold red")
    )
    return Group(rows, verdict)
