"""E4: a process that dies with calls in flight, and what its successor makes of their attempts.

The child runs a script on a real store and is killed while its provider works: by itself, or by its parent where the
handler sleeps. The parent opens the same store and goes on.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio

from tallystick.bench.paper.desk import CountingProvider, Desk, desk
from tallystick.bench.paper.line import Line
from tallystick.providers.protocol import Outcome, Sample
from tallystick.store.lmdb_store import LmdbStore

SEQUENTIAL = """
async def orchestrate(ctx, args):
    one = await ctx.run("image.generate", {"prompt": "one"})
    two = await ctx.run("image.generate", {"prompt": "fatal two"})
    return [one["width"], two["width"]]
"""
PARALLEL = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"fatal {number}"})

    one = await ctx.run("image.generate", {"prompt": "one"})
    return [one["width"], *[each["width"] for each in await ctx.parallel([shot(number) for number in range(3)])]]
"""
K = 3
READY = "ready"
HELD = "TS-A001"
Decision: TypeAlias = Literal["abandon", "result"] | None


class FatalProvider(CountingProvider):
    """Takes the process with it when so many fatal calls are in flight; or says so and sleeps."""

    def __init__(self, calls: int, *, sleeps: bool) -> None:
        super().__init__()
        self._left = calls
        self._sleeps = sleeps

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """See ``protocol.Provider``."""
        if "fatal" in payload["prompt"]:
            self._left -= 1
            if not self._left and not self._sleeps:
                os.kill(os.getpid(), signal.SIGKILL)
            if not self._left:
                print(READY, flush=True)
            await anyio.sleep_forever()
        return await super().call(capability, payload, key, sample)


async def e4() -> list[Line]:
    """Return E4: five cases, and the instance of its bound for three calls in flight."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Path(folder)
        cases = {
            "killed by itself, and held": await _goes_on(place / "a", "sequential", None),
            "killed while the handler sleeps": await _goes_on(place / "b", "sleeping", "abandon"),
            "abandoned, executed once, then replayed": await _goes_on(place / "c", "sequential", "abandon"),
            "settled with its result, executed never": await _goes_on(place / "d", "sequential", "result"),
            "three at once": await _goes_on(place / "e", "parallel", "abandon"),
        }
    missing = ", ".join(name for name, holds in cases.items() if not holds)
    return [Line("E4", "cases that hold", "5 of 5", f"{sum(cases.values())} of {len(cases)}", missing)]


async def _goes_on(folder: Path, way: str, decision: Decision) -> bool:
    """Let a child die in this way, and say whether its successor does as it has to before and after a decision."""
    await _die(folder, way)
    dead = K if way == "parallel" else 1
    async with desk(LmdbStore(folder), auto_resume=False) as at:
        (row,) = at.engine.host.service.journal.store.rows()
        history = await at.engine.history(row.run)
        held = [each.started.attempt for each in history.unresolved]
        blocked = len(held) == dead and await at.code_of(row.run) == HELD and at.provider.calls == 0
        if decision is None:
            stopped = await at.resume(row.run, proceed=True)
            return blocked and stopped.calls.replayed == 1 and at.provider.calls == 0
        (committed,) = history.records.values()
        decided = {"abandon": True} if decision == "abandon" else {"result": committed.result.inline}
        for attempt in held:
            await at.settle(row.run, attempt, **decided)
        again = dead if decision == "abandon" else 0
        first = await _completes(at, row.run, executed=again, replayed=1 + dead - again)
        second = await _completes(at, row.run, executed=0, replayed=1 + dead)
        return blocked and first and second and at.provider.calls == again


async def _completes(at: Desk, run: str, *, executed: int, replayed: int) -> bool:
    report = await at.resume(run)
    found = (report.status, report.calls.executed, report.calls.replayed)
    return bool(found == ("completed", executed, replayed))


async def _die(folder: Path, way: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(folder), way, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    if (await process.stdout.readline()).decode().strip() == READY:
        process.kill()
    ended = await process.wait()
    assert ended == -signal.SIGKILL, ended


async def _child(folder: Path, way: str) -> None:
    script, calls = (PARALLEL, K) if way == "parallel" else (SEQUENTIAL, 1)
    async with desk(LmdbStore(folder), FatalProvider(calls, sleeps=way == "sleeping")) as at:
        await at.run(script)


if __name__ == "__main__":
    anyio.run(_child, Path(sys.argv[1]), sys.argv[2])
