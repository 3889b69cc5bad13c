"""R02: an effect by any route but ctx.run.

What it refuses:
    Methods of ``ctx`` under another name; ``ctx`` stored, renamed or handed on except to a helper's parameter that is
    called ``ctx``; attributes that it does not have; capability names that are not literals; star-arguments in its
    calls; a coroutine that is dropped or used as if it were its result. Handing a coroutine to a fanout, returning
    it or awaiting it later is fine.

Why:
    Every paid call must be seen in the source: its site, its capability and its arguments are what a revision is
    compared by. A coroutine that nobody awaits is a call that silently does not happen.

Refused:
    async def orchestrate(ctx, args):
        generate = ctx.run
        image = await generate("image.generate", {"prompt": args["prompt"]})
        ctx.run("review.visual", {"image": image["images"][0], "criteria": "sharp"})
        return image

Write instead:
    async def orchestrate(ctx, args):
        image = await ctx.run("image.generate", {"prompt": args["prompt"]})
        review = await ctx.run("review.visual", {"image": image["images"][0], "criteria": "sharp"})
        return {"image": image, "review": review}
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.callers import Reference
from tallystick.contract.rules.coroutines import misused_coroutines
from tallystick.contract.rules.rule import Evidence, Finding, Rule, nearest
from tallystick.contract.scopes import FunctionNode, Kind, Place, Scope
from tallystick.contract.survey import CONTEXT

# Method -> (how many positional arguments, None for any number; the keywords it takes).
_METHODS: dict[str, tuple[int | None, tuple[str, ...]]] = {
    "run": (3, ("payload", "take", "_site")),
    "parallel": (1, ("branches", "tolerate")),
    "pipeline": (None, ("tolerate",)),
    "dag": (1, ("graph", "tolerate")),
    "race": (1, ("branches",)),
    "log": (1, ("text",)),
}
_CALL = 'await ctx.run("<capability>", {...})'


def _check(_module: ast.Module, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    for call, standing_at in evidence.survey.context_calls:
        if standing_at.scope.resolve(CONTEXT) is None:
            yield _unknown_context(call, standing_at)
        if not _is_usual(call):
            yield from _context_call(call, evidence)
    for attribute, standing_at in evidence.survey.context_attributes:
        if standing_at.scope.resolve(CONTEXT) is None:
            yield _unknown_context(attribute, standing_at)
        yield _detached(attribute)
    for name, _ in evidence.survey.uses.get(CONTEXT, ()):
        yield Finding(
            name,
            "ctx may only be used as ctx.<method>(...), or handed to a helper of this script as its parameter ctx",
            f"call the capability where you need it: {_CALL}; or give the helper a parameter ctx and call it by name",
        )
    for scope in (evidence.survey.module, *evidence.survey.scopes.values()):
        if CONTEXT in scope.definitions:
            yield from _rebound(scope)
    for function in evidence.survey.functions():
        if _takes_context(function) and not evidence.bounds.callers.is_entry(function):
            for reference in evidence.bounds.callers.references(function):
                yield from _reference(function, reference, evidence)
    for call, standing_at in evidence.survey.context_arguments:
        yield from _handed_on(call, standing_at, evidence)
    yield from misused_coroutines(evidence)


# Calls of its methods


def _is_usual(call: ast.Call) -> bool:
    """Whether a call is ``ctx.run("<literal>", payload)`` and nothing more: nothing can be wrong with it."""
    match call:
        case ast.Call(func=ast.Attribute(attr="run"), args=[ast.Constant(value=str()), second], keywords=[]):
            return not isinstance(second, ast.Starred)
    return False


def _unknown_context(node: ast.Call | ast.Attribute, place: Place) -> Finding:
    function = place.function
    if function.parent is None:
        return Finding(node, "the module level has no ctx", "use ctx inside orchestrate")
    return Finding(
        node,
        f"{function.name} uses ctx but has no ctx",
        f"make ctx its first parameter, 'def {function.name}(ctx, ...)', and hand it over in each call",
    )


def _context_call(call: ast.Call, evidence: Evidence) -> Iterator[Finding]:
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    if method not in _METHODS:
        yield _no_such_method(call.func)
        return
    starred = next((argument for argument in call.args if isinstance(argument, ast.Starred)), None)
    doubly = next((keyword for keyword in call.keywords if keyword.arg is None), None)
    if starred is not None or doubly is not None:
        yield Finding(
            starred or doubly or call,
            f"star-arguments hide what ctx.{method} is called with",
            _without_stars(method, starred, evidence),
        )
        return
    yield from _arguments(call, method)
    if method == "run":
        yield from _capability(call, evidence)


def _without_stars(method: str, starred: ast.Starred | None, evidence: Evidence) -> str:
    if method in {"parallel", "race"} and starred is not None:
        return f"hand over one list: ctx.{method}({evidence.text(starred.value)})"
    return f"write the arguments out: {_CALL}" if method == "run" else "write the arguments out"


def _arguments(call: ast.Call, method: str) -> Iterator[Finding]:
    most, keywords = _METHODS[method]
    for keyword in call.keywords:
        if keyword.arg not in keywords:
            known = nearest(str(keyword.arg), keywords)
            hint = f"did you mean {known}=?" if known else f"it takes {', '.join(keywords) or 'no keywords'}"
            if method == "run" and keyword.arg == "capability":
                hint = f"write the capability first, without a keyword: {_CALL}"
            yield Finding(keyword, f"ctx.{method} has no argument {keyword.arg!r}", hint)
    if most is not None and len(call.args) > most:
        yield Finding(
            call.args[most],
            f"ctx.{method} takes {most} positional argument{'s' if most > 1 else ''} at most",
            f"hand over one list of branches: ctx.{method}([...])"
            if method in {"parallel", "race"}
            else "leave it out",
        )
    first = len(call.args) or any(keyword.arg in {"branches", "graph", "text"} for keyword in call.keywords)
    if not first and method != "run":
        yield Finding(call, f"ctx.{method} is called without anything to work on", "hand it its first argument")


def _capability(call: ast.Call, evidence: Evidence) -> Iterator[Finding]:
    if not call.args:
        yield Finding(call, "this ctx.run names no capability", f"write the capability first: {_CALL}")
        return
    capability = call.args[0]
    if not (isinstance(capability, ast.Constant) and isinstance(capability.value, str)):
        yield Finding(
            capability,
            f"the capability {evidence.text(capability)} is not a literal string",
            'write each capability out: ctx.run("image.generate", ...); where several are possible, choose with if '
            "between calls",
        )
    if len(call.args) < 2 and all(keyword.arg != "payload" for keyword in call.keywords):  # noqa: PLR2004 - the payload comes second
        yield Finding(call, "this ctx.run has no payload", f"write the payload second, {{}} if it is empty: {_CALL}")


def _no_such_method(attribute: ast.Attribute) -> Finding:
    known = {"gather": "parallel", "call": "run", "invoke": "run", "map": "parallel", "print": "log"}
    better = known.get(attribute.attr) or nearest(attribute.attr, _METHODS)
    offered = ", ".join(f"ctx.{method}" for method in _METHODS)
    return Finding(
        attribute,
        f"ctx has no attribute {attribute.attr!r}",
        f"did you mean ctx.{better}?" if better else f"there are {offered}",
    )


def _detached(attribute: ast.Attribute) -> Finding:
    if attribute.attr not in _METHODS:
        return _no_such_method(attribute)
    return Finding(
        attribute,
        f"ctx.{attribute.attr} is taken without being called, so what it will do cannot be seen here",
        f"write the call out where it happens: ctx.{attribute.attr}(...); a helper or a lambda may hold it",
    )


# Who else gets the context


def _rebound(scope: Scope) -> Iterator[Finding]:
    for definition in scope.definitions.get(CONTEXT, ()):
        if definition.kind is not Kind.PARAMETER:
            assert isinstance(definition.node, ast.stmt | ast.expr | ast.excepthandler | ast.pattern)
            yield Finding(
                definition.node, "ctx is bound to something else here", "use another name; ctx is the context"
            )


def _takes_context(function: Scope) -> bool:
    return any(one.kind is Kind.PARAMETER for one in function.definitions.get(CONTEXT, ()))


def _reference(function: Scope, reference: Reference, evidence: Evidence) -> Iterator[Finding]:
    node, name = reference.node, function.name
    if reference.kind != "call":
        yield Finding(
            node,
            f"{name} takes ctx, so nothing but a call of this script can call it",
            f"hand over a function without ctx: lambda item: {name}(ctx, item)",
        )
        return
    assert isinstance(node, ast.Call)
    given = evidence.bounds.arguments.argument(node, function, CONTEXT)
    if given is None:
        yield Finding(node, f"{name} is called without its ctx", f"hand it over openly: {_call_with_context(function)}")
    elif not (isinstance(given, ast.Name) and given.id == CONTEXT):
        yield Finding(
            given,
            f"{name} gets {evidence.text(given)} where it takes ctx",
            f"hand over ctx itself: {_call_with_context(function)}",
        )


def _call_with_context(function: Scope) -> str:
    assert isinstance(function.node, FunctionNode)
    names = [argument.arg for argument in (*function.node.args.posonlyargs, *function.node.args.args)]
    return f"{function.name}({', '.join(names)})"


def _handed_on(call: ast.Call, place: Place, evidence: Evidence) -> Iterator[Finding]:
    """Check the arguments of a call that are ctx: they must become a parameter of that name."""
    assert isinstance(call.func, ast.Name)
    name = call.func.id
    given = [
        argument for argument in (*call.args, *(keyword.value for keyword in call.keywords)) if _is_context(argument)
    ]
    functions = evidence.bounds.callers.functions_of(name, place.scope)
    for argument in given:
        if not functions:
            yield Finding(
                argument,
                f"ctx is handed to {name}, which is no function of this script",
                f"call the capability here instead: {_CALL}",
            )
        for function in functions or ():
            if evidence.bounds.arguments.argument(call, function, CONTEXT) is not argument:
                yield Finding(
                    argument,
                    f"{name} does not take this argument as its parameter ctx",
                    f"call the parameter ctx: 'def {name}(ctx, ...)'",
                )


def _is_context(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == CONTEXT


RULE = Rule(
    code="R02",
    slug="unmediated-effect",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
