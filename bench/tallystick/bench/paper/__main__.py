"""``tally bench paper``: every line in one table, and the reasons under it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from tallystick.bench import paper
from tallystick.bench.frame import Bench, Findings, Options, Plot, Table, note
from tallystick.bench.identities import IDENTITIES, PAPER, study
from tallystick.bench.paper import benefit, crash, episodes, overhead, shifts
from tallystick.bench.paper.benefit import Prices
from tallystick.bench.paper.edits import table_vii
from tallystick.bench.paper.line import Line
from tallystick.bench.paper.mutants import p2
from tallystick.bench.repair.corpus import Task, tasks

#: Why the identities other than ours count otherwise, in short; the docstring of the bench `identities` has it whole.
_IDENTITIES = {
    "payload": "the relocated fanout has three committed calls here, each served at a callsite that never made it",
    "ordinal": "branches arrive in another order in both fanouts here, where the paper's do in one",
    "line": "a record counts as soon as it is written, so the first launch is stopped by its own second branch already",
}


async def lines(corpus: Sequence[Task]) -> list[Line]:
    """Return every line of the comparison."""
    found: list[Line] = []
    for name, part in (
        ("episodes", episodes.e2b),
        ("submissions", episodes.e3),
        ("crashes", crash.e4),
        ("providers", episodes.e5),
        ("engines", episodes.g1),
        ("fanouts", episodes.fig5),
        ("shifts", shifts.table_ii),
        ("widening", shifts.widening),
        ("orphans", shifts.orphans),
        ("payload edits", shifts.payload_edits),
    ):
        note(name)
        found += await part()
    note("edits")
    found += await table_vii(corpus)
    return found


def e7() -> list[Line]:
    """Return Table VI: four identities over the four repairs of E2b."""
    said = []
    for identity in IDENTITIES:
        theirs, ours = (", ".join(map(str, figures)) for figures in (PAPER[identity], study(identity)))
        what = f"{identity}: executed, replayed, duplicates, wrong, stops"
        said.append(Line("E7, Table VI", what, theirs, ours, _IDENTITIES.get(identity, "")))
    return said


def _measure(options: Options) -> Findings:
    corpus = tasks(options.corpus) if options.corpus.is_dir() else []
    found = anyio.run(lines, corpus) + e7() + shifts.payload_cache()
    note("mutants and overhead")
    found += (p2(corpus) if corpus else []) + overhead.overhead(corpus) + benefit.as_the_paper()
    prices = Prices(options.price, options.call_seconds, options.rewrites, options.rewrite_seconds)
    notes = () if corpus else (f"no corpus at {options.corpus}: twenty scripts of Table VII and P2 are left out",)
    figures = {"lines": found, "benefit": [benefit.benefit(width, prices) for width in benefit.WIDTHS]}
    missed = tuple(f"{each.study}, {each.what}: {each.ours}, and nobody says why" for each in found if each.unexplained)
    return Findings((_compared(found), _reasons(found), benefit.table(prices)), figures, missed, notes, _plot(found))


def _compared(found: Sequence[Line]) -> Table:
    rows = tuple(
        (f"{each.study}: {each.what}", each.paper, each.ours, "" if each.agrees or each.timed else "differs")
        for each in found
    )
    counted = [each for each in found if not each.timed]
    same = sum(each.agrees for each in counted)
    return Table(("", "paper", "ours", ""), rows, f"{same} of {len(counted)} counts are the paper's")


def _reasons(found: Sequence[Line]) -> Table:
    reasons: dict[str, list[str]] = {}
    for each in found:
        if not each.agrees and each.reason:
            reasons.setdefault(each.reason, []).append(f"{each.study}: {each.what}")
    rows = tuple((f"- {'; '.join(what)}: {reason}",) for reason, what in reasons.items())
    return Table(("",), rows, "why the others differ")


def _plot(found: Sequence[Line]) -> Plot:
    """Draw Fig. 5."""
    both: dict[str, list[tuple[float, float]]] = {"full rerun": [], "contract": []}
    for each in found:
        if each.study == "Fig. 5":
            calls, rerun = map(float, each.ours.split(" / "))
            width = float(each.what.removeprefix("N = ").partition(":")[0])
            both["contract"].append((width, calls))
            both["full rerun"].append((width, rerun))
    drawn = {name: tuple(points) for name, points in both.items()}
    return Plot(
        title="One failed branch of N (Fig. 5)", x="fanout width N", y="provider calls", lines=drawn, logarithmic=True
    )


def _add(parser: argparse.ArgumentParser) -> None:
    own = Prices()
    add = parser.add_argument
    add("--corpus", type=Path, default=Path("tests/corpus"), metavar="DIR", help="a folder of tasks (tests/corpus)")
    add("--price", type=float, default=own.call_usd, metavar="DOLLARS", help="what one of your calls costs")
    add("--call-seconds", type=float, default=own.call_seconds, metavar="S", help="what it takes")
    add("--rewrites", type=float, default=own.rewrites, metavar="K", help="rewrites that your repairs take")
    add("--rewrite-seconds", type=float, default=own.rewrite_seconds, metavar="S", help="what one of them takes")


main = Bench("paper", paper.__doc__, _measure, _add).main

if __name__ == "__main__":
    sys.exit(main())
