"""What does a sandbox cost: to start, to call out of, to pass a large payload through?

Every driver that this machine has: ``locked``, and ``docker`` where an engine answers. Medians, in one process, one
guest at a time.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from tallystick.bench.frame import Bench, Findings, Options, Table, note
from tallystick.sandbox.docker.discovery import available
from tallystick.sandbox.frames import MAX_PAYLOAD, WINDOW, Call, Done, Reply, Start
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import Driver, Limits, Sandbox

STARTS = 15
CALLS = 2_000
FLIGHT = 32
LARGE_CALLS = 30

WARM_BUDGET_MS = 15.0
CALL_BUDGET_MS = 1.0

_NONCE = "bench"
_ONE_BY_ONE = """
async def orchestrate(ctx, args):
    for number in range(args["calls"]):
        await ctx.run("image.generate", args["payload"], _site="orchestrate/for1/#1")
"""
_SIDE_BY_SIDE = """
async def orchestrate(ctx, args):
    async def one(number):
        await ctx.run("image.generate", args["payload"], _site="orchestrate.one/#1")
    await ctx.parallel([one(number) for number in range(args["calls"])])
"""
_SMALL = {"prompt": "a mug on a table", "size": "1024x1024", "seed": 7}


class Figures(NamedTuple):
    """One driver's figures: milliseconds, and calls a second."""

    driver: str
    cold: float
    warm: float
    call: float
    call_p95: float
    in_flight: float
    large: float

    @property
    def within_budget(self) -> bool:
        """Whether a warm start and a call cost no more than they may."""
        return self.warm <= WARM_BUDGET_MS and self.call <= CALL_BUDGET_MS


class _Played(NamedTuple):
    first: float
    gaps: list[float]
    total: float


async def measure(driver: Driver) -> Figures:
    """Measure one driver."""
    await (await driver.open(Limits(), _NONCE)).kill()  # the first start may have an image to build
    cold, warm = [], []
    for _ in range(STARTS):
        began = time.perf_counter()
        async with _guest(driver) as sandbox:
            cold.append(time.perf_counter() - began)
            warm.append((await _play(sandbox, _ONE_BY_ONE, 1, _SMALL)).first)
    async with _guest(driver) as sandbox:
        gaps = (await _play(sandbox, _ONE_BY_ONE, CALLS, _SMALL)).gaps
    async with _guest(driver) as sandbox:
        side_by_side = await _play(sandbox, _SIDE_BY_SIDE, CALLS, _SMALL, window=FLIGHT)
    async with _guest(driver) as sandbox:
        large = (await _play(sandbox, _ONE_BY_ONE, LARGE_CALLS, "x" * (MAX_PAYLOAD - 16))).gaps
    return Figures(
        driver=driver.name,
        cold=_median_ms(cold),
        warm=_median_ms(warm),
        call=_median_ms(gaps),
        call_p95=statistics.quantiles(gaps, n=20)[-1] * 1000,
        in_flight=CALLS / side_by_side.total,
        large=_median_ms(large),
    )


@asynccontextmanager
async def drivers() -> AsyncIterator[list[Driver]]:
    """Have every driver that this machine offers."""
    found: list[Driver] = [LockedDriver()]
    with tempfile.TemporaryDirectory() as folder:
        if await available():
            from tallystick.sandbox.docker.driver import DockerDriver
            from tallystick.sandbox.docker.pin import PinFile

            pin_file = PinFile(Path(folder, "image.json"))
            found.append(DockerDriver(store="bench", image=pin_file, progress=note))
        try:
            yield found
        finally:
            for driver in found:
                await driver.close()


def _findings(_: Options) -> Findings:
    figures = anyio.run(_measure_all)
    rows: tuple[tuple[str, str, Callable[[Figures], str]], ...] = (
        ("cold start", "ms", lambda each: f"{each.cold:.1f}"),
        (f"warm start to first frame (budget {WARM_BUDGET_MS:g})", "ms", lambda each: f"{each.warm:.2f}"),
        (f"one call and back (budget {CALL_BUDGET_MS:g})", "ms", lambda each: f"{each.call:.3f}"),
        ("one call and back, 95th percentile", "ms", lambda each: f"{each.call_p95:.3f}"),
        (f"{FLIGHT} calls in flight", "calls/s", lambda each: f"{each.in_flight:,.0f}"),
        ("1 MiB there and back", "ms", lambda each: f"{each.large:.1f}"),
    )
    table = Table(
        ("", "", *(each.driver for each in figures)),
        tuple((name, unit, *(shown(each) for each in figures)) for name, unit, shown in rows),
    )
    over = tuple(f"{each.driver} is over a budget" for each in figures if not each.within_budget)
    return Findings((table,), [each._asdict() for each in figures], over)


async def _measure_all() -> list[Figures]:
    async with drivers() as found:
        return [await measure(driver) for driver in found]


@asynccontextmanager
async def _guest(driver: Driver) -> AsyncIterator[Sandbox]:
    sandbox = await driver.open(Limits(), _NONCE)
    try:
        yield sandbox
    finally:
        await sandbox.kill()


async def _play(sandbox: Sandbox, source: str, calls: int, payload: Any, window: int = WINDOW) -> _Played:
    """Run a script, echo its calls, and time it: to the first frame, from each answer to the next frame, in all."""
    began = time.perf_counter()
    args = {"calls": calls, "payload": payload}
    await sandbox.send([Start(nonce=_NONCE, source=source, args=args, window=window)])
    first, answered, gaps = 0.0, 0.0, []
    while True:
        frames = await sandbox.receive()
        now = time.perf_counter()
        if answered:
            gaps.append(now - answered)
        first = first or now - began
        if isinstance(frames[-1], Done):
            return _Played(first, gaps, now - began)
        answered = time.perf_counter()
        await sandbox.send(
            [Reply(nonce=_NONCE, id=each.id, value=each.payload) for each in frames if isinstance(each, Call)]
        )


def _median_ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


main = Bench("sandbox", __doc__, _findings).main

if __name__ == "__main__":
    sys.exit(main())
