"""Why a script was refused: the checker's violations and the gate's counterexamples, for people."""

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.text import Text

from tallystick.cli.excerpts import excerpt, split_lines
from tallystick.cli.terminal import plain
from tallystick.contract.source import Counterexample, Span, Violation


class NamedSource(msgspec.Struct, frozen=True):
    """A source with the name that its excerpts carry."""

    name: str
    text: str

    def lines(self) -> list[str]:
        """Return the lines as the spans count them."""
        return split_lines(self.text)


def violation(found: Violation, source: NamedSource) -> Text:
    """Show one violation: what is wrong, where, and what to write instead."""
    error = found.severity == "error"
    text = _headline(found.severity, found.rule, found.message, "bold red" if error else "bold yellow")
    text.append("\n").append_text(
        excerpt(source.lines(), found.span, source.name, "bold red" if error else "bold yellow")
    )
    return _closing(text, found.hint)


def counterexample(found: Counterexample, old: NamedSource, new: NamedSource) -> Text:
    """Show one counterexample: the committed call, what the rewrite has in its place, the legal alternative."""
    text = _headline("error", found.kind, found.message, "bold red")
    text.append(f"\n   committed at {plain(found.site)}:", "dim")
    text.append("\n").append_text(_quoted(old, found.old_span, found.old_text, "bold green"))
    if found.new_span is not None:
        text.append("\n   in the rewrite:", "dim")
        text.append("\n").append_text(_quoted(new, found.new_span, found.new_text or "", "bold red"))
    if found.moved_to is not None and found.moved_to not in found.message:
        text.append("\n   = ", "blue").append(f"note: an equal call stands at {plain(found.moved_to)}")
    return _closing(text, found.hint)


def verdict(violations: Sequence[Violation]) -> Text:
    """Sum the checker's findings up in one line."""
    errors = sum(found.severity == "error" for found in violations)
    parts = [count(errors, "error"), count(len(violations) - errors, "warning")]
    said = ", ".join(part for part in parts if not part.startswith("0 "))
    return Text(said or "no findings", "bold red" if errors else "bold green")


def count(number: int, noun: str) -> str:
    """Return ``1 error``, ``2 errors``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def from_details(details: Any, code: str) -> tuple[tuple[Violation, ...], tuple[Counterexample, ...]]:
    """Read what a refusal carries, by its code; a detail of another shape is left to the error's message."""
    kinds: dict[str, Any] = {"TS-C001": tuple[Violation, ...], "TS-G001": tuple[Counterexample, ...]}
    if details is None or code not in kinds:
        return (), ()
    found = msgspec.convert(details, kinds[code])
    return (found, ()) if code == "TS-C001" else ((), found)


def _headline(severity: str, label: str, message: str, style: str) -> Text:
    return Text.assemble((f"{severity}[{label}]", style), ": ", (plain(message), "bold"))


def _closing(text: Text, hint: str) -> Text:
    if hint:
        text.append("\n   = ", "blue").append("help: " + plain(hint).replace("\n", "\n     "))
    return text


def _quoted(source: NamedSource, span: Span, quoted: str, style: str) -> Text:
    """Show the span in its source, or the bare expression where the source at hand is another revision."""
    lines = source.lines()
    if _cut(lines, span) == split_lines(quoted):
        return excerpt(lines, span, source.name, style)
    own = [""] * (span.line - 1) + [" " * span.column + quoted.split("\n", 1)[0], *split_lines(quoted)[1:]]
    return excerpt(own, span, "an earlier revision", style)


def _cut(lines: Sequence[str], span: Span) -> list[str]:
    cut = list(lines[span.line - 1 : span.end_line])
    if cut:
        cut[-1] = cut[-1][: span.end_column]
        cut[0] = cut[0][span.column :]
    return cut
