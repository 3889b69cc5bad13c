"""Other ways to the same object: an alias, a helper's parameter, a closure, a container (contract.md, section 4, R03).

What changes an object by such a way is added to its bound as a total, whenever it happens.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tallystick.contract.bounds.effect import Number, plus
from tallystick.contract.scopes import COMPREHENSIONS, Definition, Kind, Place, Scope
from tallystick.contract.survey import CONTEXT, ENTRY, Survey

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

Holder: TypeAlias = tuple[Scope, str]
"""A variable: the scope it belongs to, and its name."""

_FRESH: frozenset[type[ast.AST]] = frozenset(
    {
        *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant, ast.JoinedStr, ast.BinOp, ast.UnaryOp, ast.Compare),
        *(ast.Lambda, *COMPREHENSIONS),
    }
)
"""Expressions that make a new object each time."""
_COPIES = frozenset({"list", "tuple", "set", "frozenset", "dict", "sorted", "range", "str", "int", "float", "len"})
_COPYING_METHODS = frozenset({"copy", "split", "rsplit", "splitlines", "partition", "union", "intersection", "strip"})
_VIEWS = frozenset({"enumerate", "zip", "reversed", "iter", "map", "filter"})
_VIEWING_METHODS = frozenset({"items", "keys", "values"})
_READERS = _COPIES | _VIEWS | {"any", "all", "sum", "min", "max"}


class Origin(NamedTuple):
    """Where an object may come from: the variables that may hold it, and whether a container may."""

    holders: frozenset[Holder] = frozenset()
    contained: bool = False

    def join(self, other: "Origin") -> "Origin":
        """Return the origin of this object or the other."""
        return Origin(self.holders | other.holders, self.contained or other.contained)


_NEW = Origin()
_CONTAINED = Origin(contained=True)


class Aliases:
    """Knows who else may change an object."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._also: dict[Holder, set[Holder]] = defaultdict(set)  # whose changes reach this variable's object too
        self._contained: set[Holder] = set()
        self._shared: set[Holder] = set()  # variables that anything but their function's own code may change
        self._is_linked = False
        self._reaching: dict[Holder, list[Definition]] = {}
        self._entered: set[Scope] = set()
        self._stored: set[str] | None = None

    def elsewhere(self, scope: Scope, name: str) -> list[Definition]:
        """Return the definitions and changes that reach a variable's object from outside its function's own code."""
        return [one for one in self._reaching_it(scope, name) if one.kind is not Kind.AUGMENT or one.name == name]

    def extended_elsewhere(self, scope: Scope, name: str) -> list[Definition]:
        """Return every ``alias += ...`` of another variable that may hold the same list."""
        return [one for one in self._reaching_it(scope, name) if one.kind is Kind.AUGMENT and one.name != name]

    def origin(self, node: ast.expr, place: Place) -> Origin:
        """Return where the object that an expression gives, or is a view of, may come from."""
        if node.__class__ in _FRESH:
            return _NEW
        match node:
            case ast.Name():
                scope = place.scope.resolve(node.id)
                return _NEW if scope is None else Origin(frozenset({(scope, node.id)}))
            case ast.Await():
                return self.origin(node.value, place)
            case ast.Call():
                return self._returned(node, place)
            case ast.Subscript():
                return _NEW if isinstance(node.slice, ast.Slice) else _CONTAINED
            case ast.NamedExpr():
                return self._join((node.value, node.target), place)
            case ast.IfExp():
                return self._join((node.body, node.orelse), place)
            case ast.BoolOp():
                return self._join(node.values, place)
        return _CONTAINED

    def gain_after(self, name: ast.Name, place: Place) -> Number:
        """Return by how much a variable's object may grow in its own function once ``place`` has been passed."""
        scope = place.scope.resolve(name.id)
        total: Number = 0
        for change in () if scope is None else scope.changes.get(name.id, ()):
            if change.place.function is place.function and may_follow(change.place, place):
                total = plus(total, self._bounds.changes.total_gain(change))
        return total

    # Containers

    def growth_inside_containers(self) -> Number:
        """Return by how much all changes of objects that containers hold may lengthen any one of them."""
        self._link_all()
        return self._bounds.remembered("inside containers", self._add_up)

    def _add_up(self) -> Number:
        total: Number = 0
        for change in self._bounds.survey.wild_changes:
            total = plus(total, self._bounds.changes.total_gain(change))
        for scope, name in self._contained:
            for change in scope.changes.get(name, ()):
                total = plus(total, self._bounds.changes.total_gain(change))
        return total

    def may_be_contained(self, scope: Scope, name: str) -> bool:
        """Whether a variable's object may also be what a container holds."""
        self._link_all()
        if (scope, name) in self._contained:
            return True
        if self._stored is None:
            self._stored = set(_stored_names(self._bounds.survey))
        return name in self._stored

    # Variables

    def _reaching_it(self, scope: Scope, name: str) -> list[Definition]:
        key = scope, name
        self._link_all()
        if key not in self._shared:
            return []
        if key not in self._reaching:
            self._reaching[key] = list(self._find(key))
        return self._reaching[key]

    def _find(self, sought: Holder) -> Iterator[Definition]:
        scope, name = sought
        yield from (one for one in scope.definitions.get(name, ()) if one.place.function is not scope)
        yield from (one for one in scope.changes.get(name, ()) if one.place.function is not scope)
        reached, waiting = {sought}, [sought]
        while waiting:
            for holder in self._also.get(waiting.pop(), ()):
                if holder in reached:
                    continue
                reached.add(holder)
                waiting.append(holder)
                yield from holder[0].changes.get(holder[1], ())
                yield from (one for one in holder[0].definitions[holder[1]] if one.kind is Kind.AUGMENT)

    def _link_all(self) -> None:
        if self._is_linked:
            return
        self._is_linked = True
        survey = self._bounds.survey
        for scope in (survey.module, *survey.functions()):
            for name, definitions in scope.definitions.items():
                holder = scope, name
                for definition in definitions:
                    self._link(holder, definition)
                    if definition.place.function is not scope:
                        self._shared.add(holder)
            for name, changes in scope.changes.items():
                if any(change.place.function is not scope for change in changes):
                    self._shared.add((scope, name))
        self._shared.update(self._also)

    def _link(self, holder: Holder, definition: Definition) -> None:
        match definition.kind:
            case Kind.ASSIGN | Kind.WALRUS:
                self._link_value(holder, definition)
            case Kind.PARAMETER:
                for argument, place in self._bounds.arguments.given(*holder):
                    origin = self.origin(argument, place)
                    for other in origin.holders:
                        self._also[other].add(holder)
                    if origin.contained:
                        self._contained.add(holder)
            case Kind.TARGET | Kind.OTHER:
                self._contained.add(holder)

    def _link_value(self, holder: Holder, definition: Definition) -> None:
        value, path, node = definition.value, definition.path, definition.node
        several = isinstance(node, ast.Assign) and len(node.targets) > 1
        if not path and not several and (value.__class__ in _FRESH or _is_result(value)):
            return
        if len(path) == 1 and isinstance(value, ast.Tuple | ast.List) and isinstance(path[0], int):
            value, path = value.elts[path[0]] if path[0] < len(value.elts) else value, ()
        if path or value is None:
            self._contained.add(holder)
            return
        origin = self.origin(value, definition.place)
        if several and isinstance(node, ast.Assign):
            others = {(holder[0], target.id) for target in node.targets if isinstance(target, ast.Name)}
            origin = origin.join(Origin(frozenset(others)))
        for other in origin.holders - {holder}:
            self._also[other].add(holder)
            self._also[holder].add(other)
        if origin.contained:
            self._contained.add(holder)

    def _join(self, nodes: "list[ast.expr] | tuple[ast.expr, ...]", place: Place) -> Origin:
        origin = _NEW
        for node in nodes:
            origin = origin.join(self.origin(node, place))
        return origin

    def _returned(self, node: ast.Call, place: Place) -> Origin:
        match node.func:
            case ast.Name(id=name):
                functions = self._bounds.callers.functions_of(name, place.scope)
                if functions is not None:
                    return self._passed_through(node, place, functions)
                if name in _COPIES:
                    return _NEW
                if name in _VIEWS:
                    return self._join(node.args, place)
            case ast.Attribute(value=ast.Name(id=name)) if name == CONTEXT:
                return _NEW
            case ast.Attribute(attr=method) if method in _COPYING_METHODS:
                return _NEW
            case ast.Attribute(value=receiver, attr=method) if method in _VIEWING_METHODS:
                return self.origin(receiver, place)
        return _CONTAINED

    def _passed_through(self, node: ast.Call, place: Place, functions: list[Scope]) -> Origin:
        """Return what a helper's result may be: an argument that it hands back, a variable, something contained."""
        found = _NEW
        for function in functions:
            if function in self._entered:
                continue
            self._entered.add(function)
            for value, returned_at in function.returns:
                origin = self.origin(value, returned_at)
                found = found.join(Origin(contained=origin.contained))
                for holder in origin.holders:
                    if holder[0] is function and _is_parameter(*holder):
                        argument = self._bounds.arguments.argument(node, function, holder[1])
                        found = found.join(_CONTAINED if argument is None else self.origin(argument, place))
                    else:
                        found = found.join(self._unless_new(holder))
            self._entered.discard(function)
        return found

    def _unless_new(self, holder: Holder) -> Origin:
        """Return the variable, or nothing where all it ever holds is made for it alone and gone with its function."""
        scope, name = holder
        for definition in scope.definitions.get(name, ()):
            value = definition.value
            if definition.kind is not Kind.ASSIGN or value is None or definition.path:
                return Origin(frozenset({holder}), contained=True)
            if isinstance(value, ast.Name) or self.origin(value, definition.place) != _NEW:
                return Origin(frozenset({holder}), contained=True)
        return _NEW


