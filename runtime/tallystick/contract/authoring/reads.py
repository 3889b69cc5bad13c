"""What a frozen call reads: the names in its expression, and where the script says what they hold.

A call expression that stays as it is diverges all the same when a rewrite changes a constant, a default or a helper
that it reads (contract.md, section 9); a model can only leave alone what it is shown.
"""

import ast
from collections.abc import Iterator

import msgspec

from tallystick.contract.script import Script
from tallystick.contract.source import SiteFact

#: Places that are named for one call.
MOST = 24
_LONGEST = 160
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Read(msgspec.Struct, frozen=True):
    """A place that says what a name holds: its line, and the first line of its text."""

    name: str
    line: int
    text: str


def reads_of(script: Script, fact: SiteFact) -> tuple[Read, ...]:
    """Return the places that decide what a call sends, in the order of their lines, at most ``MOST``.

    Followed are the names in the call's arguments, and the names which those places read in turn: module constants
    and helpers, and within the functions round the call their defaults, assignments and loops. It names, it does not
    prove: a name that is bound in several places has all of them.
    """
    call = next(found.node for found in script.nodes if found.site == fact.site)
    around = [node for node in ast.walk(script.tree) if isinstance(node, _FUNCTIONS) and _holds(node, call)]
    bindings: dict[str, list[ast.AST]] = {}
    for scope in (script.tree, *around):
        for name, node in _bindings(scope):
            bindings.setdefault(name, []).append(node)
    lines = script.source.splitlines()
    found: dict[int, Read] = {}
    wanted, seen = list(_names(call)), {"ctx", "args"}
    while wanted and len(found) < MOST:
        name = wanted.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for node in bindings.get(name, ()):
            line = getattr(node, "lineno", 0)
            if not _holds(node, call):
                wanted += _names(node)
            if 0 < line <= len(lines) and line not in found:
                found[line] = Read(name, line, lines[line - 1].strip()[:_LONGEST])
    return tuple(found[line] for line in sorted(found))[:MOST]


def _holds(node: ast.AST, call: ast.Call) -> bool:
    """Whether a node stands round the call, which is then no place that says what a name holds to it."""
    return any(inner is call for inner in ast.walk(node)) and node is not call


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that a scope binds, with the statement or default that says what it holds."""
    for node in ast.walk(scope) if not isinstance(scope, ast.Module) else scope.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if node is not scope:
                    yield name, node
                else:
                    yield from _defaults(node.args)
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from ((name, node) for name in _stored(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target):
                yield from ((name, node) for name in _stored(target))
            case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
                yield from ((name, source) for name in _stored(target))


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.AST]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(one, value) for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    yield from ((one.arg, value) for one, value in pairs)


def _stored(target: ast.AST) -> Iterator[str]:
    for inner in ast.walk(target):
        if isinstance(inner, ast.Name):
            yield inner.id
