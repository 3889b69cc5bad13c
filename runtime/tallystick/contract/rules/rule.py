"""What a rule is made of, and what it may look at (contract.md, section 4).

A rule is one module: its docstring is its page (four headings: What it refuses, Why, Refused, Write instead), its
``RULE`` is the only thing that others import. It has no state; names, places and bounds come from the evidence.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from tallystick.contract.bounds.analysis import Bounds
from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.positions import Located, SourceMap
from tallystick.contract.scopes import Place
from tallystick.contract.survey import Survey

_LONGEST_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a rule found: where, what is wrong there, and what to write instead."""

    node: Located
    message: str
    hint: str
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a rule may look at; ``envelope`` and ``catalogue`` are None when only the script is judged."""

    survey: Survey
    bounds: Bounds
    positions: SourceMap
    envelope: Envelope | None
    catalogue: Mapping[str, CapabilitySpec] | None

    def text(self, node: Located) -> str:
        """Return the source of a node on one line, shortened, for messages and hints."""
        text = " ".join(self.positions.text(self.positions.span(node)).split())
        return text if len(text) <= _LONGEST_EXCERPT else f"{text[: _LONGEST_EXCERPT - 3]}..."

    def is_builtin(self, name: str, place: Place) -> bool:
        """Whether a name means the builtin at a place: the script binds no such name there itself."""
        return place.scope.resolve(name) is None


Check: TypeAlias = Callable[[Any, Place, Evidence], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract.

    Attributes:
        code: its number, never reused.
        slug: the bad pattern in a few words.
        since: the version that first had it.
        nodes: the types of node that it is asked about; of ``ast.Module`` there is one.
        check: yields what it finds at one such node.
        sees: further types of node that it looks up in the survey by itself.
    """

    code: str
    slug: str
    since: str
    nodes: tuple[type[ast.AST], ...]
    check: Check
    sees: tuple[type[ast.AST], ...] = ()

    @property
    def page(self) -> str:
        """The rule's documentation."""
        return sys.modules[self.check.__module__].__doc__ or ""

    @property
    def title(self) -> str:
        """What it refuses, as the subject of a sentence: the head of its page."""
        return self.page.partition("\n")[0].removeprefix(f"{self.code}: ").removesuffix(".")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like ``name``, None if none does."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None
