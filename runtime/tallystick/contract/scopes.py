"""Names, blocks and places of a script: what rules and bounds look things up in (contract.md, section 4).

A ``Place`` says where an expression is evaluated: the scope whose names it sees, the statement it belongs to, the
comprehension around it. Blocks know the statement that owns them, so every place leads up to its function: loops
around a call, branches before a use and the function itself are read off that chain, without parent links in the tree.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Part(Enum):
    """A step from a value to something inside it, where no constant key names it."""

    __hash__ = object.__hash__  # members are single: their identity will do, at a tenth of the cost

    EACH = "each"
    """What iterating yields: items of a list, keys of a dict."""
    ANY = "any"
    """What subscripting by an unknown key yields: items of a list, values of a dict."""


Step: TypeAlias = Part | int | str
Steps: TypeAlias = tuple[Step, ...]

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Kind(Enum):
    """How a name gets its value, or how the object it names changes."""

    ASSIGN = "assign"  # value at path, from an assignment
    WALRUS = "walrus"  # as assign, inside an expression that may be skipped
    REST = "rest"  # the starred target of an unpacking
    AUGMENT = "augment"  # x += value
    TARGET = "target"  # an item of value, from a for or a comprehension
    CHANGE = "change"  # a method call, item assignment or item deletion that may change the object's length
    PARAMETER = "parameter"
    FUNCTION = "function"
    OTHER = "other"  # with, except, import, a pattern's capture: nothing is known of the value


class Scope:
    """A module, function, lambda or comprehension, with the names it binds.

    Attributes:
        node: the module, function, lambda or comprehension itself.
        parent: the scope around it, None for the module.
        defined_at: where its definition stands, None for the module.
        definitions: every definition of every name that is this scope's own.
        changes: what changes the object that a name of this scope holds, wherever it is written.
        declared: names that a ``global`` or ``nonlocal`` statement gives to another scope.
        returns: what it may return, and from where.
        yields: what it yields, if it is a generator.
    """

    __slots__ = ("changes", "declared", "defined_at", "definitions", "node", "parent", "returns", "yields")

    def __init__(self, node: ast.AST, parent: "Scope | None", defined_at: "Place | None") -> None:
        self.node = node
        self.parent = parent
        self.defined_at = defined_at
        self.definitions: dict[str, list[Definition]] = {}
        self.changes: dict[str, list[Definition]] = {}
        self.declared: dict[str, bool] = {}  # True: global
        self.returns: list[tuple[ast.expr, Place]] = []
        self.yields: list[tuple[ast.Yield | ast.YieldFrom, Place]] = []

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return getattr(self.node, "name", "<lambda>")

    def resolve(self, name: str) -> "Scope | None":
        """Return the scope whose variable ``name`` is when it is used here; None for a builtin or unknown name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.definitions:
                return scope
            scope = scope.module() if scope.declared.get(name) else scope.parent
        return None

    def module(self) -> "Scope":
        """Return the scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def function(self) -> "Scope":
        """Return the innermost function or lambda around this scope, itself included; else the module."""
        scope = self
        while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
            scope = scope.parent
        return scope


class Block:
    """A list of statements, and where it belongs.

    ``role`` is the field of the owner that it is (``body``, ``orelse``, ``handler``, ``case``, ``finalbody``), or
    ``test`` for the condition of a ``while``, which is evaluated once a round. ``owner`` is None at the top of a
    function and of the module.
    """

    __slots__ = ("owner", "role", "scope", "statements")

    def __init__(
        self,
        statements: list[ast.stmt],
        scope: Scope,
        owner: "Place | None",
        role: str = "body",
    ) -> None:
        self.statements = statements
        self.scope = scope
        self.owner = owner
        self.role = role


@dataclass(slots=True, eq=False)
class Place:
    """Where an expression is evaluated.

    Attributes:
        scope: whose names it sees.
        block, index: the statement it belongs to; -1 is the entry of the block, where parameters, loop targets and
            captures get their values.
        outer: for a place inside a comprehension, the place of the comprehension.
        fanout: the ``ctx.parallel``, ``pipeline``, ``dag`` or ``race`` that it is handed to as (part of) an argument.
    """

    scope: Scope
    block: Block
    index: int
    outer: "Place | None" = None
    fanout: ast.Call | None = None

    @property
    def statement(self) -> ast.stmt | None:
        """The statement; None at the entry of a block, in the body of a lambda and in the test of a ``while``."""
        return self.block.statements[self.index] if 0 <= self.index < len(self.block.statements) else None

    @property
    def evaluated_at(self) -> "Place":
        """Where the value of what is defined here is computed: for a loop's target, the place of the loop."""
        return self if self.index >= 0 or self.block.owner is None else self.block.owner

    @property
    def function(self) -> Scope:
        """The function or lambda whose body this is in; the module at the top level."""
        return self.block.scope

    def plain(self) -> "Place":
        """Return this place as one that is handed to no fanout."""
        return self if self.fanout is None else Place(self.scope, self.block, self.index, self.outer)

    def handed_to(self, fanout: ast.Call) -> "Place":
        """Return this place as one whose value is handed to ``fanout``."""
        return Place(self.scope, self.block, self.index, self.outer, fanout)

    def owners(self) -> "Iterator[tuple[Block, Place]]":
        """Yield each block around this place with the place of the statement that owns it, innermost first."""
        block = self.block
        while block.owner is not None:
            yield block, block.owner
            block = block.owner.block

    def comprehensions(self) -> "Iterator[Comprehension]":
        """Yield the comprehensions around this place, innermost first."""
        place: Place | None = self
        while place is not None and place.outer is not None:
            assert isinstance(place.scope.node, COMPREHENSIONS)
            yield place.scope.node
            place = place.outer

    def loops(self) -> "Iterator[Loop | Comprehension]":
        """Yield the loops and comprehensions of its function that repeat this place, innermost first."""
        yield from self.comprehensions()
        for block, owner in self.owners():
            statement = owner.statement
            if isinstance(statement, LOOPS) and block.role in {"body", "test"}:
                yield statement


@dataclass(slots=True, eq=False)
class Definition:
    """One way in which a name gets its value, or in which its object changes.

    Attributes:
        name: the name; empty for a change to something that no name holds directly.
        kind: how.
        place: where it happens.
        node: the statement, call or parameter itself, for its position.
        value: the expression that the value comes from; the argument that a change adds.
        path: the steps from that expression's value to the name's.
    """

    name: str
    kind: Kind
    place: Place
    node: ast.AST
    value: ast.expr | None = None
    path: Steps = ()
