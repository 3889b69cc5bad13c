"""A whole engine in one process for tests: real store or memory store, real guest or the same guest without a process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scripted_provider import ScriptedProvider
from tallystick.contract.history import History
from tallystick.engine.assembly import running
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.host import Host
from tallystick.engine.messages import (
    AttemptReport,
    GateReport,
    GateRequest,
    Limits,
    ReconcileRequest,
    ResumeRequest,
    RunReport,
    RunRequest,
)
from tallystick.kernel import Clock, SystemClock
from tallystick.providers.catalogue import CATALOGUE
from tallystick.sandbox.memory import MemoryDriver
from tallystick.sandbox.protocol import Driver
from tallystick.store.memory import MemoryStore
from tallystick.store.protocol import Store

ALL = tuple(CATALOGUE)


class House:
    """What a test does with an engine: submit, resume, wait, count."""

    def __init__(self, host: Host, provider: ScriptedProvider) -> None:
        self.host = host
        self.provider = provider

    async def submit(self, source: str, args: Any = None, *, grants: tuple[str, ...] = ALL, **options: Any) -> str:
        """Start a run and return its id."""
        limits = Limits(grants=grants, **options.pop("limits", {}))
        report = await self.host.service.submit(RunRequest(source=source, args=args, limits=limits, **options))
        return report.run

    async def run(self, source: str, args: Any = None, **options: Any) -> RunReport:
        """Start a run and wait for the end of its first launch."""
        return await self.end(await self.submit(source, args, **options))

    async def resume(self, run: str, source: str | None = None, **options: Any) -> RunReport:
        """Resume a run and wait for the end of the launch."""
        limits = Limits(**options.pop("limits", {}))
        await self.host.service.resume(run, ResumeRequest(source=source, limits=limits, **options))
        return await self.end(run)

    async def end(self, run: str) -> RunReport:
        """Wait until a run is not live, and report it."""
        async for _ in self.host.service.watch(run):
            pass
        return await self.host.service.report(run)

    async def gate(self, run: str, source: str) -> GateReport:
        """Ask the gate."""
        return await self.host.service.gate(run, GateRequest(source))

    async def history(self, run: str) -> History:
        """Return what the journal holds of a run."""
        return await self.host.service.library.history(run)

    async def attempts(self, run: str) -> list[AttemptReport]:
        """List a run's attempts."""
        return await self.host.operator.attempts(run)

    async def reconcile(self, run: str, attempt: int, **decision: Any) -> AttemptReport:
        """Settle an attempt."""
        return await self.host.operator.reconcile(run, attempt, ReconcileRequest(who="tester", **decision))


@asynccontextmanager
async def house(
    provider: ScriptedProvider | None = None,
    *,
    store: Store | None = None,
    driver: Driver | None = None,
    home: Path = Path("/nowhere"),
    daemon: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[House]:
    """Run an engine whose every capability is served by ``provider``.

    ``store`` and ``driver`` default to the ones in memory; ``daemon`` and ``policy`` override settings.
    """
    provider = provider or ScriptedProvider()
    policies = {name: CapabilityPolicy(provider=provider.name, **(policy or {})) for name in CATALOGUE}
    config = Config(daemon=DaemonSettings(**{"warm": 0, **(daemon or {})}), capabilities=policies)
    async with running(
        store or MemoryStore(),
        config,
        driver or MemoryDriver(),
        home=home,
        clock=clock or SystemClock(),
        providers={provider.name: provider},
    ) as host:
        yield House(host, provider)
