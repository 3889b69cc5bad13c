"""R12: going through a set, which has no order.

What it refuses:
    A loop, comprehension, unpacking, join, list or text made from a set or a set expression, and ``pop`` on it; unless
    through ``sorted(...)``. Uses that do not see the order are fine: ``in``, ``len``, ``min``, ``max``, ``sum``, set
    algebra.

Why:
    The order of a set of strings differs from one launch to the next, so the same call would meet another payload on
    replay, and diverge.

Refused:
    async def orchestrate(ctx, args):
        locales = set(args["locales"][:8])
        texts = {}
        for locale in locales:
            texts[locale] = await ctx.run("text.generate", {"prompt": f"Say hello in {locale}"})
        return texts

Write instead:
    async def orchestrate(ctx, args):
        locales = set(args["locales"][:8])
        texts = {}
        for locale in sorted(locales):
            texts[locale] = await ctx.run("text.generate", {"prompt": f"Say hello in {locale}"})
        return texts
"""

import ast
from collections.abc import Iterator

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import COMPREHENSIONS, Place
from tallystick.contract.survey import FANOUTS

_BLIND = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len"})
"""Builtins whose result does not depend on the order of what they are given."""
_SEEING = frozenset(
    {"list", "tuple", "enumerate", "zip", "iter", "next", "map", "filter", "str", "repr", "print", "dict"}
)
_MAKERS = ("set", "frozenset")
_SET_METHODS = ("union", "intersection", "difference", "symmetric_difference")


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    survey = evidence.survey
    if not (
        survey.found[ast.Set]
        or survey.found[ast.SetComp]
        or any(survey.calls.get(name) for name in _MAKERS)
        or any(survey.attributes.get(name) for name in (*_SET_METHODS, "keys"))
    ):
        return  # no set can be in the script
    blind = _seen_by_nobody(evidence)
    for node, standing_at in survey.found[ast.For] + survey.found[ast.AsyncFor]:
        yield from _ordered(node.iter, standing_at, evidence, "this loop goes through")
    for kind in (ast.ListComp, ast.GeneratorExp, ast.DictComp):
        for node, standing_at in survey.found[kind]:
            if node not in blind:
                inside = evidence.bounds.values.inside(node, standing_at)
                for number, generator in enumerate(node.generators):
                    iterated_at = inside if number else standing_at
                    yield from _ordered(generator.iter, iterated_at, evidence, "this comprehension goes through")
    for node, standing_at in survey.found[ast.Starred]:
        if isinstance(node.ctx, ast.Load) and node not in blind:
            yield from _ordered(node.value, standing_at, evidence, "the star unpacks")
    for node, standing_at in survey.found[ast.FormattedValue]:
        yield from _ordered(node.value, standing_at, evidence, "this text shows")
    for node, standing_at in survey.found[ast.Assign]:
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            yield from _ordered(node.value, standing_at, evidence, "this assignment unpacks")
    for node, standing_at in survey.found[ast.YieldFrom]:
        yield from _ordered(node.value, standing_at, evidence, "'yield from' goes through")
    for node, standing_at in survey.found[ast.Call]:
        yield from _call(node, standing_at, evidence)


def _seen_by_nobody(evidence: Evidence) -> set[ast.AST]:
    """Return the comprehensions and sets with stars that are handed to something that does not see their order."""
    found: set[ast.AST] = set()
    for name in _BLIND:
        for call, place in evidence.survey.calls.get(name, ()):
            if call.args and evidence.is_builtin(name, place):
                found.add(call.args[0])
    for node, _ in evidence.survey.found[ast.Set]:
        found.update(item for item in node.elts if isinstance(item, ast.Starred))
    return found


def _ordered(items: ast.expr, place: Place, evidence: Evidence, what: str) -> Iterator[Finding]:
    if evidence.bounds.may_be_set(items, place):
        text = evidence.text(items)
        yield Finding(
            items,
            f"{what} the set {text}, whose order differs from launch to launch",
            f"write sorted({text}), or keep a list: list(dict.fromkeys(...)) drops doubles in order",
        )


def _call(node: ast.Call, place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _SEEING and evidence.is_builtin(name, place):
            for argument in node.args:
                yield from _ordered(argument, place, evidence, f"{name}(...) goes through")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="ctx"), attr=method)) if method in FANOUTS:
            for argument in node.args[:1]:
                yield from _ordered(argument, place, evidence, f"ctx.{method} goes through")
        case ast.Call(func=ast.Attribute(attr="join" | "extend" | "fromkeys" as method), args=[argument, *_]):
            yield from _ordered(argument, place, evidence, f"{method}(...) goes through")
        case ast.Call(func=ast.Attribute(value=receiver, attr="pop"), args=[]):
            if evidence.bounds.may_be_set(receiver, place):
                text = evidence.text(receiver)
                yield Finding(
                    node,
                    f"pop takes any item of the set {text}, another one in each launch",
                    f"go through sorted({text}), or keep a list",
                )


RULE = Rule(
    code="R12",
    slug="unordered-iteration",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
    sees=(
        *(ast.Assign, ast.Call, ast.FormattedValue, ast.For, ast.AsyncFor, ast.Set, ast.Starred, ast.YieldFrom),
        *COMPREHENSIONS,
    ),
)
