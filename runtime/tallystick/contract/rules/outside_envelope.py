"""R11: a script that goes beyond its envelope.

What it refuses:
    A capability that is unknown or not among the grants; a number of calls, in all or at one site, whose proven upper
    bound is above the ceiling. Without an envelope this rule says nothing; in the example text.generate and
    image.generate are granted.

Why:
    The broker would deny such a call in the middle of the run, when others have been paid for already.

Refused:
    async def orchestrate(ctx, args):
        return await ctx.run("image.genrate", {"prompt": args["prompt"]})

Write instead:
    async def orchestrate(ctx, args):
        return await ctx.run("image.generate", {"prompt": args["prompt"]})
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.effect import INF, Number, plus
from tallystick.contract.rules.rule import Evidence, Finding, Rule, nearest
from tallystick.contract.scopes import Place


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    envelope = evidence.envelope
    if envelope is None:
        return
    total: Number = 0
    widest: tuple[Number, ast.Call] | None = None
    for call, standing_at in evidence.survey.context_calls:
        if call.func.attr != "run":
            continue
        yield from _granted(call, evidence)
        count = evidence.bounds.callers.executions(standing_at)
        total = plus(total, count)
        if envelope.max_calls_per_site < count < INF:
            yield Finding(
                call,
                f"this can happen {count:,} times; at one site the envelope allows {envelope.max_calls_per_site:,}",
                "lower the bounds of the loops and fanouts around it",
            )
        if widest is None or count > widest[0]:
            widest = (count, call)
    if widest is not None and envelope.max_calls < total < INF:
        yield Finding(
            widest[1],
            f"the script can make {total:,} calls; the envelope allows {envelope.max_calls:,} "
            f"(this one can happen {widest[0]:,} times)",
            "lower the bounds of the loops and fanouts, or ask for a higher ceiling",
        )


def _granted(call: ast.Call, evidence: Evidence) -> Iterator[Finding]:
    capability = call.args[0] if call.args else None
    if not (isinstance(capability, ast.Constant) and isinstance(capability.value, str)):
        return  # R02 refuses it
    assert evidence.envelope is not None
    name, grants, catalogue = capability.value, evidence.envelope.grants, evidence.catalogue
    if name in grants and (catalogue is None or name in catalogue):
        return
    granted = f"granted are {', '.join(sorted(grants))}" if grants else "nothing is granted"
    if catalogue is not None and name not in catalogue:
        better = nearest(name, catalogue)
        hint = f"did you mean {better!r}? {granted}" if better else granted
        yield Finding(capability, f"there is no capability {name!r}", hint)
    else:
        wanted = ",".join(_called(evidence))
        hint = f"{granted}; to grant all that the script calls: --grant {wanted}"
        yield Finding(capability, f"the capability {name!r} is not among the grants", hint)


def _called(evidence: Evidence) -> list[str]:
    """Return the capabilities that the script calls and the catalogue has, each once, in the order of their names."""
    names = {
        call.args[0].value
        for call, _ in evidence.survey.context_calls
        if call.func.attr == "run" and call.args and isinstance(call.args[0], ast.Constant)
    }
    known = evidence.catalogue
    return sorted(name for name in names if isinstance(name, str) and (known is None or name in known))


RULE = Rule(
    code="R11",
    slug="outside-envelope",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
