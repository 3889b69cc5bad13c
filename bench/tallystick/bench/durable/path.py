"""The whole path of a call: a script in a guest, whose calls an engine makes durable, one by one or side by side."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path

from tallystick.bench.engine import Engine, engine, served_by
from tallystick.bench.instant import TEXT, InstantProvider
from tallystick.contract.events import AnyEvent
from tallystick.engine.messages import RunReport
from tallystick.sandbox.protocol import Driver
from tallystick.store.lmdb_store import LmdbStore
from tallystick.store.protocol import RunRow

WIDEST = 256
MOST = 2_000

ONE_BY_ONE = """
async def orchestrate(ctx, args):
    for number in range(CALLS):
        await ctx.run("text.generate", {"prompt": f"line {number}"})
"""
SIDE_BY_SIDE = """
async def orchestrate(ctx, args):
    async def line(number):
        return await ctx.run("text.generate", {"prompt": f"line {number}"})

    await ctx.parallel([line(number) for number in range(CALLS)])
"""


class CountingStore(LmdbStore):
    """Counts its commits. Each is two flushes: of the pages, and of the page that names them."""

    commits = 0

    def append(self, events: Sequence[AnyEvent], rows: Sequence[RunRow] = ()) -> int:
        """See ``LmdbStore.append``."""
        self.commits += 1
        return super().append(events, rows)


class CallPath:
    """An engine on a disk, behind which calls cost nothing."""

    def __init__(self, running: Engine, provider: InstantProvider, store: CountingStore) -> None:
        self.engine = running
        self.store = store
        self._provider = provider

    async def one_by_one(self, calls: int) -> list[float]:
        """Make calls one after the other; return the seconds from each call to the next."""
        await self._run(ONE_BY_ONE, calls)
        return [later - earlier for earlier, later in pairwise(self._provider.asked)]

    async def side_by_side(self, calls: int) -> float:
        """Make calls all at once; return the seconds of the whole run, from its request to its report."""
        began = time.perf_counter()
        await self._run(SIDE_BY_SIDE, calls)
        return time.perf_counter() - began

    async def _run(self, script: str, calls: int) -> RunReport:
        self._provider.asked.clear()
        limits = {"concurrency": WIDEST, "max_calls": MOST}
        source = script.replace("CALLS", str(calls))
        report = await self.engine.run(source, grants=(TEXT,), limits=limits)
        assert (report.status, report.calls.executed) == ("completed", calls), report.error
        return report


@asynccontextmanager
async def call_path(folder: Path, driver: Driver) -> AsyncIterator[CallPath]:
    """Open an engine on a store of its own in ``folder``, with a guest kept ready."""
    provider = InstantProvider()
    config = served_by(provider.name, {TEXT: {"concurrency": WIDEST}}, warm=1)
    with closing(CountingStore(folder)) as store:
        async with engine(store, config, driver, home=folder, providers={provider.name: provider}) as running:
            yield CallPath(running, provider, store)
