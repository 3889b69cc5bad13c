"""An engine for the acceptance of a driver: real but for its disk, watched at both ends."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from tallystick.engine.assembly import running
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.host import Host
from tallystick.engine.messages import Limits, ResumeRequest, RunReport, RunRequest
from tallystick.kernel import SystemClock
from tallystick.providers import local
from tallystick.providers.protocol import API_VERSION, Outcome, Sample
from tallystick.sandbox.frames import Start, ToGuest, ToHost
from tallystick.sandbox.protocol import Driver, Exit, Sandbox
from tallystick.sandbox.protocol import Limits as GuestLimits
from tallystick.store.memory import MemoryStore


class Counting:
    """The local provider, watched: how often it was asked for what, and for how many things at once."""

    api_version = API_VERSION
    name = "watched"

    def __init__(self, store: MemoryStore) -> None:
        self._local = local.create({}, store)
        self.capabilities = self._local.capabilities
        self.profile = self._local.profile
        self.hits: list[str] = []
        self.peak = 0
        self.answers = anyio.Event()
        self.answers.set()
        self._at_once = 0

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """Answer as the local provider does, a few turns later, so that calls that may overlap do; while it answers."""
        self.hits.append(capability)
        self._at_once += 1
        self.peak = max(self.peak, self._at_once)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        await self.answers.wait()
        self._at_once -= 1
        return await self._local.call(capability, payload, key, sample)

    async def close(self) -> None:
        """Close the local provider."""
        await self._local.close()


class TakenOver:
    """A driver whose guests run ``source`` in place of the script that they are given, while there is one."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self.source = ""
        self._driver = driver

    @property
    def image(self) -> str:
        """See ``Driver``."""
        return self._driver.image

    async def open(self, limits: GuestLimits, nonce: str) -> "TakenOverSandbox":
        """Open a guest."""
        return TakenOverSandbox(await self._driver.open(limits, nonce), self)

    async def close(self) -> None:
        """Leave the driver to whoever gave it."""


class TakenOverSandbox:
    """A guest of ``TakenOver``."""

    def __init__(self, sandbox: Sandbox, by: TakenOver) -> None:
        self._sandbox = sandbox
        self._by = by

    @property
    def pid(self) -> int | None:
        """See ``Sandbox.pid``."""
        return self._sandbox.pid

    @property
    def image(self) -> str:
        """See ``Sandbox.image``."""
        return self._sandbox.image

    def alive(self) -> bool:
        """See ``Sandbox.alive``."""
        return self._sandbox.alive()

    async def send(self, frames: Sequence[ToGuest]) -> None:
        """See ``Sandbox.send``."""
        await self._sandbox.send([self._replaced(each) for each in frames])

    async def receive(self) -> list[ToHost]:
        """See ``Sandbox.receive``."""
        return await self._sandbox.receive()

    async def wait(self) -> Exit:
        """See ``Sandbox.wait``."""
        return await self._sandbox.wait()

    async def kill(self) -> Exit:
        """See ``Sandbox.kill``."""
        return await self._sandbox.kill()

    def _replaced(self, sent: ToGuest) -> ToGuest:
        if isinstance(sent, Start) and self._by.source:
            return msgspec.structs.replace(sent, source=self._by.source)
        return sent


class Bench:
    """An engine, its provider and its driver; the runs that it was asked for."""

    def __init__(self, host: Host, store: MemoryStore, provider: Counting, driver: TakenOver) -> None:
        self.host = host
        self.store = store
        self.provider = provider
        self.driver = driver
        self.runs: list[str] = []

    async def run(self, source: str, args: Any = None, *, grants: tuple[str, ...], **limits: Any) -> RunReport:
        """Run a script to the end of its first launch."""
        request = RunRequest(source=source, args=args, limits=Limits(grants=grants, **limits))
        return await self.end(await self.submit(request))

    async def submit(self, request: RunRequest) -> str:
        """Start a run and return its id."""
        report = await self.host.service.submit(request)
        self.runs.append(report.run)
        return report.run

    async def resume(self, run: str, args: Any, **limits: Any) -> RunReport:
        """Resume a run and wait for the end of its launch."""
        await self.host.service.resume(run, ResumeRequest(args=args, limits=Limits(**limits)))
        return await self.end(run)

    async def end(self, run: str) -> RunReport:
        """Wait for the end of a run's launch."""
        async for _ in self.host.service.watch(run):
            pass
        return await self.host.service.report(run)


@asynccontextmanager
async def bench(driver: Driver) -> AsyncIterator[Bench]:
    """Run an engine round a driver, with its journal in memory and every capability served by the local provider."""
    store = MemoryStore()
    provider = Counting(store)
    taken_over = TakenOver(driver)
    policies = {name: CapabilityPolicy(provider=provider.name) for name in provider.capabilities}
    config = Config(daemon=DaemonSettings(warm=0), capabilities=policies)
    async with running(
        store, config, taken_over, home=Path("/"), clock=SystemClock(), providers={provider.name: provider}
    ) as host:
        yield Bench(host, store, provider, taken_over)
