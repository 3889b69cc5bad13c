"""VI.G.c: what checker, gate and certificate take, in memory, in this process; milliseconds."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tallystick.bench.paper.line import Line
from tallystick.bench.repair.corpus import Task
from tallystick.contract.certificate import issue, verify
from tallystick.contract.checker import check
from tallystick.contract.events import Record, Stored
from tallystick.contract.gate import FrozenSite, Verdict, freeze, gate
from tallystick.contract.identity import Identity
from tallystick.contract.script import Script, read_script

SIZES = (1, 10, 50, 100, 200)
#: The paper names these two sizes alone; between them it gives a range.
GATE_PAPER = {1: "0.041", 200: "4.869"}
REPEATS = 20
MS = 1_000


def of_sites(count: int) -> Script:
    """Return a script with so many calls, each at a site of its own."""
    lines = [f'    await ctx.run("image.generate", {{"prompt": "shot {number}"}})' for number in range(count)]
    return read_script("\n".join(["async def orchestrate(ctx, args):", *lines, "    return 0", ""]))


def overhead(corpus: Sequence[Task]) -> list[Line]:
    """Return the latencies of checker, gate and certificate."""
    sources = [task.script for task in corpus] or [of_sites(size).source for size in SIZES]
    samples = [taken for source in sources for taken in _times(partial(check, source))]
    p95 = statistics.quantiles(samples, n=20)[-1]
    lines = [
        Line(
            "VI.G.c",
            f"checker p50 / p95 over {len(sources)} scripts, ms",
            "1.70 / 4.21",
            f"{statistics.median(samples):.2f} / {p95:.2f}",
            timed=True,
        )
    ]
    for size in SIZES:
        script = of_sites(size)
        frozen = freeze(FrozenSite.of(script, fact) for fact in script.sites)
        alone = statistics.median(_times(partial(gate, frozen, script)))
        whole = statistics.median(_times(partial(_read_and_compared, frozen, script.source)))
        ours = f"{whole:.3f} (compared alone {alone:.3f})"
        lines.append(
            Line("VI.G.c", f"gate at {size} frozen sites, ms", GATE_PAPER.get(size, "between"), ours, timed=True)
        )
    for size in (SIZES[0], SIZES[-1]):
        persist, checked = _certificate(size)
        lines.append(
            Line(
                "VI.G.c",
                f"certificate of {size} sites, persist / verify, ms",
                "below 0.55",
                f"{persist:.3f} / {checked:.3f}",
                timed=True,
            )
        )
    return lines


def _read_and_compared(frozen: Mapping[str, FrozenSite], source: str) -> Verdict:
    return gate(frozen, read_script(source))


def _certificate(size: int) -> tuple[float, float]:
    records = {}
    for number in range(size):
        identity = Identity(f"orchestrate/#{number + 1}", (), 0)
        records[identity] = Record(
            identity=identity,
            capability="image.generate",
            fingerprint="f" * 64,
            digest="d" * 64,
            result=Stored(inline={"width": number}),
            cost=1,
            revision=0,
            launch=1,
            attempt=number + 1,
        )

    def issued() -> object:
        return issue("r", 1, at=0.0, cut=size, records=records, earlier=())

    certificate = issue("r", 1, at=0.0, cut=size, records=records, earlier=())
    persist = statistics.median(_times(issued))
    return persist, statistics.median(_times(lambda: verify([certificate], {size: records})))


def _times(work: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each of some repeats, after one that is not counted."""
    work()
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * MS)
    return taken
