"""R01: a missing, duplicated or wrongly shaped entry point.

What it refuses:
    A module without exactly one ``async def orchestrate(ctx, args)`` at its top level: another name, a plain ``def``,
    other parameters, defaults, a generator, or a second binding of the name.

Why:
    A launch starts that function and nothing else, and every site's name begins with it.

Refused:
    def orchestrate(ctx, params):
        return ctx.run("text.generate", {"prompt": params["prompt"]})

Write instead:
    async def orchestrate(ctx, args):
        return await ctx.run("text.generate", {"prompt": args["prompt"]})
"""

import ast
from collections.abc import Iterator

from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Place
from tallystick.contract.survey import ENTRY

_SIGNATURE = f"async def {ENTRY}(ctx, args):"
_PARAMETERS = ["ctx", "args"]


def _check(module: ast.Module, place: Place, evidence: Evidence) -> Iterator[Finding]:
    definitions = evidence.survey.module.definitions.get(ENTRY, [])
    if not definitions:
        yield _missing(module)
        return
    first, *others = definitions
    for other in others:
        assert isinstance(other.node, ast.stmt | ast.expr)
        yield Finding(other.node, f"{ENTRY} is defined a second time", f"keep one '{_SIGNATURE}' and remove the rest")
    node = first.node
    assert isinstance(node, ast.stmt | ast.expr)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield Finding(node, f"{ENTRY} is not a function", f"write '{_SIGNATURE}' and put the work inside")
    elif first.place.block is not place.block:
        yield Finding(node, f"{ENTRY} does not stand at the top level of the module", f"unindent '{_SIGNATURE}'")
    else:
        yield from _shape(node, evidence)


def _missing(module: ast.Module) -> Finding:
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    takes_context = [node for node in functions if [argument.arg for argument in node.args.args][:1] == ["ctx"]]
    if takes_context:
        node = takes_context[-1]
        return Finding(node, f"the module has no {ENTRY}", f"if {node.name} is the entry point, call it '{_SIGNATURE}'")
    where = module.body[0] if module.body else ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
    return Finding(where, f"the module has no {ENTRY}", f"write '{_SIGNATURE}' and return the result from it")


def _shape(node: ast.FunctionDef | ast.AsyncFunctionDef, evidence: Evidence) -> Iterator[Finding]:
    if isinstance(node, ast.FunctionDef):
        yield Finding(node, f"{ENTRY} is a plain function, so it cannot await anything", f"write '{_SIGNATURE}'")
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    extra = arguments.vararg or arguments.kwarg or next(iter(arguments.kwonlyargs), None)
    if names != _PARAMETERS or extra is not None:
        yield Finding(
            extra or node,
            f"{ENTRY} must take exactly the parameters ctx and args",
            f"write '{_SIGNATURE}' and read everything else from args or from module constants",
        )
    elif arguments.defaults:
        yield Finding(arguments.defaults[0], f"the parameters of {ENTRY} have no defaults", f"write '{_SIGNATURE}'")
    if evidence.survey.scopes[node].yields:
        found, _ = evidence.survey.scopes[node].yields[0]
        yield Finding(found, f"{ENTRY} yields, so it has no result", "collect the values in a list and return it")


RULE = Rule(
    code="R01",
    slug="entry-point",
    since="0.1.0",
    nodes=(ast.Module,),
    check=_check,
)
