"""A script as the contract sees it: parsed once, with its sites, their fingerprints and the annotated source.

``read_script`` never executes anything and answers every text with a ``Script`` or a finding of rule R00
(contract.md, sections 2 and 4). Whether the script keeps to the subset is the checker's to say.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from tallystick.contract.annotate import AnnotationError, annotate
from tallystick.contract.errors import ScriptRefusedError
from tallystick.contract.fingerprint import UnknownSyntaxError, fingerprint
from tallystick.contract.positions import SourceMap
from tallystick.contract.sites import MAX_DEPTH, NestingError, SiteNode, collect_sites
from tallystick.contract.source import Level, SiteFact, Span, Violation

MAX_SOURCE = 512 * 1024
"""Bytes of UTF-8 that a script may have."""
MAX_SITE = 4096
"""Characters that the name of a site may have."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_CUT_OFF = re.compile(r"never closed|EOF|unterminated|expected an indented block|expected 'except'")


class ScriptSyntaxError(ScriptRefusedError):
    """The text is not a script that can be read; ``violation`` is the finding, of rule R00."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.message, hint=violation.hint, details=[violation])
        self.violation = violation


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """A script that was read.

    ``source`` is the text as it was given; ``nodes`` and ``sites`` run parallel, in evaluation order;
    ``annotated`` is what a sandbox runs.
    """

    source: str
    tree: ast.Module
    positions: SourceMap
    nodes: tuple[SiteNode, ...]
    sites: tuple[SiteFact, ...]
    annotated: str

    def text(self, fact: SiteFact) -> str:
        """Return the source text of a call."""
        return self.positions.text(fact.span)

    def with_bounds(
        self,
        bounds: Mapping[str, tuple[int | None, int | None]],
        routes: Mapping[str, tuple[tuple[Level, ...], ...] | None],
    ) -> "Script":
        """Return the script with what is proved of its sites in their facts: ``(total, per_path)``, and the paths."""
        facts = (
            msgspec.structs.replace(fact, total=total, per_path=per_path, paths=routes.get(fact.site))
            for fact in self.sites
            for total, per_path in (bounds.get(fact.site, (None, None)),)
        )
        return replace(self, sites=tuple(facts))


def read_script(source: str) -> Script:
    """Parse a script and find its sites.

    Raises:
        ScriptSyntaxError: the text does not parse, is too large or nested too deep, or has a call that cannot be
            given its site.
    """
    positions = _encode(source)
    try:
        tree = _parse(positions.data.decode())
        nodes = tuple(collect_sites(tree))
        sites = tuple(_fact(found, positions) for found in nodes)
        return Script(source, tree, positions, nodes, sites, annotate(positions, tree, nodes))
    except SyntaxError as error:
        raise _refusal(f"the script does not parse: {error.msg}", _syntax_hint(source, error), _place(error)) from None
    except AnnotationError as error:
        raise _refusal(str(error), error.hint, positions.span(error.node)) from None
    except (NestingError, RecursionError, MemoryError) as error:
        line = getattr(getattr(error, "node", None), "lineno", 1)
        raise _refusal(
            f"the script is nested deeper than {MAX_DEPTH} levels",
            "split long chains of operators, calls and elif into statements, functions or a table",
            _line(line),
        ) from None


def _encode(source: str) -> SourceMap:
    try:
        positions = SourceMap.of(source)
    except UnicodeEncodeError as error:
        raise _refusal(
            "the script holds a lone surrogate, which is no character",
            "save the script as UTF-8; in a string, write the character itself",
            _line(source.count("\n", 0, error.start) + 1),
        ) from None
    size = len(positions.data)
    if size > MAX_SOURCE:
        raise _refusal(
            f"the script has {size:,} bytes; {MAX_SOURCE:,} are allowed", "pass data in as args, not as code", _line(1)
        )
    zero = source.find("\0")
    if zero >= 0:
        raise _refusal(
            "the script holds a null byte, so it is not Python text",
            "send the source as UTF-8 text",
            _line(source.count("\n", 0, zero) + 1),
        )
    return positions


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():  # a doubtful escape is the script's business, not a line in the host's log
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _fact(found: SiteNode, positions: SourceMap) -> SiteFact:
    span = positions.span(found.node)
    if len(found.site) > MAX_SITE:
        raise _refusal(
            f"the site of this call would have a name of {len(found.site):,} characters; {MAX_SITE:,} are allowed",
            "shorten the names of the functions and dag nodes around it",
            span,
        )
    try:
        mark = fingerprint(found.node, found.kind)
    except UnknownSyntaxError as error:
        raise _refusal(
            str(error), "build the value in statements before the call, with plain expressions", span
        ) from None
    return SiteFact(found.site, found.capability or "", mark, span, found.kind)


def _refusal(message: str, hint: str, span: Span) -> ScriptSyntaxError:
    return ScriptSyntaxError(Violation("R00", "error", span, message, hint))


def _line(line: int) -> Span:
    return Span(line, 0, line, 0)


def _place(error: SyntaxError) -> Span:
    line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
    end_line, end_column = error.end_lineno or line, (error.end_offset or 0) - 1
    if (end_line, end_column) <= (line, column):
        end_line, end_column = line, column + 1
    return Span(line, column, end_line, end_column)


def _syntax_hint(source: str, error: SyntaxError) -> str:
    if _FENCE.search(source):
        return "send the Python source alone: no Markdown fences and no text around it"
    if error.msg and _CUT_OFF.search(error.msg):
        return "the text may have been cut off: send the whole module, every bracket and string closed"
    return "the script must be one complete Python module"
