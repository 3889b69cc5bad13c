"""R04: an input that no revision can see.

What it refuses:
    Clocks and randomness, by whatever module; the builtins ``id``, ``hash``, ``input`` and ``open``, unless the script
    binds that name itself; globals that a function assigns or changes; defaults of parameters that call something, or
    that the function changes.

Why:
    A replay must meet the same payloads as the launch before it. What comes from the clock, from chance or from the
    process does not come again; what one branch leaves in a global reaches the next by chance of timing.

Refused:
    SEEN = []

    async def orchestrate(ctx, args):
        SEEN.append(args["name"])
        return await ctx.run("text.generate", {"prompt": f"Greet {SEEN}, seed {hash(args['name'])}"})

Write instead:
    async def orchestrate(ctx, args):
        seen = [args["name"]]
        return await ctx.run("text.generate", {"prompt": f"Greet {seen}, seed {args['seed']}"})
"""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.arguments import defaults_of
from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Definition, FunctionNode, Kind, Place, Scope

_BUILTINS: dict[str, str] = {
    "id": "compare values, or give things names of their own",
    "hash": "use the value itself, or pass a seed in as an arg",
    "input": "pass what is needed in as args",
    "open": "pass what is needed in as args; files are artifacts of capabilities",
}
_MODULES: dict[str, str] = {
    **dict.fromkeys(("random", "secrets", "uuid", "numpy"), "chance"),
    **dict.fromkeys(("time", "datetime", "calendar", "zoneinfo"), "the clock"),
    **dict.fromkeys(("os", "sys", "platform", "socket", "getpass", "pathlib", "tempfile"), "the machine"),
}
_MUTABLE_CALLS = frozenset({"list", "dict", "set"})


def _check(node: ast.AST, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node:
        case ast.Module():
            yield from _hidden_builtins(evidence)
            yield from _modules(evidence)
            yield from _globals(evidence)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            yield from _defaults(node, evidence)


def _hidden_builtins(evidence: Evidence) -> Iterator[Finding]:
    survey = evidence.survey
    for name, instead in _BUILTINS.items():
        for node, place in (*survey.uses.get(name, ()), *survey.calls.get(name, ())):
            if evidence.is_builtin(name, place):
                shown = node.func if isinstance(node, ast.Call) else node
                yield Finding(shown, f"{name} gives something else in each launch, or asks the machine", instead)


def _modules(evidence: Evidence) -> Iterator[Finding]:
    """Find uses of what was imported from a module of clocks, chance or the machine; the import itself is R10's."""
    survey = evidence.survey
    for imported, importing_at in survey.found[ast.Import] + survey.found[ast.ImportFrom]:
        for alias in imported.names:
            source = (alias.name if isinstance(imported, ast.Import) else imported.module or "").partition(".")[0]
            if source not in _MODULES:
                continue
            name = alias.asname or alias.name.partition(".")[0]
            for node, place in (*survey.uses.get(name, ()), *survey.calls.get(name, ())):
                if place.scope.resolve(name) is importing_at.scope.resolve(name):
                    yield Finding(
                        node.func if isinstance(node, ast.Call) else node,
                        f"{name} takes its value from {_MODULES[source]}, so a replay would meet another one",
                        "pass what is needed in as args; for another sample of one payload use take=",
                    )


def _globals(evidence: Evidence) -> Iterator[Finding]:
    """Find what functions assign to, or change in, the variables of the module."""
    module, aliases = evidence.survey.module, evidence.bounds.aliases
    for name in module.definitions:
        for one in aliases.elsewhere(module, name):
            if one.place.function is not module and _is_written(one):
                yield _changed_global(one, name)
    for one in evidence.survey.wild_changes:
        root = _root(one.node)
        if root is not None and one.place.function is not module and one.place.scope.resolve(root.id) is module:
            yield _changed_global(one, root.id)


def _is_written(definition: Definition) -> bool:
    return definition.kind in {Kind.ASSIGN, Kind.WALRUS, Kind.AUGMENT, Kind.CHANGE, Kind.TARGET, Kind.REST}


def _root(node: ast.AST) -> ast.Name | None:
    """Return the name at the root of what is changed: ``TABLE`` in ``TABLE["a"].append(1)``."""
    target: ast.AST = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.AugAssign):
        target = target.target
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target if isinstance(target, ast.Name) else None


def _changed_global(definition: Definition, name: str) -> Finding:
    node = definition.node
    assert isinstance(node, ast.stmt | ast.expr)
    return Finding(
        node,
        f"this changes {name}, which the whole script shares",
        f"make a copy inside the function, {name.lower()} = list({name}) or dict({name}), and pass or return it",
    )


def _defaults(node: FunctionNode, evidence: Evidence) -> Iterator[Finding]:
    scope = evidence.survey.scopes[node]
    for argument, default in defaults_of(node.args):
        if _has_effect(default):
            yield Finding(
                default,
                f"the default of {argument.arg} is computed once, when the function is defined",
                f"write {argument.arg}=None, and 'if {argument.arg} is None: {argument.arg} = ...' inside",
            )
        elif _is_mutable(default) and scope.changes.get(argument.arg):
            yield _kept_default(argument, default, scope)


def _has_effect(default: ast.expr) -> bool:
    effects = (ast.Call, ast.Await, ast.NamedExpr, ast.Yield)
    return not _is_empty_container(default) and any(isinstance(part, effects) for part in ast.walk(default))


def _is_mutable(default: ast.expr) -> bool:
    mutable = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    return isinstance(default, mutable) or _is_empty_container(default)


def _is_empty_container(default: ast.expr) -> bool:
    match default:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in _MUTABLE_CALLS
    return False


def _kept_default(argument: ast.arg, default: ast.expr, scope: Scope) -> Finding:
    return Finding(
        default,
        f"{scope.name} changes the default of {argument.arg}, which all its calls share",
        f"write {argument.arg}=None, and 'if {argument.arg} is None: {argument.arg} = []' inside",
    )


RULE = Rule(
    code="R04",
    slug="hidden-input",
    since="0.1.0",
    nodes=(ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    check=_check,
    sees=(ast.Import, ast.ImportFrom),
)
