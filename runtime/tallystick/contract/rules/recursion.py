"""R06: a function that calls itself.

What it refuses:
    Recursion, direct or by way of other functions, stages or nodes; generators that never end.

Why:
    How often a call inside such a function happens cannot be read off the source.

Refused:
    async def draw(ctx, prompt, tries_left=3):
        try:
            return await ctx.run("image.generate", {"prompt": prompt})
        except CapabilityError as e:
            if e.kind == "rate_limited" and tries_left > 0:
                return await draw(ctx, prompt, tries_left - 1)
            raise

    async def orchestrate(ctx, args):
        return await draw(ctx, args["prompt"])

Write instead:
    TRIES = 4

    async def draw(ctx, prompt):
        for attempt in range(TRIES):
            try:
                return await ctx.run("image.generate", {"prompt": prompt})
            except CapabilityError as e:
                if e.kind != "rate_limited" or attempt == TRIES - 1:
                    raise

    async def orchestrate(ctx, args):
        return await draw(ctx, args["prompt"])
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.callers import Reference
from tallystick.contract.bounds.effect import INF
from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Place, Scope


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    callers = evidence.bounds.callers
    functions = evidence.survey.functions()
    called_by: dict[Scope, list[tuple[Scope, Reference]]] = {}  # caller -> what it uses
    for function in functions:
        for reference in callers.references(function):
            called_by.setdefault(reference.place.function, []).append((function, reference))
    for function in functions:
        for used, reference in called_by.get(function, ()):
            way = _way(used, function, called_by)
            if way is not None:
                yield _recursive(function, used, way, reference)
    for function in functions:
        yield from _endless(function, evidence)


def _way(start: Scope, goal: Scope, called_by: dict[Scope, list[tuple[Scope, Reference]]]) -> list[Scope] | None:
    """Return the shortest way of calls from one function to another, None if there is none."""
    came_from: dict[Scope, Scope | None] = {start: None}
    waiting = [start]
    for function in waiting:  # grows while it is walked
        if function is goal:
            way = [function]
            while (previous := came_from[way[-1]]) is not None:
                way.append(previous)
            return way[::-1]
        for used, _ in called_by.get(function, ()):
            if used not in came_from:
                came_from[used] = function
                waiting.append(used)
    return None


def _recursive(function: Scope, used: Scope, way: list[Scope], reference: Reference) -> Finding:
    names = " -> ".join([function.name, *(step.name for step in way)])
    text = f"{function.name} calls itself" if used is function else f"{function.name} calls itself: {names}"
    return Finding(
        reference.node,
        text,
        "write a loop with a bound: for attempt in range(3): ..., and pass results on in variables",
    )


def _endless(function: Scope, evidence: Evidence) -> Iterator[Finding]:
    for node, place in function.yields:
        loops = [loop for loop in place.loops() if isinstance(loop, ast.While)]
        if any(evidence.bounds.loops.rounds(loop) == INF for loop in loops):
            yield Finding(
                node,
                f"nothing shows that the generator {function.name} ends",
                "give its loop a bound: for i in range(20):",
            )
            return


RULE = Rule(
    code="R06",
    slug="recursion",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
