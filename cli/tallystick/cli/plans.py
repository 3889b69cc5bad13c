"""What a resume would do, for people (contract.md, section 10)."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tallystick.cli import findings, reports
from tallystick.cli.fields import Fields
from tallystick.cli.findings import NamedSource
from tallystick.cli.terminal import count, money, plain
from tallystick.engine.messages import PlannedCall, PlannedStop, PlanReport, exit_code_of


def exit_code(report: PlanReport) -> int:
    """Return how the resume would exit by what the plan knows: by its gravest stop, else by the script's error."""
    found = stops(report)
    if found:
        return min(exit_code_of(stop.code) for stop in found)  # 4, 5, 6: the gravest is the lowest
    return 0 if report.error is None else exit_code_of(report.error.code)


def stops(report: PlanReport) -> tuple[PlannedStop, ...]:
    """Return all that would stop the launch, divergences first."""
    return (*report.diverge, *report.stops)


def plan(report: PlanReport, source: NamedSource) -> RenderableType:
    """Show a plan: its stops as a compiler would, what would be paid, the sums, the verdict."""
    parts: list[RenderableType] = []
    for group in findings.alike(stops(report)):
        parts += [findings.stop(group, source), Text()]
    if report.new:
        parts += [_new(report.new), Text()]
    parts += [Fields(_sums(report)), _verdict(report)]
    return Group(*parts)


def _sums(report: PlanReport) -> list[tuple[str, str]]:
    behind = " so far: each may lead to more" if report.state == "blocked" else ""
    rows = [
        ("replay", f"{count(report.replay, 'call')}, paid already"),
        (
            "new",
            f"{count(len(report.new), 'call')}, about {money(report.estimate_usd)}{behind}" if report.new else "none",
        ),
        ("orphans", reports.identities(report.orphans)),
        ("not yet known", reports.identities(report.unknown)),
    ]
    if report.error is not None:
        rows += [("error", f"[{report.error.code}] {report.error.message}"), ("hint", report.error.hint)]
    return rows


def _verdict(report: PlanReport) -> Text:
    found = stops(report)
    spent = "; nothing was started, nothing was spent"
    if found:
        kinds = ", ".join(
            count(number, noun)
            for number, noun in ((len(report.diverge), "divergence"), (len(report.stops), "other stop"))
            if number
        )
        return Text.assemble(("would stop", "bold red"), f": {kinds}{spent}")
    if report.state == "failed":
        return Text.assemble(("would fail", "bold red"), spent)
    return Text.assemble(("nothing stops it", "bold green"), spent)


def _new(calls: Sequence[PlannedCall]) -> Table:
    table = reports.table_of("new call", "capability", "estimate", "warning")
    for call in calls:
        table.add_row(
            plain(str(call.identity)),
            call.capability,
            money(call.estimate_usd),
            Text(plain(call.warning or ""), "yellow"),
        )
    return table
