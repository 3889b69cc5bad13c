"""What is read off a script's source: spans, sites and the facts a revision is remembered by (contract.md, 2-4)."""

from typing import Literal

import msgspec


class Span(msgspec.Struct, frozen=True, order=True):
    """A stretch of source: lines from 1, columns from 0 in characters (not bytes), the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fanout on the way to a call: how wide it can be, or which names its branches have.

    ``width`` is None where nothing bounds it; ``names`` are a dag's, else None; ``race`` is a race's site, else "".
    """

    width: int | None = None
    names: tuple[str, ...] | None = None
    race: str = ""


class SiteFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One site of a revision.

    ``kind`` is "call" for a ``ctx.run`` and "race" for a ``ctx.race`` (then ``capability`` is ""); ``fingerprint``
    is the hex SHA-256 of its expression (scheme f1); ``total`` bounds its calls in a launch and ``per_path`` its
    occurrences under one fanout path, where the checker proves a bound. ``paths`` lists the ways to it through
    fanouts, each from the outermost; None where they are not all known.
    """

    site: str
    capability: str
    fingerprint: str
    span: Span
    kind: Literal["call", "race"] = "call"
    total: int | None = None
    per_path: int | None = None
    paths: tuple[tuple[Level, ...], ...] | None = None


class Violation(msgspec.Struct, frozen=True):
    """One finding of the checker: which rule, where, what is wrong and what to write instead."""

    rule: str
    severity: Literal["error", "warning"]
    span: Span
    message: str
    hint: str


class Counterexample(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the gate stops a candidate at one site (contract.md, section 5)."""

    site: str
    kind: Literal["unresolved_moved", "removed", "capability_changed", "call_changed"]
    message: str
    hint: str
    old_span: Span
    old_text: str
    new_span: Span | None = None
    new_text: str | None = None
    moved_to: str | None = None
