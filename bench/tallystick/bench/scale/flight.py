"""Runs in flight: how long many take together, what a live one takes of the daemon's memory, and who is served."""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Sequence

import anyio
import msgspec

from tallystick.bench.engine import Engine
from tallystick.bench.instant import TEXT
from tallystick.bench.scale.held import ONE_CALL, WIDE, HeldProvider, crowd
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.memory import MemoryDriver

COUNTS = (1, 10, 100, 1_000)
EQUAL_RUNS, EQUAL_CALLS = 10, 40
SMALL_CALLS, WIDE_CALLS = 4, 256
NARROW = 8
TAKES = 0.005
#: Seconds in which every call of the equal runs has come to the queue.
QUEUED = 1.0
_KIB = 1 << 10


class Flight(msgspec.Struct, frozen=True):
    """So many runs at once: seconds until each had its call in flight, and from there until all had ended."""

    runs: int
    started: float
    ended: float

    @property
    def each_ms(self) -> float:
        """Milliseconds of one run."""
        return (self.started + self.ended) / self.runs * 1_000


class Fairness(msgspec.Struct, frozen=True):
    """Jain's index of equal runs when half of their calls were served; a small run's seconds, alone and beside others.

    ``waited`` is how many calls of the wide run were served before the small one was done.
    """

    jain: float
    least: int
    most: int
    alone: float
    beside: float
    waited: int


async def flight(runs: int) -> Flight:
    """Have so many runs in flight at once, and let them end."""
    provider = HeldProvider()
    async with crowd(provider, MemoryDriver(), runs=runs, concurrency=runs) as running:
        began = time.perf_counter()
        ids = await _submitted(running, runs)
        await provider.reached(runs)
        held = time.perf_counter()
        provider.opens.set()
        await _all_ended(running, ids)
        return Flight(runs, held - began, time.perf_counter() - held)


async def memory_of_a_run(runs: int) -> float:
    """Return KiB that one live run has allocated in this process, its guest being another one."""
    provider = HeldProvider()
    driver = LockedDriver()
    async with crowd(provider, driver, runs=2 * runs + 1, concurrency=2 * runs + 1) as running:
        # The first ones pay for what is loaded and grown once.
        first = await _submitted(running, runs)
        await provider.reached(runs)
        gc.collect()
        tracemalloc.start()
        second = await _submitted(running, runs, beginning=runs)
        await provider.reached(2 * runs)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        provider.opens.set()
        await _all_ended(running, [*first, *second])
    await driver.close()
    return taken / runs / _KIB


async def fairness() -> Fairness:
    """Measure who is served on a narrow capability."""
    provider = HeldProvider(seconds=TAKES)
    provider.half_at = EQUAL_RUNS * EQUAL_CALLS // 2
    async with crowd(provider, MemoryDriver(), runs=EQUAL_RUNS, concurrency=NARROW) as running:
        equal = WIDE.replace("CALLS", str(EQUAL_CALLS))
        ids = [await running.submit(equal, f"run{number}", grants=(TEXT,)) for number in range(EQUAL_RUNS)]
        await anyio.sleep(QUEUED)
        provider.opens.set()
        await _all_ended(running, ids)
        served = [provider.half[f"run{number}"] for number in range(EQUAL_RUNS)]
    alone = [(await _small(beside_a_wide_one=False))[0] for _ in range(3)]
    beside = [await _small(beside_a_wide_one=True) for _ in range(3)]
    return Fairness(
        jain=jain(served),
        least=min(served),
        most=max(served),
        alone=statistics.median(alone),
        beside=statistics.median(seconds for seconds, _ in beside),
        waited=round(statistics.median(waited for _, waited in beside)),
    )


def jain(shares: Sequence[int]) -> float:
    """Return Jain's index of shares: 1 where all are equal, 1/n where one has it all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


async def _small(*, beside_a_wide_one: bool) -> tuple[float, int]:
    provider = HeldProvider(seconds=TAKES)
    provider.opens.set()
    async with crowd(provider, MemoryDriver(), runs=2, concurrency=NARROW) as running:
        wide = WIDE.replace("CALLS", str(WIDE_CALLS))
        ids = [await running.submit(wide, "wide", grants=(TEXT,))] if beside_a_wide_one else []
        if beside_a_wide_one:
            await provider.reached(NARROW)
        began = time.perf_counter()
        await running.run(WIDE.replace("CALLS", str(SMALL_CALLS)), "small", grants=(TEXT,))
        taken, waited = time.perf_counter() - began, provider.served["wide"]
        await _all_ended(running, ids)
    return taken, waited


async def _submitted(running: Engine, runs: int, *, beginning: int = 0) -> list[str]:
    numbers = range(beginning, beginning + runs)
    return [await running.submit(ONE_CALL, number, grants=(TEXT,)) for number in numbers]


async def _all_ended(running: Engine, runs: Sequence[str]) -> None:
    async def end(run: str) -> None:
        assert (await running.end(run)).status == "completed"

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(end, run)
