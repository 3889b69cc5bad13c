"""What becomes of coroutines that are not awaited where they are made: a part of R02."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from tallystick.contract.rules.rule import Evidence, Finding
from tallystick.contract.scopes import Place, Scope
from tallystick.contract.survey import CHANGING_METHODS, FANOUTS, Survey

# Builtins that hand their items on as they are.
_PASSING_ON = frozenset({"list", "tuple", "reversed", "enumerate", "zip", "iter", "dict", "next", "filter", "map"})

_KEEPING = (ast.Call, ast.NamedExpr, ast.Yield, ast.Await)


def misused_coroutines(evidence: Evidence) -> Iterator[Finding]:
    """Find coroutines that are dropped, or used as if they were their result."""
    giving = _coroutine_functions(evidence)
    survey = evidence.survey
    for call, place in survey.context_calls:
        if call not in survey.awaited and place.fanout is None and call.func.attr != "log":
            yield from _judge(call, place, evidence)
    for name in {function.name for function in giving} | _lambdas(survey):
        for call, place in survey.calls.get(name, ()):
            if call in survey.awaited or place.fanout is not None:
                continue
            functions = evidence.bounds.callers.functions_of(name, place.scope)
            if functions and all(function in giving for function in functions):
                yield from _judge(call, place, evidence)


def _lambdas(survey: Survey) -> set[str]:
    """Return the names that a lambda is assigned to."""
    return {
        name
        for scope in (survey.module, *survey.functions())
        for name, definitions in scope.definitions.items()
        if isinstance(definitions[0].value, ast.Lambda)
    }


def _coroutine_functions(evidence: Evidence) -> set[Scope]:
    """Return the functions whose call gives something to await: async ones, and those that return such a call."""
    functions = evidence.survey.functions()
    found = {one for one in functions if isinstance(one.node, ast.AsyncFunctionDef) and not one.yields}
    plain = [one for one in functions if not isinstance(one.node, ast.AsyncFunctionDef) and one.returns]
    grown = True
    while grown:
        more = {
            one
            for one in plain
            if one not in found
            and all(
                isinstance(value, ast.Call) and _gives(value, place, found, evidence) for value, place in one.returns
            )
        }
        grown = bool(more)
        found |= more
    return found


def _gives(call: ast.Call, place: Place, found: set[Scope], evidence: Evidence) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="ctx"), attr=method):
            return method == "run" or method in FANOUTS
        case ast.Name(id=name):
            functions = evidence.bounds.callers.functions_of(name, place.scope)
            return bool(functions) and all(function in found for function in functions or ())
    return False


def _judge(call: ast.Call, place: Place, evidence: Evidence) -> Iterator[Finding]:
    text = f"{evidence.text(call.func)}(...)"
    root = place.statement or _loop_tested_at(place)
    if root is None:
        return  # the body of a lambda: its caller gets the coroutine
    chain = _chain(root, call)
    for inner, outer in pairwise(chain):
        if not _carries(outer, inner, place, evidence):
            yield Finding(
                call,
                f"the coroutine {text} is used as if it were its result",
                f"await it: (await {evidence.text(call)})",
            )
            return
    if isinstance(root, ast.Expr) and (root.value is call or not isinstance(root.value, _KEEPING)):
        yield Finding(call, f"the coroutine {text} is dropped: it never runs", f"await it: await {evidence.text(call)}")
        return
    name = _only_name(root)
    if name is not None and _is_unused(name, place, evidence):
        yield Finding(
            call,
            f"the coroutine {text} is kept in {name!r}, which is never used: it never runs",
            f"await it: {name} = await {evidence.text(call)}; or hand {name} to ctx.parallel",
        )


def _loop_tested_at(place: Place) -> ast.stmt | None:
    return place.block.owner.statement if place.block.role == "test" and place.block.owner is not None else None


def _chain(root: ast.AST, call: ast.Call) -> list[ast.AST]:
    """Return the nodes from a call up to the statement it stands in."""
    above: dict[ast.AST, ast.AST] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if node is root and isinstance(root, ast.stmt) and isinstance(child, ast.stmt | ast.excepthandler):
                continue
            above[child] = node
            waiting.append(child)
    chain: list[ast.AST] = [call]
    while chain[-1] in above:
        chain.append(above[chain[-1]])
    return chain


def _carries(outer: ast.AST, inner: ast.AST, place: Place, evidence: Evidence) -> bool:
    """Whether ``outer`` hands the coroutine in ``inner`` on to where it can still be awaited."""
    match outer:
        case ast.IfExp(test=test):
            return inner is not test
        case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.SetComp(elt=part) | ast.DictComp(value=part):
            return inner is part or isinstance(inner, ast.comprehension)
        case ast.Dict(values=values):
            return inner in values
        case ast.Call(func=func) if inner is func:
            return False
        case ast.Call(func=ast.Name(id=name)):
            return name in _PASSING_ON or not evidence.is_builtin(name, place)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="ctx"), attr=method)):
            return method in FANOUTS
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in CHANGING_METHODS or method == "get"
        case ast.BinOp():
            return not isinstance(inner, ast.Call)
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            return inner is value and not isinstance(inner, ast.Call)
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            return not isinstance(inner, ast.Call)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Return() | ast.Expr():
            return True
        case ast.List() | ast.Tuple() | ast.Set() | ast.Starred() | ast.BoolOp() | ast.NamedExpr() | ast.keyword():
            return True
        case ast.Yield() | ast.Await() | ast.Lambda():
            return True
    return False


def _only_name(root: ast.AST) -> str | None:
    match root:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name if method in CHANGING_METHODS else None
    return None


def _is_unused(name: str, place: Place, evidence: Evidence) -> bool:
    scope = place.scope.resolve(name)
    every = (*evidence.survey.uses.get(name, ()), *evidence.survey.calls.get(name, ()))
    return not any(used_at.scope.resolve(name) is scope for _, used_at in every)
