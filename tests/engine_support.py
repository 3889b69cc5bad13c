"""A whole engine in one process for tests: real store or memory store, real guest or the same guest without a process."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scripted_provider import ScriptedProvider
from tallystick.contract.history import History
from tallystick.engine.assembly import running
from tallystick.engine.config import BudgetSettings, CapabilityPolicy, Config, DaemonSettings, SandboxSettings
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
from tallystick.kernel import Clock, ManualClock, SystemClock
from tallystick.providers.catalogue import CATALOGUE
from tallystick.sandbox.memory import MemoryDriver
from tallystick.sandbox.protocol import Driver
from tallystick.store.memory import MemoryStore
from tallystick.store.protocol import Store

#: Makes the driver of every house that is not given one; tests/engine/conftest.py has some suites run under others.
default_driver: Callable[[], Driver] = MemoryDriver

ALL = tuple(CATALOGUE)
_ROUNDS = 8


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


async def still(engine: House, clock: ManualClock) -> None:
    """Wait until nothing happens any more before the clock moves on: neither on the loop nor in the journal's thread."""
    for _ in range(_ROUNDS):
        await engine.host.service.journal.append([])
        await clock.advance(0)


async def passes(engine: House, clock: ManualClock, seconds: float) -> None:
    """Let that much time pass, with nothing left to happen before and after."""
    await still(engine, clock)
    await clock.advance(seconds)
    await still(engine, clock)


@asynccontextmanager
async def house(
    provider: ScriptedProvider | None = None,
    *,
    store: Store | None = None,
    driver: Driver | None = None,
    home: Path = Path("/nowhere"),
    daemon: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    policies: Mapping[str, Mapping[str, Any]] | None = None,
    budget: BudgetSettings | None = None,
    sandbox: SandboxSettings | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[House]:
    """Run an engine whose every capability is served by ``provider``.

    ``store`` defaults to the one in memory, ``driver`` to ``default_driver``; ``daemon`` and ``policy`` override settings,
    ``policies`` those of single capabilities.
    """
    provider = provider or ScriptedProvider()
    settings = {name: {**(policy or {}), **(policies or {}).get(name, {})} for name in CATALOGUE}
    capabilities = {name: CapabilityPolicy(provider=provider.name, **own) for name, own in settings.items()}
    config = Config(
        daemon=DaemonSettings(**{"warm": 0, **(daemon or {})}),
        capabilities=capabilities,
        budget=budget or BudgetSettings(),
        sandbox=sandbox or SandboxSettings(),
    )
    async with running(
        store or MemoryStore(),
        config,
        driver or default_driver(),
        home=home,
        clock=clock or SystemClock(),
        providers={provider.name: provider},
    ) as host:
        yield House(host, provider)
