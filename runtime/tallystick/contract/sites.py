"""Where the calls of a script stand: the site of each capability call and each race (contract.md, section 2).

A site is the qualified name of the enclosing function, then the chain of enclosing blocks, then the ordinal of
the call in the innermost one: ``orchestrate.gen/for1/if1-else/#2``. It is read off the syntax tree alone.

Decided here, where the contract leaves a choice:

- The context is the name ``ctx``, in the entry point and in every helper. A capability call is a call of
  ``ctx.run``, a race a call of ``ctx.race``; under any other name neither is seen, so the checker must refuse
  to hand ``ctx`` on under another parameter name (rule R02).
- What is counted is what a site's name runs through. A block is numbered when a call stands in it; a call in its
  test, iterable, subject or items stands in the enclosing block, one in a function or lambda defined inside it
  stands in that function. So neither makes the block count, and adding a dag node shifts nothing. A function
  counts when a call stands anywhere in it. The type of a handler belongs to its handler, as the guard of a case
  does to its case; decorators, defaults and annotations belong to the block that holds the definition.
- A dag key is percent-encoded beyond ``A-Z a-z 0-9 _ . - ~``, so that a site holds no blank and no quote.
- A class body is a scope of its own, and module level is ``<module>``: no accepted script has a call in either,
  but every tree has sites.

Standard library only: sites are compared across interpreters.
"""

import ast
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

CONTEXT = "ctx"
MAX_DEPTH = 200
"""Levels of syntax that a script may nest: keeps every recursive pass over it far from the interpreter's limit."""

_LAMBDA = "<lambda>"

# The fields of expressions and simple statements, in the order in which they are evaluated.
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Module: ("body",),
    ast.Expr: ("value",),
    ast.Return: ("value",),
    ast.Assign: ("value", "targets"),
    ast.AugAssign: ("target", "value"),
    ast.AnnAssign: ("value", "target", "annotation"),
    ast.Delete: ("targets",),
    ast.Raise: ("exc", "cause"),
    ast.Assert: ("test", "msg"),
    ast.Await: ("value",),
    ast.Yield: ("value",),
    ast.YieldFrom: ("value",),
    ast.BoolOp: ("values",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Compare: ("left", "comparators"),
    ast.NamedExpr: ("value", "target"),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Starred: ("value",),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.Set: ("elts",),
    ast.ListComp: ("generators", "elt"),
    ast.SetComp: ("generators", "elt"),
    ast.GeneratorExp: ("generators", "elt"),
    ast.DictComp: ("generators", "key", "value"),
    ast.comprehension: ("iter", "target", "ifs"),
    ast.FormattedValue: ("value", "format_spec"),
    ast.keyword: ("value",),
    ast.arg: ("annotation",),
    ast.Name: (),
    ast.Constant: (),
    ast.Pass: (),
    ast.Break: (),
    ast.Continue: (),
    ast.Global: (),
    ast.Nonlocal: (),
    ast.Import: (),
    ast.ImportFrom: (),
}

# The label of each statement with a body and an else, and what it evaluates first.
_BRANCHING: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("if", "test"),
    ast.While: ("while", "test"),
    ast.For: ("for", "iter", "target"),
    ast.AsyncFor: ("for", "iter", "target"),
}


class SiteNode(NamedTuple):
    """A capability call or race in the tree, with its site.

    ``capability`` is the literal name, None for a race or where the name is not a literal; ``interpolated`` says
    that the call stands inside an f-string.
    """

    node: ast.Call
    site: str
    kind: Literal["call", "race"]
    capability: str | None
    interpolated: bool


