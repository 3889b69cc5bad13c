"""A provider that holds its calls, or takes its time over them; and what an engine with it is like."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from tallystick.bench.engine import Engine, engine, served_by
from tallystick.bench.instant import TEXT
from tallystick.providers.protocol import API_VERSION, Outcome, Profile, Sample, Succeeded
from tallystick.sandbox.protocol import Driver
from tallystick.store.memory import MemoryStore

ONE_CALL = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": f"line {args}"})
"""
WIDE = """
async def orchestrate(ctx, args):
    async def line(number):
        return await ctx.run("text.generate", {"prompt": f"{args} {number}"})

    await ctx.parallel([line(number) for number in range(CALLS)])
"""


class HeldProvider:
    """Holds each call until ``opens`` is set, and answers it after so many ``seconds`` more.

    ``served`` counts answers by the first word of their prompts; ``half`` is what it was after ``half_at`` answers.
    """

    api_version = API_VERSION
    name = "held"
    capabilities = frozenset({TEXT})
    profile = Profile()

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.opens = anyio.Event()
        self.served: Counter[str] = Counter()
        self.half: Counter[str] = Counter()
        self.half_at = 0
        self._seconds = seconds
        self._waiting = 0
        self._wanted = 0
        self._reached = anyio.Event()

    async def reached(self, calls: int) -> None:
        """Wait until so many calls are held."""
        self._wanted, self._reached = calls, anyio.Event()
        if self._waiting < calls:
            await self._reached.wait()

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """See ``protocol.Provider``."""
        del capability, key, sample
        self._waiting += 1
        if self._waiting >= self._wanted:
            self._reached.set()
        await self.opens.wait()
        if self._seconds:
            await anyio.sleep(self._seconds)
        self._waiting -= 1
        self.served[str(payload["prompt"]).partition(" ")[0]] += 1
        if self.served.total() == self.half_at:
            self.half = self.served.copy()
        return Succeeded(result={"text": "a line", "data": None}, cost=1)

    async def close(self) -> None:
        """See ``protocol.Provider``."""


@asynccontextmanager
async def crowd(provider: HeldProvider, driver: Driver, *, runs: int, concurrency: int) -> AsyncIterator[Engine]:
    """Run an engine in memory that has so many runs live at once."""
    policy = {TEXT: {"concurrency": concurrency}}
    config = served_by(provider.name, policy, max_live=runs, warm=0, drain=1.0)
    store = MemoryStore()
    async with engine(store, config, driver, home=Path("/nowhere"), providers={provider.name: provider}) as running:
        yield running
