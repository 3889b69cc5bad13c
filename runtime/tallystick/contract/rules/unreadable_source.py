"""R00: a source that is no module of definitions and constants.

What it refuses:
    Text that does not parse or compile, is too large, nested too deep, cut off or fenced in Markdown; statements at
    module level other than definitions and plain constants; decorators; syntax outside the accepted subset, such as
    classes.

Why:
    What runs while a script is loaded runs before anything watches over it, and syntax that nobody has decided about
    may hide a call.

Refused:
    LIMITS = {}
    for name in ("draft", "final"):
        LIMITS[name] = 3

    async def orchestrate(ctx, args):
        return await ctx.run("text.generate", {"prompt": args["prompt"], "max_tokens": LIMITS["draft"]})

Write instead:
    LIMITS = {name: 3 for name in ("draft", "final")}

    async def orchestrate(ctx, args):
        return await ctx.run("text.generate", {"prompt": args["prompt"], "max_tokens": LIMITS["draft"]})
"""

import ast
from collections.abc import Iterator

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import COMPREHENSIONS, Place
from tallystick.contract.survey_walk import parameters_of
from tallystick.contract.syntax import REFUSED

_PURE_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "chr", "dict", "divmod", "enumerate", "float", "format", "frozenset", "int"),
        *("len", "list", "map", "filter", "max", "min", "ord", "pow", "range", "repr", "reversed", "round", "set"),
        *("sorted", "str", "sum", "tuple", "zip"),
    }
)


def _module(module: ast.Module, place: Place, evidence: Evidence) -> Iterator[Finding]:
    for node in evidence.survey.unknown:
        kind = type(node).__name__
        what, instead = REFUSED.get(kind, (f"the syntax {kind!r}", "write it with plainer syntax"))
        yield Finding(_located(node, module), f"{what} is not part of what a script may use", instead)
    for statement in module.body:
        yield from _top_level(statement, place, evidence)


def _top_level(statement: ast.stmt, place: Place, evidence: Evidence) -> Iterator[Finding]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Import() | ast.ImportFrom() | ast.Pass():
            return  # imports are R10's
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Return() | ast.Break() | ast.Continue() | ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            return  # these do not compile
        case ast.Assign(targets=targets, value=value) if all(map(_is_name, targets)):
            yield from _constant(value, place, evidence)
        case ast.AnnAssign(target=ast.Name(), value=value):
            if value is not None:
                yield from _constant(value, place, evidence)
        case _ if type(statement).__name__ not in REFUSED:
            yield Finding(
                statement,
                "this statement would run while the script is loaded",
                "keep only definitions and constants at module level, and do the work in orchestrate",
            )


def _constant(value: ast.expr, place: Place, evidence: Evidence) -> Iterator[Finding]:
    """Find work that a constant does while it is made: calls of anything but pure builtins and methods."""
    for node in _evaluated(value):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in _PURE_BUILTINS and evidence.is_builtin(name, place):
                pass
            case ast.Call(func=ast.Attribute()):
                pass
            case ast.Call():
                yield Finding(
                    node,
                    f"{evidence.text(node.func)}(...) would run while the script is loaded",
                    "write the constant out, or compute it inside orchestrate",
                )


def _evaluated(value: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of a module-level value that are evaluated now: not what stands in a lambda."""
    waiting: list[ast.AST] = [value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.args.defaults if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef, evidence: Evidence) -> Iterator[Finding]:
    for decorator in node.decorator_list:
        yield Finding(
            decorator,
            f"the decorator @{evidence.text(decorator)} hides what {node.name} does",
            f"call what you need inside {node.name}",
        )
    seen: set[str] = set()
    for argument in parameters_of(node.args):
        if argument.arg in seen:
            yield Finding(argument, f"{node.name} has two parameters {argument.arg!r}", "rename one of them")
        seen.add(argument.arg)


# What parses and does not compile


def _awaits(node: ast.stmt | ast.expr, place: Place) -> Iterator[Finding]:
    if not isinstance(place.function.node, ast.AsyncFunctionDef):
        word = "await" if isinstance(node, ast.Await) else "async"
        yield _outside(node, word, "an 'async def' function", _how_to_await(place))


def _how_to_await(place: Place) -> str:
    match place.function.node:
        case ast.FunctionDef(name=name):
            return f"write 'async def {name}(...)', and await its calls"
        case ast.Lambda():
            return "a lambda cannot await: return the coroutine without await, or write an async function"
    return "do it inside orchestrate"


def _returns(node: ast.Return | ast.Yield | ast.YieldFrom, place: Place) -> Iterator[Finding]:
    function = place.function
    if function.parent is None:
        word = "return" if isinstance(node, ast.Return) else "yield"
        yield _outside(node, word, "a function", "do it inside orchestrate")
    elif isinstance(function.node, ast.AsyncFunctionDef):
        if isinstance(node, ast.YieldFrom):
            yield Finding(node, "'yield from' cannot stand in an async function", "write a loop with yield")
        elif isinstance(node, ast.Return) and node.value is not None and function.yields:
            yield Finding(
                node, "an async function that yields cannot return a value", "return a list instead of yielding"
            )


def _jumps(node: ast.Break | ast.Continue, place: Place) -> Iterator[Finding]:
    if all(isinstance(loop, COMPREHENSIONS) for loop in place.loops()):
        word = "break" if isinstance(node, ast.Break) else "continue"
        yield _outside(node, word, "a loop", "return instead, or put it inside the loop")


def _outside(node: ast.stmt | ast.expr, word: str, where: str, hint: str) -> Finding:
    return Finding(node, f"'{word}' outside {where} does not compile", hint)


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _located(node: ast.AST, module: ast.Module) -> ast.stmt | ast.expr:
    """Return the node, or what stands for it where it has no place of its own."""
    if isinstance(node, ast.stmt | ast.expr):
        return node
    return ast.copy_location(ast.Pass(), node) if hasattr(node, "lineno") else module.body[0]


def _check(node: ast.AST, place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node:
        case ast.Module():
            return _module(node, place, evidence)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _definition(node, evidence)
        case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            return _awaits(node, place)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if any(generator.is_async for generator in node.generators):
                return _awaits(node, place)
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            return _returns(node, place)
        case ast.Break() | ast.Continue():
            return _jumps(node, place)
    return iter(())


RULE = Rule(
    code="R00",
    slug="unreadable-source",
    since="0.1.0",
    nodes=(
        ast.Module,
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith, *COMPREHENSIONS),
        *(ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue),
    ),
    check=_check,
)
