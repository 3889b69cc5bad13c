"""``tally bench durable``: the rounds, their table, the budgets."""

import argparse
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

import anyio
import msgspec

from tallystick.bench import durable
from tallystick.bench.durable import flushes
from tallystick.bench.durable.daemon import daemon
from tallystick.bench.durable.flushes import Flushes
from tallystick.bench.durable.limit import JournalledCalls, bare_commits, two_syncs
from tallystick.bench.durable.path import CallPath, call_path
from tallystick.bench.engine import switching_as_the_daemon
from tallystick.bench.frame import Bench, Findings, Options, Plot, Table, disk, note
from tallystick.bench.statistics import Spread, ratio, spread
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.memory import MemoryDriver

WIDTHS = (32, 256)
JOURNAL_BUDGET, FLUSH_BUDGET = 1.5, 0.1
SYNCS, COMMITS = "two fdatasyncs", "two bare commits"
JOURNAL, IN_PROCESS, SEQUENTIAL, WARM_RUN, NEXT_RUN = (
    "journal of one call",
    "one call, guest in this process",
    "one call, locked guest",
    "run of one call over the API, guest ready",
    "run of one call over the API, at once after another",
)
#: Seconds in which a daemon has another guest ready; and runs of a round, for each takes a guest of its own.
REFILLED, RUNS = 0.2, 10
MS = 1_000

#: What is measured in turn, by its name: each gives one figure a round, milliseconds or calls a second.
Subjects: TypeAlias = Mapping[str, Callable[[], Awaitable[float]]]


def fanout_name(width: int) -> str:
    """Return what a fanout is called in the table."""
    return f"fanout of {width}, locked guest"


class Durable(msgspec.Struct, frozen=True):
    """What was measured: milliseconds, calls a second by width, and flushes."""

    ms: dict[str, Spread]
    per_second: dict[str, Spread]
    of_two_commits: dict[str, Spread]
    flushes: dict[str, Flushes]


async def measured(folder: Path, rounds: int, calls: int) -> tuple[dict[str, Spread], dict[str, list[float]]]:
    """Measure every subject once a round, each round beginning with another; the first warms up and does not count."""
    async with AsyncExitStack() as stack:
        subjects = await _subjects(stack, folder, calls)
        figures: dict[str, list[float]] = {name: [] for name in subjects}
        for number in range(rounds + 1):
            note(f"round {number} of {rounds}" if number else "a round to warm up")
            order = list(subjects)
            order = order[number % len(order) :] + order[: number % len(order)]
            for name in order:
                figure = await subjects[name]()
                if number:
                    figures[name].append(figure)
    return {name: spread(found) for name, found in figures.items()}, figures


