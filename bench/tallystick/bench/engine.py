"""An engine in this process, for benches that measure the product whole: real but for its API."""

import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tallystick.contract.history import History
from tallystick.engine.assembly import running
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.daemon import SWITCH_INTERVAL
from tallystick.engine.host import Host
from tallystick.engine.messages import Limits, ResumeRequest, RunReport, RunRequest
from tallystick.kernel import SystemClock
from tallystick.providers.protocol import Provider
from tallystick.sandbox.protocol import Driver
from tallystick.store.protocol import Store


class Engine:
    """What a bench does with an engine: run a script, resume a run, wait for its end, look at it."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def submit(self, source: str, args: Any = None, *, grants: tuple[str, ...], **options: Any) -> str:
        """Start a run and return its id; ``limits`` are added to the grants, other options are ``RunRequest``'s."""
        limits = Limits(grants=grants, **options.pop("limits", {}))
        return (await self.host.service.submit(RunRequest(source=source, args=args, limits=limits, **options))).run

    async def run(self, source: str, args: Any = None, *, grants: tuple[str, ...], **options: Any) -> RunReport:
        """Run a script to the end of its first launch."""
        return await self.end(await self.submit(source, args, grants=grants, **options))

    async def resume(self, run: str, source: str | None = None, **options: Any) -> RunReport:
        """Resume a run and wait for the end of its launch; options are ``ResumeRequest``'s."""
        await self.host.service.resume(run, ResumeRequest(source=source, **options))
        return await self.end(run)

    async def end(self, run: str) -> RunReport:
        """Wait for the end of a run's launch, and report it."""
        async for _ in self.host.service.watch(run):
            pass
        return await self.host.service.report(run)

    async def history(self, run: str) -> History:
        """Return what the journal holds of a run."""
        return await self.host.service.library.history(run)


def served_by(provider: str, capabilities: Mapping[str, Mapping[str, Any]], **daemon: Any) -> Config:
    """Return a configuration in which one provider serves capabilities, each with the rest of its policy."""
    policies = {name: CapabilityPolicy(provider=provider, **policy) for name, policy in capabilities.items()}
    return Config(daemon=DaemonSettings(**daemon), capabilities=policies)


@asynccontextmanager
async def engine(
    store: Store, config: Config, driver: Driver, *, home: Path, providers: Mapping[str, Provider] | None = None
) -> AsyncIterator[Engine]:
    """Run an engine on a store and a driver, which stay the caller's to close."""
    async with running(store, config, driver, home=home, clock=SystemClock(), providers=providers) as host:
        yield Engine(host)


@contextmanager
def switching_as_the_daemon() -> Iterator[None]:
    """Hand the interpreter over between threads as often as the daemon does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
