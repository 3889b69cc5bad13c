"""What a model wrote, for people: candidates with their verdicts, and a rewrite against the script that failed."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tallystick.cli import findings, reports
from tallystick.cli.excerpts import split_lines
from tallystick.cli.findings import NamedSource
from tallystick.cli.terminal import money, plain
from tallystick.engine.authoring.choices import CandidateLine
from tallystick.engine.authoring.messages import CandidateReport, WritingReport
from tallystick.engine.messages import Region

#: Unchanged lines that are shown round a change.
CONTEXT = 3
#: What stands before a line that holds a committed call.
PAID = "$"

_STYLES = {"accepted": "bold green", "rejected": "yellow", "asked": "cyan"}


def candidates(of: Iterable[CandidateLine]) -> Table:
    """Return the table of what models were asked for: how each candidate was judged, why, what it cost."""
    table = reports.table_of("candidate", "for", "model", "verdict", "tokens", "cost", "why")
    for one in of:
        goal = "a new script" if one.revision is None else f"repair of revision {one.revision}"
        cost = "" if one.state == "asked" else "unknown" if one.cost_usd is None else money(one.cost_usd)
        table.add_row(
            str(one.candidate),
            goal,
            plain(one.model or one.provider),
            Text(one.state.replace("_", " "), _STYLES.get(one.state, "red")),
            "" if one.tokens is None else f"{one.tokens:,}",
            cost,
            plain(one.text),
        )
    return table


def verdicts(report: WritingReport) -> RenderableType:
    """Show what was wrong with each candidate of a report, as compilers do."""
    parts: list[RenderableType] = []
    base = NamedSource("the failed script", report.base)
    for one in report.candidates:
        parts += _verdict(one, base)
    return Group(*parts)


def _verdict(one: CandidateReport, base: NamedSource) -> list[RenderableType]:
    if one.state not in ("rejected", "no_script"):
        return []
    parts: list[RenderableType] = [Text(f"candidate {one.candidate}: {plain(one.text)}", "bold")]
    source = NamedSource(f"candidate {one.candidate}", one.source or "")
    for found in one.violations:
        parts += [findings.violation(found, source), Text()]
    for conflict in one.counterexamples:
        parts += [findings.counterexample(conflict, base, source), Text()]
    return parts


def diff(old: str, new: str, frozen: Sequence[Region], *, name: str = "script") -> RenderableType:
    """Show a rewrite against the script it repairs: a unified diff whose lines with committed calls are marked.

    Args:
        old: the script that failed.
        new: the rewrite.
        frozen: where the committed calls stand in ``old``.
        name: what the script is called.
    """
    before, after = split_lines(old), split_lines(new)
    paid = {number for region in frozen for number in range(region.line, region.end_line + 1)}
    text = Text.assemble((f"--- {plain(name)}, as it failed\n", "bold"), (f"+++ {plain(name)}, repaired", "bold"))
    groups = list(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT))
    for group in groups:
        text.append("\n" + _range(group), "cyan")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for number in range(i1, i2):
                    _line(text, " ", before[number], paid=number + 1 in paid)
                continue
            for number in range(i1, i2):
                _line(text, "-", before[number], paid=number + 1 in paid)
            for number in range(j1, j2):
                _line(text, "+", after[number], paid=False)
    if not groups:
        text.append("\nthe scripts are the same", "yellow")
    if not frozen:
        return text
    return Group(text, Text(f"lines with {PAID} hold committed calls, which replay for free", "dim"))


def _range(group: Sequence[tuple[str, int, int, int, int]]) -> str:
    first, last = group[0], group[-1]
    return f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"


def _line(text: Text, mark: str, line: str, *, paid: bool) -> None:
    style = {"+": "green", "-": "red"}.get(mark, "bold" if paid else "")
    text.append(f"\n{PAID if paid else ' '}", "bold yellow").append(f"{mark}{plain(line)}", style)
