"""``tally bench scale``: its parts, their tables, the budgets."""

import argparse
import sys
from contextlib import closing
from pathlib import Path

import anyio
import msgspec

from tallystick.bench import scale
from tallystick.bench.engine import switching_as_the_daemon
from tallystick.bench.frame import Bench, Findings, Options, Plot, Table, disk, note
from tallystick.bench.scale.flight import COUNTS, Fairness, Flight, fairness, flight, memory_of_a_run
from tallystick.bench.scale.large import SAMPLED, SITES, fill, prefix_and_gate, start, template
from tallystick.bench.statistics import Spread, ratio, spread
from tallystick.store.lmdb_store import LmdbStore

MEMORY_BUDGET_KIB, START_BUDGET, PREFIX_BUDGET = 200.0, 1.0, 1.3
MS = 1_000


class Scale(msgspec.Struct, frozen=True):
    """What was measured; ``empty`` and ``large`` are stores: seconds of a start, milliseconds of prefix and gate."""

    flights: tuple[Flight, ...]
    memory_kib: Spread
    fairness: Fairness
    records: int
    store_mb: float
    start: dict[str, Spread]
    prefix_ms: dict[str, Spread]
    prefix_ratio: Spread


def _measure(options: Options) -> Findings:
    with switching_as_the_daemon():
        flights = []
        for count in (each for each in COUNTS if each <= options.runs):
            note(f"{count} runs in flight")
            flights.append(anyio.run(flight, count))
        note(f"memory of a live run, {options.guests} guests at a time")
        memory = spread([anyio.run(memory_of_a_run, options.guests) for _ in range(3)])
        note("fairness")
        fair = anyio.run(fairness)
        with disk(options) as folder:
            found = _large(folder, options, tuple(flights), memory, fair)
    return Findings(_tables(found), found, _missed(found), _notes(options), _plot(found))


def _large(folder: Path, options: Options, flights: tuple[Flight, ...], memory: Spread, fair: Fairness) -> Scale:
    events = anyio.run(template)
    runs = max(SAMPLED, options.records // SITES)
    empty, large = folder / "empty", folder / "large"
    for place, count in ((empty, 1), (large, runs)):
        for done in fill(place, events, count):
            if count > 1:
                note(f"filling a store: {done * SITES:,} records of {count * SITES:,}")
    starts: dict[str, list[float]] = {"empty": [], "large": []}
    prefixes: dict[str, list[float]] = {"empty": [], "large": []}
    for number in range(options.rounds + 1):
        note(f"round {number} of {options.rounds}" if number else "a round to warm up")
        for name, place in (("empty", empty), ("large", large)):
            taken = anyio.run(start, place)
            if number:
                starts[name].append(taken)
        with closing(LmdbStore(empty)) as one, closing(LmdbStore(large)) as many:
            sampled = range(number, runs, max(1, runs // SAMPLED))
            pairs = [(prefix_and_gate(one, 0), prefix_and_gate(many, each)) for each in sampled]
        if number:
            for name, taken_each in zip(prefixes, zip(*pairs, strict=True), strict=True):
                prefixes[name].append(spread(taken_each).median * MS)
    return Scale(
        flights=flights,
        memory_kib=memory,
        fairness=fair,
        records=runs * SITES,
        store_mb=(large / "journal.mdb").stat().st_size / (1 << 20),
        start={name: spread(each) for name, each in starts.items()},
        prefix_ms={name: spread(each) for name, each in prefixes.items()},
        prefix_ratio=ratio(prefixes["large"], prefixes["empty"]),
    )


def _tables(found: Scale) -> tuple[Table, ...]:
    flights = tuple(
        (f"{each.runs:,}", f"{each.started:.3f}", f"{each.ended:.3f}", f"{each.each_ms:.2f}") for each in found.flights
    )
    fair = found.fairness
    rows = (
        ("memory of a live run, KiB", found.memory_kib.shown(0), f"at most {MEMORY_BUDGET_KIB:g}"),
        ("equal runs, Jain's index at half", f"{fair.jain:.3f}", ""),
        ("  calls of the least and the most served", f"{fair.least}, {fair.most}", ""),
        ("small run alone, ms", f"{fair.alone * MS:.0f}", ""),
        ("  beside a fanout of 256, ms", f"{fair.beside * MS:.0f}", ""),
        ("  of whose calls so many went before it", f"{fair.waited}", ""),
        ("start of a daemon, empty store, s", found.start["empty"].shown(), ""),
        (f"  store of {found.records:,} records", found.start["large"].shown(), f"under {START_BUDGET:g}"),
        (f"prefix and gate of {SITES} sites, empty store, ms", found.prefix_ms["empty"].shown(), ""),
        (f"  store of {found.records:,} records", found.prefix_ms["large"].shown(), ""),
        ("  ratio", found.prefix_ratio.shown(), f"at most {PREFIX_BUDGET:g}"),
    )
    return (
        Table(("runs in flight", "s until all are", "s until all ended", "ms a run"), flights),
        Table(("", "", "budget"), rows),
    )


def _missed(found: Scale) -> tuple[str, ...]:
    large = found.start["large"].median
    said = (
        (f"a live run takes {found.memory_kib.median:.0f} KiB", found.memory_kib.median > MEMORY_BUDGET_KIB),
        (f"a daemon starts in {large:.2f} s", large >= START_BUDGET),
        (f"prefix and gate take {found.prefix_ratio.median:.2f}", found.prefix_ratio.median > PREFIX_BUDGET),
    )
    return tuple(text for text, over in said if over)


def _notes(options: Options) -> tuple[str, ...]:
    return (f"{options.rounds} rounds in turn; medians with the middle half of the rounds",)


def _plot(found: Scale) -> Plot:
    points = tuple((float(each.runs), round(each.each_ms, 2)) for each in found.flights)
    return Plot(
        title="Runs in flight", x="runs", y="ms a run", lines={"guests in this process": points}, logarithmic=True
    )


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--runs", type=int, default=COUNTS[-1], metavar="N", help="runs in flight at most (1000)")
    add("--guests", type=int, default=50, metavar="N", help="locked guests at a time, for memory (50)")
    add("--records", type=int, default=100_000, metavar="N", help="records of the large store (100000)")
    add("--rounds", type=int, default=5, metavar="R", help="rounds that count (5)")


main = Bench("scale", scale.__doc__, _measure, _add).main

if __name__ == "__main__":
    sys.exit(main())
