"""Why a script was refused, for people: the checker's violations, the gate's counterexamples, a plan's stops."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from tallystick.cli.excerpts import Quotation, split_lines
from tallystick.cli.fields import Labelled
from tallystick.cli.terminal import count, plain
from tallystick.contract.script import ScriptSyntaxError, read_script
from tallystick.engine.messages import Conflict, Diagnostic, Excerpt, PlannedStop, Region

#: Of stops that are alike, how many are named beside the one that is shown.
MAX_NAMED = 20


class NamedSource(msgspec.Struct, frozen=True):
    """A source with the name that its excerpts carry."""

    name: str
    text: str

    def lines(self) -> list[str]:
        """Return the lines as the regions count them."""
        return split_lines(self.text)


def violation(found: Diagnostic, source: NamedSource) -> RenderableType:
    """Show one violation: what is wrong, where, and what to write instead."""
    style = "bold red" if found.severity == "error" else "bold yellow"
    headline = _headline(found.severity, found.rule, found.message, style)
    return Group(headline, Quotation(source.lines(), found, source.name, style), *_footnotes(help=found.hint))


def counterexample(found: Conflict, old: NamedSource, new: NamedSource) -> RenderableType:
    """Show one counterexample: the committed call, what the rewrite has in its place, the legal alternative."""
    parts: list[RenderableType] = [
        _headline("error", found.kind, found.message, "bold red"),
        Text(f"   committed at {plain(found.site)}:", "dim"),
        _quoted(old, found.old, "bold green"),
    ]
    if found.new is not None:
        parts += [Text("   in the rewrite:", "dim"), _quoted(new, found.new, "bold red")]
    moved = found.moved_to if found.moved_to is not None and found.moved_to not in found.message else None
    return Group(*parts, *_footnotes(note=f"an equal call stands at {moved}" if moved else "", help=found.hint))


def alike(stops: Iterable[PlannedStop]) -> list[list[PlannedStop]]:
    """Group the divergences of one site, which are the same change in several branches; other stops stay alone."""
    groups: dict[Any, list[PlannedStop]] = {}
    for number, found in enumerate(stops):
        together = found.identity is not None and found.code == "TS-D001"
        key = (found.identity.site, found.hint) if found.identity is not None and together else number
        groups.setdefault(key, []).append(found)
    return list(groups.values())


def stop(group: Sequence[PlannedStop], source: NamedSource) -> RenderableType:
    """Show what would stop a launch: what it is, the call or race where it stands in the script, what to do.

    Of several that are alike the first is told, and the others are named.
    """
    found, *others = group
    parts: list[RenderableType] = [_headline("error", found.code, found.message, "bold red")]
    region = None if found.identity is None else _place(source, found.identity.site)
    if region is not None:
        parts.append(Quotation(source.lines(), region, source.name))
    named = [str(other.identity) for other in others[:MAX_NAMED]]
    if len(others) > len(named):
        named.append(f"{len(others) - len(named)} more")
    return Group(*parts, *_footnotes(also=", ".join(named), help=found.hint))


def verdict(violations: Sequence[Diagnostic]) -> Text:
    """Sum the checker's findings up in one line."""
    errors = sum(found.severity == "error" for found in violations)
    parts = [count(errors, "error"), count(len(violations) - errors, "warning")]
    said = ", ".join(part for part in parts if not part.startswith("0 "))
    return Text(said or "no findings", "bold red" if errors else "bold green")


def from_details(details: Any, code: str) -> tuple[tuple[Diagnostic, ...], tuple[Conflict, ...]]:
    """Read what a refusal carries, by its code; a detail of another shape is left to the error's message."""
    kinds: dict[str, Any] = {"TS-C001": tuple[Diagnostic, ...], "TS-G001": tuple[Conflict, ...]}
    if details is None or code not in kinds:
        return (), ()
    found = msgspec.convert(details, kinds[code])
    return (found, ()) if code == "TS-C001" else ((), found)


def _place(source: NamedSource, site: str) -> Region | None:
    """Find a site in a script; None where this is not the script that has it."""
    try:
        facts = read_script(source.text).sites
    except ScriptSyntaxError:
        return None
    return next((msgspec.convert(fact.span, Region, from_attributes=True) for fact in facts if fact.site == site), None)


def _headline(severity: str, label: str, message: str, style: str) -> Labelled:
    return Labelled(Text.assemble((f"{severity}[{label}]", style), ": "), Text(plain(message), "bold"), indent=2)


def _footnotes(**notes: str) -> list[Labelled]:
    return [
        Labelled(Text.assemble(("   = ", "blue"), f"{name}: "), Text(plain(text)), indent=5)
        for name, text in notes.items()
        if text
    ]


def _quoted(source: NamedSource, excerpt: Excerpt, style: str) -> Quotation:
    """Quote from the source, or the bare expression where the source at hand is another revision."""
    lines, own = source.lines(), split_lines(excerpt.text)
    if _cut(lines, excerpt) == own:
        return Quotation(lines, excerpt, source.name, style)
    placed = [""] * (excerpt.line - 1) + [" " * excerpt.column + own[0], *own[1:]]
    return Quotation(placed, excerpt, "an earlier revision", style)


def _cut(lines: Sequence[str], region: Region) -> list[str]:
    cut = list(lines[region.line - 1 : region.end_line])
    if cut:
        cut[-1] = cut[-1][: region.end_column]
        cut[0] = cut[0][region.column :]
    return cut