def may_follow(later: Place, earlier: Place) -> bool:
    """Whether one place of a function may be executed after another one was."""
    if not set(later.loops()).isdisjoint(earlier.loops()):
        return True
    statement, first = later.statement, earlier.statement
    return statement is None or first is None or statement.lineno >= first.lineno


def _is_result(value: ast.expr | None) -> bool:
    """Whether a value is what ``await ctx.run(...)`` or its like gives, which nobody else holds."""
    call = value.value if isinstance(value, ast.Await) else None
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == CONTEXT


def _is_parameter(function: Scope, name: str) -> bool:
    return any(one.kind is Kind.PARAMETER for one in function.definitions.get(name, ()))


def _stored_names(survey: Survey) -> Iterator[str]:
    """Yield the names of objects that are put into a container, or handed to something that might do so.

    What a payload or the script's result holds is not meant: nobody changes that any more.
    """
    entry = (scope for scope in survey.functions() if scope.parent is survey.module and scope.name == ENTRY)
    results = {value for scope in entry for value, _ in scope.returns}
    held: list[ast.expr | None] = []
    waiting: list[ast.AST] = [survey.tree]
    while waiting:
        node = waiting.pop()
        if node in results:
            continue
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                held += node.elts
            case ast.Dict():
                held += node.values
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="run" | "log")) if name == CONTEXT:
                continue
            case ast.Call() if not (isinstance(node.func, ast.Name) and node.func.id in _READERS):
                held += [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.Assign() if not all(isinstance(target, ast.Name) for target in node.targets):
                held.append(node.value)
            case ast.Yield() | ast.Return() | ast.DictComp():
                held.append(node.value)
            case ast.ListComp() | ast.GeneratorExp():
                held.append(node.elt)
        waiting += ast.iter_child_nodes(node)
    while held:
        value = held.pop()
        match value:
            case ast.Name():
                yield value.id
            case ast.IfExp():
                held += (value.body, value.orelse)
            case ast.BoolOp():
                held += value.values