async def _subjects(stack: AsyncExitStack, folder: Path, calls: int) -> Subjects:
    for name in ("memory", "locked", "bare"):
        (folder / name).mkdir()
    bare = stack.enter_context(bare_commits(folder / "bare"))
    in_process = await stack.enter_async_context(call_path(folder / "memory", MemoryDriver()))
    locked = await stack.enter_async_context(call_path(folder / "locked", LockedDriver()))
    client = await stack.enter_async_context(daemon(folder / "d"))
    journalled = JournalledCalls(in_process.engine.host.service.journal)

    async def ms(seconds: list[float]) -> float:
        return statistics.median(seconds) * MS

    async def syncs() -> float:
        return await ms(two_syncs(folder, calls))

    async def commits() -> float:
        return await ms(bare(calls))

    async def journal() -> float:
        return await ms(await journalled.write(calls))

    def run(pause: float) -> Callable[[], Awaitable[float]]:
        async def figure() -> float:
            taken = []
            for _ in range(min(RUNS, calls)):
                await anyio.sleep(pause)
                taken.append(await client.one_call())
            return await ms(taken)

        return figure

    def sequential(path: CallPath) -> Callable[[], Awaitable[float]]:
        async def figure() -> float:
            return await ms(await path.one_by_one(calls))

        return figure

    def fanout(width: int) -> Callable[[], Awaitable[float]]:
        async def figure() -> float:
            times = max(5, calls // width)
            return width / statistics.median([await locked.side_by_side(width) for _ in range(times)])

        return figure

    return {
        SYNCS: syncs,
        COMMITS: commits,
        JOURNAL: journal,
        IN_PROCESS: sequential(in_process),
        SEQUENTIAL: sequential(locked),
        WARM_RUN: run(REFILLED),
        NEXT_RUN: run(0.0),
        **{fanout_name(width): fanout(width) for width in WIDTHS},
    }


def _measure(options: Options) -> Findings:
    with disk(options) as folder, switching_as_the_daemon():
        spreads, raw = anyio.run(measured, folder, options.rounds, options.calls)
        note("counting flushes")
        ways = {SEQUENTIAL: ("sequential", options.calls)}
        ways |= {fanout_name(width): ("fanout", width) for width in WIDTHS}
        counts = {
            name: flushes.measure(folder / f"flushes-{number}", way, calls)
            for number, (name, (way, calls)) in enumerate(ways.items())
        }
    wide = {fanout_name(width) for width in WIDTHS}
    ratios = {name: ratio(raw[name], raw[COMMITS]) for name in raw if name not in wide}
    found = Durable(
        {name: each for name, each in spreads.items() if name not in wide},
        {name: spreads[name] for name in sorted(wide, key=list(spreads).index)},
        ratios,
        counts,
    )
    return Findings((_times(found), _fanouts(found)), found, _missed(found), _notes(options, found), _plot(found))


def _times(found: Durable) -> Table:
    rows = tuple(
        (name, each.shown(3), found.of_two_commits[name].shown(), _flushes(found.flushes.get(name)))
        for name, each in found.ms.items()
    )
    return Table(("one after the other", "ms", "of two bare commits", "flushes, commits a call"), rows)


def _fanouts(found: Durable) -> Table:
    rows = tuple((name, each.shown(0), _flushes(found.flushes[name])) for name, each in found.per_second.items())
    return Table(("side by side, a run whole", "calls/s", "flushes, commits a call"), rows)


def _flushes(count: Flushes | None) -> str:
    if count is None:
        return ""
    return f"{count.of_call:.3f}, {count.commits:.3f}"


def _missed(found: Durable) -> tuple[str, ...]:
    said = []
    journal = found.of_two_commits[JOURNAL].median
    if journal > JOURNAL_BUDGET:
        said.append(f"the {JOURNAL} takes {journal:.2f} of two bare commits, and may take {JOURNAL_BUDGET}")
    flushed = found.flushes[fanout_name(WIDTHS[-1])].of_call
    if flushed > FLUSH_BUDGET:
        said.append(f"a fanout of {WIDTHS[-1]} flushes {flushed:.3f} times a call, and may {FLUSH_BUDGET} times")
    return tuple(said)


def _notes(options: Options, found: Durable) -> tuple[str, ...]:
    traced = all(each.traced for each in found.flushes.values())
    return (
        "" if traced else "no strace here: a commit is taken for two flushes",
        f"{options.rounds} rounds of {options.calls} calls; medians with the middle half of the rounds",
        f"budgets: {JOURNAL_BUDGET} of two bare commits for the {JOURNAL}",
        f"and {FLUSH_BUDGET} flushes a call in a fanout of {WIDTHS[-1]}",
    )


def _plot(found: Durable) -> Plot:
    points = tuple(enumerate((round(each.median, 2) for each in found.ms.values()), 1))
    named = ", ".join(f"{number} {name}" for number, name in enumerate(found.ms, 1))
    return Plot(title="Milliseconds of one durable call", x=named, y="ms", lines={"median of the rounds": points})


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=7, metavar="R", help="rounds that count (7)")
    parser.add_argument("--calls", type=int, default=200, metavar="K", help="calls of each subject in a round (200)")


main = Bench("durable", durable.__doc__, _measure, _add).main

if __name__ == "__main__":
    sys.exit(main())
