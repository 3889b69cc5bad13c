"""What the checker's one walk over the tree finds (contract.md, section 4)."""

import ast
from collections import defaultdict
from typing import Any, TypeAlias

from tallystick.contract.scopes import FUNCTIONS, Block, Definition, Place, Scope

Found: TypeAlias = tuple[Any, Place]
"""A node and where it is evaluated."""

CONTEXT = "ctx"
ENTRY = "orchestrate"
FANOUTS = frozenset({"parallel", "pipeline", "dag", "race"})
"""The methods of ``ctx`` that start branches."""

CHANGING_METHODS = frozenset(
    {
        *("append", "insert", "extend", "add", "update", "setdefault", "symmetric_difference_update"),
        *("pop", "popitem", "remove", "discard", "clear", "difference_update", "intersection_update"),
    }
)
"""Methods that change the length of the list, dict or set they are called on."""


class Survey:
    """What the walk found.

    Attributes:
        tree: the module that was walked.
        module: its scope.
        scopes: the scope of each function, lambda and comprehension.
        blocks: the blocks that each compound statement, function and lambda owns.
        found: the nodes of the wanted types, in no order.
        uses: loads of each name, except as the function of a call or the receiver of a change.
        calls: calls of each plain name.
        context_calls: calls of an attribute of ``ctx``.
        context_attributes: other uses of an attribute of ``ctx``.
        context_arguments: calls of a plain name that hand ``ctx`` on.
        attributes: every attribute that is written, by its name.
        wild_changes: changes to lists, dicts and sets that no name holds directly.
        awaited: calls that stand directly under an ``await``.
        awaits: awaits of anything but a call.
        leaving: loops that a ``break``, ``return`` or ``raise`` may leave before their end.
        unknown: nodes that are not in the subset.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope(tree, None, None)
        self.scopes: dict[ast.AST, Scope] = {}
        self.blocks: dict[ast.AST, list[Block]] = {}
        self.found: dict[type[ast.AST], list[Found]] = {}
        self.uses: dict[str, list[Found]] = defaultdict(list)
        self.calls: dict[str, list[Found]] = defaultdict(list)
        self.context_calls: list[Found] = []
        self.context_attributes: list[Found] = []
        self.context_arguments: list[Found] = []
        self.attributes: dict[str, list[Found]] = defaultdict(list)
        self.wild_changes: list[Definition] = []
        self.awaited: set[ast.Call] = set()
        self.awaits: list[Found] = []
        self.leaving: set[ast.AST] = set()
        self.unknown: list[ast.AST] = []

    def functions(self) -> list[Scope]:
        """Return the scopes of all functions and lambdas."""
        return [scope for scope in self.scopes.values() if isinstance(scope.node, FUNCTIONS)]

    def block(self, node: ast.AST, role: str = "body") -> Block:
        """Return the one block of a statement, function or lambda that has this role."""
        return next(block for block in self.blocks[node] if block.role == role)


def method_of(call: ast.Call) -> str:
    """Return the name of the method that is called, empty where it is no method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
