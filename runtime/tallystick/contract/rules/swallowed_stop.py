"""R07: code that swallows the host's stops.

What it refuses:
    A bare ``except``, ``except BaseException`` and its like; capability calls, awaits and jumps (``return``,
    ``break``, ``continue``) inside ``finally``.

Why:
    A divergence, a denial or a limit ends the launch, and nothing may be started or hidden on the way out. What a
    script may survive is a ``CapabilityError``.

Refused:
    async def orchestrate(ctx, args):
        try:
            image = await ctx.run("image.generate", {"prompt": args["prompt"]})
        except:
            return {"image": None}
        return {"image": image["images"][0]}

Write instead:
    async def orchestrate(ctx, args):
        try:
            image = await ctx.run("image.generate", {"prompt": args["prompt"]})
        except CapabilityError as e:
            ctx.log(f"no image: {e.kind}")
            return {"image": None}
        return {"image": image["images"][0]}
"""

import ast
from collections.abc import Iterator

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Kind, Place

_STOPS = frozenset({"BaseException", "BaseExceptionGroup", "GeneratorExit", "KeyboardInterrupt", "SystemExit"})
_HINT = "catch what the script can handle: except CapabilityError as e:, or except Exception:"
_FINALLY_HINT = "do it after the try statement; 'finally' may only tidy up values"


def _check(node: ast.Try, place: Place, evidence: Evidence) -> Iterator[Finding]:
    for handler in node.handlers:
        if handler.type is None:
            yield Finding(_header(handler), "a bare 'except' also catches the stops of the host", _HINT)
            continue
        for caught in _caught(handler.type, place, 0):
            if isinstance(caught, ast.Name) and caught.id in _STOPS and evidence.is_builtin(caught.id, place):
                yield Finding(handler.type, f"'except {caught.id}' also catches the stops of the host", _HINT)
    for statement in node.finalbody:
        yield from _inside_finally(statement, in_loop=False)


def _header(handler: ast.ExceptHandler) -> ast.stmt:
    word = len("except")
    return ast.Pass(
        lineno=handler.lineno,
        col_offset=handler.col_offset,
        end_lineno=handler.lineno,
        end_col_offset=handler.col_offset + word,
    )


def _caught(node: ast.expr, place: Place, depth: int) -> Iterator[ast.expr]:
    """Yield the exceptions that a handler's type names, also by way of a constant."""
    match node:
        case ast.Tuple(elts=elts):
            for item in elts:
                yield from _caught(item, place, depth)
        case ast.Name(id=name):
            scope = place.scope.resolve(name)
            definitions = scope.definitions[name] if scope is not None and depth == 0 else []
            assigned = [one.value for one in definitions if one.kind is Kind.ASSIGN and one.value is not None]
            if assigned:
                for value in assigned:
                    yield from _caught(value, place, depth + 1)
            else:
                yield node


def _inside_finally(node: ast.AST, *, in_loop: bool) -> Iterator[Finding]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return
        case ast.Return():
            yield Finding(node, "'return' in a 'finally' swallows the stop that led there", _FINALLY_HINT)
        case ast.Break() | ast.Continue() if not in_loop:
            word = "break" if isinstance(node, ast.Break) else "continue"
            yield Finding(node, f"'{word}' in a 'finally' swallows the stop that led there", _FINALLY_HINT)
        case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield Finding(node, "an await in a 'finally' would start work after a stop", _FINALLY_HINT)
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="ctx"), attr=method)) if method != "log":
            yield Finding(node, f"ctx.{method} in a 'finally' would start work after a stop", _FINALLY_HINT)
    inner_loop = in_loop or isinstance(node, ast.For | ast.While | ast.AsyncFor)
    for child in ast.iter_child_nodes(node):
        yield from _inside_finally(child, in_loop=inner_loop)


RULE = Rule(
    code="R07",
    slug="swallowed-stop",
    since="0.1.0",
    nodes=(ast.Try,),
    check=_check,
)
