"""R05: a fanout whose width is not bounded.

What it refuses:
    A ``ctx.parallel``, ``ctx.pipeline``, ``ctx.dag`` or ``ctx.race`` whose number of branches has no provable upper
    bound, directly or through a variable, an appended list, a helper's result or ``*args``; with an envelope, one that
    can be wider than it allows.

Why:
    A fanout pays for all its branches at once: a long input would be a large bill before anybody can look at it.

Refused:
    async def orchestrate(ctx, args):
        async def answer(ticket):
            return await ctx.run("text.generate", {"prompt": ticket["body"]})

        return await ctx.parallel([answer(t) for t in args["tickets"]])

Write instead:
    MAX_TICKETS = 20

    async def orchestrate(ctx, args):
        async def answer(ticket):
            return await ctx.run("text.generate", {"prompt": ticket["body"]})

        return await ctx.parallel([answer(t) for t in args["tickets"][:MAX_TICKETS]])
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.effect import INF
from tallystick.contract.rules.advice import how_to_bound
from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Place
from tallystick.contract.survey import FANOUTS


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    for call, standing_at in evidence.survey.context_calls:
        if call.func.attr in FANOUTS:
            yield from _fanout(call, standing_at, evidence)


def _fanout(call: ast.Call, place: Place, evidence: Evidence) -> Iterator[Finding]:
    branches = evidence.bounds.fanouts.branches(call)
    if branches is None:
        return  # R02 refuses it
    assert isinstance(call.func, ast.Attribute)
    name = f"ctx.{call.func.attr}"
    width = evidence.bounds.fanouts.width(call, place)
    limit = evidence.envelope.max_width if evidence.envelope is not None else INF
    if width == INF:
        yield Finding(
            call,
            f"nothing bounds how many branches this {name} has",
            how_to_bound(branches, place.handed_to(call), evidence),
        )
    elif width > limit:
        yield Finding(
            call,
            f"this {name} can have {width} branches; the envelope allows {limit}",
            f"lower the bound to {limit}, or go through the items in batches",
        )


RULE = Rule(
    code="R05",
    slug="unguarded-fanout",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
