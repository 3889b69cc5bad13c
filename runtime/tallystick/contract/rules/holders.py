"""By which names a script may reach one object: what R04 and R09 follow a shared list or dict through.

An object gets further names by assignment, by a helper's parameter, and as a part: ``rows = state["rows"]`` leads into
what ``state`` holds, and ``state = {"rows": rows}`` is another way to ``rows``. A copy is another object that has the
order of the first one.

Bounds ask a related question of ``bounds.aliases``: by how much an object may grow, by whatever way. There a way that is
not understood counts as growth; here it would refuse scripts in which nothing is shared, so what a loop hands to each
branch (an item of its own) is not followed.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tallystick.contract.bounds.analysis import Bounds
from tallystick.contract.scopes import Definition, Kind, Place, Scope
from tallystick.contract.survey import CONTEXT

Holder: TypeAlias = tuple[Scope, str]
"""A variable: the scope it belongs to, and its name."""

Key: TypeAlias = str | int | None
"""A constant key or index, None for the whole or where it is not known."""

_COPIES = frozenset({"list", "tuple", "dict", "reversed", "enumerate", "zip", "map", "filter"})
_PART_METHODS = frozenset({"get", "setdefault", "pop"})
_VIEW_METHODS = frozenset({"items", "values", "keys", "copy"})
_DEEPEST = 8


class Source(NamedTuple):
    """What an expression's value is made of: a variable's object, the part of it at ``key``, or a copy of that."""

    holder: Holder
    key: Key = None
    is_part: bool = False
    is_copy: bool = False


class Way(NamedTuple):
    """One way to an object: it is what ``holder`` has at ``at`` (None: what it holds), and it is the part ``key`` of it.

    Through a copy, what is written does not reach the object.
    """

    holder: Holder
    at: Key = None
    key: Key = None
    is_copy: bool = False


class _Link(NamedTuple):
    child: Holder
    at: Key
    key: Key
    is_part: bool
    is_copy: bool


class Holders:
    """Knows the ways to what a variable holds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._links: dict[Holder, set[_Link]] = defaultdict(set)
        for scope in (bounds.survey.module, *bounds.survey.functions()):
            for name, definitions in scope.definitions.items():
                for definition in definitions:
                    self._link((scope, name), definition)
            for name, changes in scope.changes.items():
                for change in changes:
                    if isinstance(change.node, ast.Subscript) and change.value is not None and not change.path:
                        self._contain((scope, name), constant(change.node.slice), change.value, change.place)

    def ways(self, holder: Holder) -> list[Way]:
        """Return every way to what a variable holds, the variable itself first."""
        found = [Way(holder)]
        if is_item(holder):
            return found
        for way in found:  # grows while it is walked
            for link in self._links.get(way.holder, ()):
                following = _follow(way, link)
                if following is not None and following not in found:
                    found.append(following)
        return found

    def sources(self, node: ast.expr | None, place: Place, depth: int = 0) -> Iterator[Source]:
        """Yield what the value of an expression is made of."""
        if depth > _DEEPEST:
            return
        match node:
            case ast.Name():
                scope = place.scope.resolve(node.id)
                if scope is not None and isinstance(scope.node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield Source((scope, node.id))
            case ast.Subscript(slice=ast.Slice()):
                yield from (one._replace(is_copy=True) for one in self.sources(node.value, place, depth + 1))
            case ast.Subscript():
                yield from self._part(node.value, node.slice, place, depth)
            case ast.Call():
                yield from self._returned(node, place, depth)
            case ast.Await() | ast.Starred() | ast.NamedExpr():
                yield from self.sources(node.value, place, depth + 1)
            case ast.IfExp():
                yield from self.sources(node.body, place, depth + 1)
                yield from self.sources(node.orelse, place, depth + 1)
            case ast.BoolOp():
                for value in node.values:
                    yield from self.sources(value, place, depth + 1)
            case ast.BinOp(op=ast.BitOr() | ast.Add()):
                for value in (node.left, node.right):
                    yield from (one._replace(is_copy=True) for one in self.sources(value, place, depth + 1))
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if key is None:
                        yield from (one._replace(is_copy=True) for one in self.sources(value, place, depth + 1))
            case ast.List() | ast.Tuple():
                for item in node.elts:
                    if isinstance(item, ast.Starred):
                        yield from (one._replace(is_copy=True) for one in self.sources(item.value, place, depth + 1))

    def _part(self, whole: ast.expr, key: ast.expr, place: Place, depth: int) -> Iterator[Source]:
        known = constant(key)
        for one in self.sources(whole, place, depth + 1):
            if known is not None or _comes_from_outside(one.holder, place):
                yield one if one.is_part else one._replace(key=known, is_part=True)

    def _returned(self, node: ast.Call, place: Place, depth: int) -> Iterator[Source]:
        match node.func:
            case ast.Name(id=name):
                functions = self._bounds.callers.functions_of(name, place.scope)
                for function in functions or ():
                    for value, returned_at in function.returns:
                        yield from self._handed_back(node, function, value, returned_at, place, depth)
                if functions is None and name in _COPIES and place.scope.resolve(name) is None:
                    for argument in node.args:
                        yield from (one._replace(is_copy=True) for one in self.sources(argument, place, depth + 1))
            case ast.Attribute(value=ast.Name(id=name)) if name == CONTEXT:
                return
            case ast.Attribute(value=receiver, attr=method) if method in _PART_METHODS and node.args:
                yield from self._part(receiver, node.args[0], place, depth)
            case ast.Attribute(value=receiver, attr=method) if method in _VIEW_METHODS:
                yield from (one._replace(is_copy=True) for one in self.sources(receiver, place, depth + 1))

    def _handed_back(
        self, call: ast.Call, function: Scope, value: ast.expr, returned_at: Place, place: Place, depth: int
    ) -> Iterator[Source]:
        """Yield what a helper's result is made of: what it was given, or what others hold too."""
        for one in self.sources(value, returned_at, depth + 1):
            scope, name = one.holder
            if scope is not function:
                yield one
            elif any(each.kind is Kind.PARAMETER for each in scope.definitions[name]):
                argument = self._bounds.arguments.argument(call, function, name)
                for given in () if argument is None else self.sources(argument, place, depth + 1):
                    yield _inside(given, one)
            else:  # a variable of its own: what leads into it leads out of it
                for definition in scope.definitions[name]:
                    if definition.kind is Kind.ASSIGN and definition.value is not None and not definition.path:
                        yield from self._handed_back(
                            call, function, definition.value, definition.place, place, depth + 1
                        )

    def _link(self, holder: Holder, definition: Definition) -> None:
        value, place = definition.value, definition.place
        match definition.kind:
            case Kind.PARAMETER:
                for argument, given_at in self._bounds.arguments.given(*holder):
                    self._derive(holder, argument, given_at)
            case Kind.ASSIGN | Kind.WALRUS if value is not None:
                if not definition.path:
                    self._derive(holder, value, place)
                    self._display(holder, value, place)
                elif isinstance(value, ast.Tuple | ast.List) and isinstance(definition.path[0], int):
                    if definition.path[0] < len(value.elts):
                        self._derive(holder, value.elts[definition.path[0]], place)
                else:
                    key = definition.path[0]
                    self._derive(holder, value, place, key if isinstance(key, str | int) else None, is_part=True)
            case Kind.TARGET if value is not None:
                for one in self.sources(value, place.evaluated_at):
                    if _comes_from_outside(one.holder, place):
                        self._links[one.holder].add(_Link(holder, None, one.key, is_part=True, is_copy=False))

    def _derive(
        self, holder: Holder, value: ast.expr, place: Place, key: Key = None, *, is_part: bool = False
    ) -> None:
        for one in self.sources(value, place):
            if one.holder != holder and not is_item(one.holder):
                link = _Link(holder, None, one.key if one.is_part else key, one.is_part or is_part, one.is_copy)
                self._links[one.holder].add(link)

    def _display(self, holder: Holder, value: ast.expr, place: Place) -> None:
        if isinstance(value, ast.Dict):
            for key, item in zip(value.keys, value.values, strict=True):
                if key is not None:
                    self._contain(holder, constant(key), item, place)
        elif isinstance(value, ast.List | ast.Tuple):
            for index, item in enumerate(value.elts):
                self._contain(holder, index, item, place)

    def _contain(self, holder: Holder, at: Key, item: ast.expr, place: Place) -> None:
        if at is None:
            return
        for one in self.sources(item, place):
            if not one.is_copy and one.holder != holder:
                self._links[one.holder].add(_Link(holder, at, one.key, one.is_part, is_copy=False))


def is_item(holder: Holder) -> bool:
    """Whether a variable holds another object in each round of a loop, so that each branch is given one of its own."""
    scope, name = holder
    definitions = scope.definitions.get(name, ())
    return bool(definitions) and all(
        one.kind is Kind.TARGET or next(one.place.loops(), None) is not None for one in definitions
    )


def constant(node: ast.expr) -> Key:
    """Return a key that is written out, None for any other."""
    match node:
        case ast.Constant(value=str() | int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    return None


def _comes_from_outside(holder: Holder, place: Place) -> bool:
    """Whether a variable's object is not the function's own at a place: a closure's, or one that it was given."""
    scope, name = holder
    if scope is not place.function:
        return True
    return scope.parent is not None and any(one.kind is Kind.PARAMETER for one in scope.definitions[name])


def _inside(given: Source, one: Source) -> Source:
    """Return what a helper hands back of what it was given."""
    key, is_part = (given.key, True) if given.is_part else (one.key, one.is_part)
    return Source(given.holder, key, is_part, given.is_copy or one.is_copy)


def _follow(way: Way, link: _Link) -> Way | None:
    is_copy = way.is_copy or link.is_copy
    if way.at is None:
        key = way.key if way.key is not None or not link.is_part else link.key
        return Way(link.child, link.at, key, is_copy)
    if not link.is_part:
        return Way(link.child, way.at, way.key, is_copy) if link.at is None else None
    return Way(link.child, link.at, way.key, is_copy) if link.key in {None, way.at} else None
