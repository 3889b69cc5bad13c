"""Writes each call's site into the source: ``ctx.run("…", …, _site="…")`` (contract.md, section 2).

The text is edited, not rebuilt: every byte of the script stays, and so does every line number.
"""

import ast
import re
from collections.abc import Sequence

from tallystick.contract.positions import SourceMap
from tallystick.contract.sites import SiteNode, collect_sites

SITE_KEYWORD = "_site"
_COMMENT = re.compile(rb"#[^\r\n]*")
_QUOTE = re.compile(rb"""[A-Za-z]*(["'])""")


class AnnotationError(ValueError):
    """A call cannot be given its site; ``node`` is the call, ``hint`` what to write instead."""

    def __init__(self, message: str, hint: str, node: ast.Call) -> None:
        super().__init__(message)
        self.hint = hint
        self.node = node


def annotate(positions: SourceMap, tree: ast.Module, sites: Sequence[SiteNode]) -> str:
    """Return the source of ``tree``, in which each call of ``sites`` carries its site.

    Raises:
        AnnotationError: a call has a ``_site`` that is not its own, or stands in an f-string that cannot hold one.
    """
    bare = [found for found in sites if not _carries_site(found)]
    pieces: list[bytes] = []
    done = 0
    for offset, text in sorted(edit for found in bare for edit in _edits(found, positions)):
        pieces += (positions.data[done:offset], text)
        done = offset
    pieces.append(positions.data[done:])
    annotated = b"".join(pieces).decode(errors="replace")
    inside = next((found for found in bare if found.interpolated), None)
    if inside is not None and not _reads_back(annotated, tree, sites):
        raise AnnotationError(
            f"the call at {inside.site} stands in an f-string that cannot hold its site",
            "assign the result of the call to a name first, and put the name into the f-string",
            inside.node,
        )
    return annotated


def _carries_site(found: SiteNode) -> bool:
    own = next((keyword.value for keyword in found.node.keywords if keyword.arg == SITE_KEYWORD), None)
    if own is None:
        return False
    if isinstance(own, ast.Constant) and own.value == found.site:
        return True
    raise AnnotationError(
        f"the call carries a {SITE_KEYWORD} that is not its own site, {found.site}",
        f"leave {SITE_KEYWORD} out: it is added when the script is read",
        found.node,
    )


def _edits(found: SiteNode, positions: SourceMap) -> list[tuple[int, bytes]]:
    """Return what to insert at which byte offsets, so that ``found`` carries its site."""
    close = positions.end(found.node) - 1  # the closing parenthesis is code, whatever comments precede it
    quote = _quote(found, positions)
    keyword = b"".join((SITE_KEYWORD.encode(), b"=", quote, found.site.encode(), quote))
    arguments: list[ast.expr | ast.keyword] = [*found.node.args, *found.node.keywords]
    if not arguments:
        return [(close, keyword)]
    last = max(map(positions.end, arguments))
    if last > close:  # a bare generator has only the call's parentheses: beside a keyword it needs its own
        return [(positions.start(arguments[0]), b"("), (close, b"), " + keyword)]
    has_comma = b"," in _COMMENT.sub(b"", positions.data[last:close])
    return [(close, (b" " if has_comma else b", ") + keyword)]


def _quote(found: SiteNode, positions: SourceMap) -> bytes:
    """Return a quote that may stand here: before Python 3.12 an f-string forbids its own one inside itself."""
    if found.interpolated and found.capability is not None and found.node.args:
        literal = _QUOTE.match(positions.data, positions.start(found.node.args[0]))
        if literal:
            return literal[1]
    return b'"'


def _reads_back(annotated: str, tree: ast.Module, sites: Sequence[SiteNode]) -> bool:
    """Return whether ``annotated`` is the same script but for the sites: f-strings hold text that is not code."""
    try:
        again = ast.parse(annotated)
    except SyntaxError:
        return False
    for before, after in zip(sites, collect_sites(again), strict=False):
        if len(after.node.keywords) > len(before.node.keywords):
            after.node.keywords.pop()
    return ast.dump(again) == ast.dump(tree)
