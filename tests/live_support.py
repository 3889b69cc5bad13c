"""An engine whose pictures come from a configured provider, in front of the proxy and the upstream."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from engine_support import House
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.engine.assembly import running
from tallystick.engine.config import CapabilityPolicy, Config, DaemonSettings
from tallystick.engine.messages import RunReport
from tallystick.kernel import SystemClock
from tallystick.providers.protocol import Provider
from tallystick.sandbox.memory import MemoryDriver
from tallystick.store.memory import MemoryStore
from upstream_server import Upstream


class LiveHouse(House):
    """An engine, its store, and the upstream that is paid."""

    def __init__(self, host: Any, store: MemoryStore, upstream: Upstream) -> None:
        super().__init__(host, cast("Any", None))
        self.store = store
        self.upstream = upstream

    async def pictures(self, run: str) -> list[bytes]:
        """Return the pictures of a run's records, in the order of their sites, paths and occurrences."""
        history = await self.history(run)
        records = [history.records[identity] for identity in sorted(history.records, key=str)]
        named = [record.result.inline["images"] for record in records]
        return [self.store.get_file(one["$artifact"].removeprefix("sha256:")) for images in named for one in images]

    async def assert_sound(self, report: RunReport, *, unknown: int = 0) -> None:
        """Assert that a run's certificate holds, and that its spend is the bill.

        Args:
            report: of the run.
            unknown: how many calls have a cost that nobody knows; what is spent for certain is then less.
        """
        certificate = await self.host.inquiry.certificate(report.run, check=True)
        assert certificate.differences == ()
        spent = round(report.spend.usd * MICROS_PER_USD)
        assert report.spend.unpriced == unknown
        assert spent < self.upstream.bill if unknown else spent == self.upstream.bill

    async def rerun(self, script: str, args: Any = None) -> int:
        """Run a script from nothing, and return how many pictures were asked for."""
        before = self.upstream.count("image")
        assert (await self.run(script, args)).status == "completed"
        return self.upstream.count("image") - before


@asynccontextmanager
async def live(
    upstream: Upstream, settings: Mapping[str, Any], *, ready: Provider | None = None
) -> AsyncIterator[LiveHouse]:
    """Run an engine in which ``settings`` configure who makes pictures; ``ready`` stands in for what they would make."""
    config = Config(
        daemon=DaemonSettings(warm=0),
        capabilities={"image.generate": CapabilityPolicy(provider="live", concurrency=8)},
        providers={"live": {"plugin": "litellm", **settings}},
    )
    store = MemoryStore()
    made = {} if ready is None else {"live": ready}
    async with running(
        store, config, MemoryDriver(), home=Path("/nowhere"), clock=SystemClock(), providers=made
    ) as host:
        yield LiveHouse(host, store, upstream)
