"""R03: a loop without a static bound.

What it refuses:
    Any ``while`` that nothing provably ends; a ``for`` or comprehension that reaches a capability call or builds a
    fanout, itself or through helpers, over anything whose length has no provable upper bound; a ``for`` that appends
    to the list it goes through. A ``for`` without calls over finite data is fine.

Why:
    How many calls a script can make must be known before the first one is paid for; and a later revision is only
    held to what the earlier one could have done if that is known.

Refused:
    async def orchestrate(ctx, args):
        replies = []
        for ticket in args["tickets"]:
            reply = await ctx.run("text.generate", {"prompt": ticket["body"]})
            replies.append(reply["text"])
        return replies

Write instead:
    async def orchestrate(ctx, args):
        replies = []
        for ticket in args["tickets"][:20]:
            reply = await ctx.run("text.generate", {"prompt": ticket["body"]})
            replies.append(reply["text"])
        return replies
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.effect import INF, LENGTH
from tallystick.contract.rules.advice import how_to_bound
from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import COMPREHENSIONS, Comprehension, Place


def _check(node: ast.AST, place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node:
        case ast.While():
            return _while(node, evidence)
        case ast.For() | ast.AsyncFor():
            return _for(node, place, evidence)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _comprehension(node, place, evidence)
    return iter(())


def _while(loop: ast.While, evidence: Evidence) -> Iterator[Finding]:
    if evidence.bounds.loops.rounds(loop) == INF:
        yield Finding(
            _head(loop, loop.test),
            f"nothing shows that 'while {evidence.text(loop.test)}' ends",
            "count the rounds: 'for attempt in range(5):' with a break, or 'while rounds < 5 and ...:' with "
            "'rounds += 1' in every round",
        )


def _for(loop: ast.For | ast.AsyncFor, place: Place, evidence: Evidence) -> Iterator[Finding]:
    bounds = evidence.bounds
    if bounds.loops.rounds(loop) < INF:
        return
    if bounds.loops.extends_itself(loop, place, surely=True):
        yield Finding(
            _head(loop, loop.iter),
            f"this loop lengthens {evidence.text(loop.iter)} while it goes through it, so it need not end",
            "go through a copy with a limit, list(...)[:20], or collect into another list",
        )
    elif loop in bounds.loops_that_matter():
        yield Finding(
            _head(loop, loop.iter),
            f"this loop reaches a capability call, and nothing bounds {evidence.text(loop.iter)}",
            how_to_bound(loop.iter, place, evidence),
        )


def _comprehension(node: Comprehension, place: Place, evidence: Evidence) -> Iterator[Finding]:
    bounds = evidence.bounds
    if place.fanout is not None or bounds.loops.comprehension(node, place) < INF:
        return  # what is handed to a fanout at once is R05's
    if node not in bounds.loops_that_matter():
        return
    inside = bounds.values.inside(node, place)
    for number, generator in enumerate(node.generators):
        iterated_at = inside if number else place
        if bounds.number(generator.iter, iterated_at, LENGTH) == INF:
            yield Finding(
                generator.iter,
                f"this comprehension reaches a capability call, and nothing bounds {evidence.text(generator.iter)}",
                how_to_bound(generator.iter, iterated_at, evidence),
            )


def _head(loop: ast.stmt, last: ast.expr) -> ast.stmt:
    """Return a node that spans a loop's first line only, up to its condition or iterable."""
    return ast.Pass(
        lineno=loop.lineno, col_offset=loop.col_offset, end_lineno=last.end_lineno, end_col_offset=last.end_col_offset
    )


RULE = Rule(
    code="R03",
    slug="unbounded-loop",
    since="0.1.0",
    nodes=(ast.While, ast.For, ast.AsyncFor, *COMPREHENSIONS),
    check=_check,
)
