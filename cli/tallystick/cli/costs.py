"""What a run has cost, as people read it: a cost that nobody knows is said, and never shown as nothing."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tallystick.cli.fields import Fields
from tallystick.cli.reports import table_of
from tallystick.cli.terminal import amount, money, plain
from tallystick.engine.money_messages import CostLine, CostReport, LaunchCost


def report(of: CostReport) -> RenderableType:
    """Return the total, what replay has saved, and the tables."""
    saved = sum(launch.saved_usd for launch in of.by_launch)
    unpriced = sum(launch.saved_unpriced for launch in of.by_launch)
    rows = [
        ("spent", amount(of.total.usd, of.total.unpriced)),
        ("reserved", money(of.total.reserved_usd) if of.total.reserved_usd else ""),
        ("tokens", f"{of.total.tokens:,}" if of.total.tokens else ""),
        ("replay saved", amount(saved, unpriced)),
        ("without replay", f"{amount(of.rerun_usd, of.rerun_unpriced)}, had each launch paid for all of its calls"),
    ]
    parts: list[RenderableType] = [Text.assemble("cost of run ", (of.run, "bold")), Fields(rows)]
    for heading, lines in (("capability", of.by_capability), ("site", of.by_site), ("outcome", of.by_outcome)):
        if lines:
            parts += [Text(), _lines(heading, lines)]
    if of.by_launch:
        parts += [Text(), _launches(of.by_launch)]
    return Group(*parts)


def _lines(heading: str, lines: Sequence[CostLine]) -> Table:
    table = table_of(heading, "calls", "spent", "reserved", "tokens")
    for line in lines:
        tokens = f"{line.tokens:,}" if line.tokens else ""
        reserved = money(line.reserved_usd) if line.reserved_usd else ""
        table.add_row(plain(line.name), str(line.calls), amount(line.usd, line.unpriced), reserved, tokens)
    return table


def _launches(lines: Sequence[LaunchCost]) -> Table:
    table = table_of("launch", "revision", "calls", "spent", "replayed", "replay saved")
    for line in lines:
        spent = amount(line.paid.usd, line.paid.unpriced)
        saved = amount(line.saved_usd, line.saved_unpriced)
        table.add_row(str(line.launch), str(line.revision), str(line.paid.calls), spent, str(line.replayed), saved)
    return table
