"""What the checker answers: findings and facts (contract.md, section 4)."""

from dataclasses import dataclass

import msgspec

from tallystick.contract.script import Script
from tallystick.contract.source import Level, Span, Violation


class LoopFact(msgspec.Struct, frozen=True):
    """A loop or comprehension, and how often it goes round at most; None where no bound is proved."""

    kind: str
    span: Span
    rounds: int | None


class FanoutFact(msgspec.Struct, frozen=True):
    """A ``parallel``, ``pipeline``, ``dag`` or ``race``, and how wide it is at most; None where no bound is proved."""

    kind: str
    span: Span
    width: int | None


class Facts(msgspec.Struct, frozen=True):
    """What can be read off a script without running it.

    Attributes:
        sites: the site of every capability call and race.
        calls: how many call expressions each capability has.
        fanouts: every fanout with its width.
        loops: every loop and comprehension with its rounds.
        bounds: site -> (total, per_path): how often it can be called in one launch, and under one fanout path.
        routes: site -> the ways to it through fanouts, each from the outermost; None where they are not all known.
    """

    sites: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    fanouts: tuple[FanoutFact, ...] = ()
    loops: tuple[LoopFact, ...] = ()
    bounds: dict[str, tuple[int | None, int | None]] = {}
    routes: dict[str, tuple[tuple[Level, ...], ...] | None] = {}


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on a source.

    Attributes:
        violations: the findings in the order of the source.
        facts: what was read off it, as far as it could be read.
        script: the script with the bounds in its sites' facts; None if the source could not be read.
    """

    violations: tuple[Violation, ...]
    facts: Facts
    script: Script | None

    @property
    def valid(self) -> bool:
        """Whether no finding is an error."""
        return all(violation.severity != "error" for violation in self.violations)