class NestingError(ValueError):
    """The tree is nested deeper than ``MAX_DEPTH``; ``node`` is where the limit was passed."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(f"the syntax is nested deeper than {MAX_DEPTH} levels")
        self.node = node


def assign_sites(tree: ast.Module) -> dict[ast.Call, str]:
    """Return the site of every capability call and race, in evaluation order within each statement.

    Raises:
        NestingError: the tree is nested deeper than ``MAX_DEPTH``.
    """
    return {found.node: found.site for found in collect_sites(tree)}


def collect_sites(tree: ast.Module) -> list[SiteNode]:
    """Return every capability call and race of ``tree`` with its site, in the order of ``assign_sites``.

    Raises:
        NestingError: the tree is nested deeper than ``MAX_DEPTH``.
    """
    walk = _Walk()
    walk.visit(tree, 0)
    return walk.found


class _Walk:
    """One recursive pass. A block is labelled tentatively and keeps its number only if a call stood in it."""

    def __init__(self) -> None:
        self.found: list[SiteNode] = []
        self.function = ""  # qualified name of the enclosing function
        self.block = "<module>"  # that name and the chain of blocks
        self.ordinals: dict[str, int] = {}  # the last number given in this block, per kind
        self.names: dict[str, int] = {}  # call-bearing functions of this scope, per name
        self.standing = 0  # calls found so far, without those in functions that have ended
        self.interpolated = False
        self.table: dict[type[ast.AST], Any] = {
            **_FIELDS,
            ast.Call: self.visit_call,
            ast.Dict: self.visit_dict,
            ast.JoinedStr: self.visit_fstring,
            ast.Lambda: self.visit_lambda,
            **dict.fromkeys(_BRANCHING, self.visit_branching),
            ast.With: self.visit_with,
            ast.AsyncWith: self.visit_with,
            ast.Try: self.visit_try,
            ast.TryStar: self.visit_try,
            ast.Match: self.visit_match,
            ast.FunctionDef: self.visit_function,
            ast.AsyncFunctionDef: self.visit_function,
            ast.ClassDef: self.visit_class,
            ast.arguments: self.visit_arguments,
        }

    def visit(self, node: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NestingError(node)
        depth += 1
        plan = self.table.get(node.__class__)
        if plan.__class__ is tuple:
            visit = self.visit
            for name in plan:
                child = getattr(node, name)
                if child.__class__ is list:
                    for item in child:
                        visit(item, depth)
                elif child is not None:
                    visit(child, depth)
        elif plan is not None:
            plan(node, depth)
        else:  # a node of a later Python: the checker refuses it
            self.visit_all(ast.iter_child_nodes(node), depth)

    def visit_all(self, nodes: Iterable[ast.AST | None], depth: int) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node, depth)

    def visit_call(self, node: ast.Call, depth: int) -> None:
        func = node.func
        self.visit(func, depth)
        for argument in node.args:
            self.visit(argument, depth)
        for keyword in node.keywords:
            self.visit(keyword.value, depth)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == CONTEXT:
            if func.attr == "run":
                self.found.append(SiteNode(node, self.number("#"), "call", _capability(node), self.interpolated))
            elif func.attr == "race":
                self.found.append(SiteNode(node, self.number("race"), "race", None, self.interpolated))

    def number(self, kind: str) -> str:
        self.standing += 1
        ordinal = self.ordinals[kind] = self.ordinals.get(kind, 0) + 1
        return f"{self.block}/{kind}{ordinal}"

    def visit_dict(self, node: ast.Dict, depth: int) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            name = None
            if isinstance(key, ast.Constant):
                name = key.value if isinstance(key.value, str) else None
            elif key is not None:
                self.visit(key, depth)
            if isinstance(value, ast.Lambda):
                self.visit_lambda(value, depth + 1, name)
            elif isinstance(value, ast.Tuple):
                for item in value.elts:
                    if isinstance(item, ast.Lambda):
                        self.visit_lambda(item, depth + 2, name)
                    else:
                        self.visit(item, depth + 1)
            else:
                self.visit(value, depth)

    def visit_fstring(self, node: ast.JoinedStr, depth: int) -> None:
        outer, self.interpolated = self.interpolated, True
        self.visit_all(node.values, depth)
        self.interpolated = outer

    # Blocks

    def in_block(self, label: str, body: Iterable[ast.AST | None], depth: int) -> bool:
        """Visit ``body`` as the block ``label``; return whether a call stands in it."""
        saved, before = (self.block, self.ordinals), self.standing
        self.block, self.ordinals = f"{self.block}/{label}", {}
        for node in body:  # not visit_all: a level of nesting should cost few frames
            if node is not None:
                self.visit(node, depth)
        self.block, self.ordinals = saved
        return self.standing > before

    def in_alternatives(self, label: str, bodies: Iterable[tuple[ast.expr | None, list[ast.stmt]]], depth: int) -> bool:
        """Visit handlers or cases, counting those that bear a call; return whether one does."""
        number = 1
        for head, body in bodies:
            number += self.in_block(f"{label}{number}", (head, *body), depth)
        return number > 1

    def visit_branching(self, node: ast.If | ast.While | ast.For | ast.AsyncFor, depth: int) -> None:
        kind, *headers = _BRANCHING[node.__class__]
        for header in headers:
            self.visit(getattr(node, header), depth)
        number = self.ordinals.get(kind, 0) + 1
        bears = self.in_block(f"{kind}{number}", node.body, depth)
        if self.in_block(f"{kind}{number}-else", node.orelse, depth) or bears:
            self.ordinals[kind] = number

    def visit_with(self, node: ast.With | ast.AsyncWith, depth: int) -> None:
        for item in node.items:
            self.visit_all((item.context_expr, item.optional_vars), depth)
        number = self.ordinals.get("with", 0) + 1
        if self.in_block(f"with{number}", node.body, depth):
            self.ordinals["with"] = number

    def visit_try(self, node: ast.Try | ast.TryStar, depth: int) -> None:
        number = self.ordinals.get("try", 0) + 1
        label = f"try{number}"
        before = self.standing
        self.in_block(label, node.body, depth)
        self.in_alternatives(f"{label}-except", ((handler.type, handler.body) for handler in node.handlers), depth + 1)
        self.in_block(f"{label}-else", node.orelse, depth)
        self.in_block(f"{label}-finally", node.finalbody, depth)
        if self.standing > before:
            self.ordinals["try"] = number

    def visit_match(self, node: ast.Match, depth: int) -> None:
        self.visit(node.subject, depth)
        number = self.ordinals.get("match", 0) + 1
        cases = ((case.guard, case.body) for case in node.cases)
        if self.in_alternatives(f"match{number}-case", cases, depth + 1):
            self.ordinals["match"] = number

    # Functions

    def in_scope(self, name: str, body: Iterable[ast.AST], depth: int) -> None:
        number = self.names.get(name, 0) + 1
        label = name if number == 1 else f"{name}~{number}"
        if name == _LAMBDA:
            label = f"<lambda{number}>"
        saved = self.function, self.block, self.ordinals, self.names, self.standing
        before = len(self.found)
        self.function = self.block = f"{self.function}.{label}" if self.function else label
        self.ordinals, self.names = {}, {}
        self.visit_all(body, depth)
        self.function, self.block, self.ordinals, self.names, self.standing = saved
        if len(self.found) > before:
            self.names[name] = number

    def visit_lambda(self, node: ast.Lambda, depth: int, key: str | None = None) -> None:
        self.visit(node.args, depth)
        name = _LAMBDA if key is None else f"<lambda:{quote(key, safe='', errors='surrogatepass')}>"
        self.in_scope(name, (node.body,), depth)

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> None:
        self.visit_all((*node.decorator_list, node.args, node.returns), depth)
        self.in_scope(node.name, node.body, depth)

    def visit_class(self, node: ast.ClassDef, depth: int) -> None:
        self.visit_all((*node.decorator_list, *node.bases, *node.keywords), depth)
        self.in_scope(node.name, node.body, depth)

    def visit_arguments(self, node: ast.arguments, depth: int) -> None:
        self.visit_all((*node.defaults, *node.kw_defaults), depth)
        self.visit_all((*node.posonlyargs, *node.args, node.vararg, *node.kwonlyargs, node.kwarg), depth)


def _capability(node: ast.Call) -> str | None:
    """Return the literal capability name of a call: its first argument, or the keyword of that name."""
    named = (keyword.value for keyword in node.keywords if keyword.arg == "capability")
    name = node.args[0] if node.args else next(named, None)
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
