"""How lists, dicts and sets change behind a name's back (contract.md, section 4, R03 and R05).

``effect`` is what one change does to the name that it is written on. The rest is about other names for the same
object: an alias, a helper's parameter, a closure in a branch, an element of a container. What changes an object by
such a way is added to its bound as a total, whenever it happens.
"""

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from tallystick.contract.bounds_effect import (
    NEVER,
    NOTHING,
    Effect,
    Measure,
    Number,
    constant,
    plus,
    times,
)
from tallystick.contract.bounds_flow import is_certain
from tallystick.contract.scopes import COMPREHENSIONS, Definition, Kind, Part, Place, Scope
from tallystick.contract.survey import ENTRY, Survey

if TYPE_CHECKING:
    from tallystick.contract.bounds import Bounds
    from tallystick.contract.bounds_flow import Query

Holder: TypeAlias = tuple[Scope, str]
"""A variable: the scope it belongs to, and its name."""

_ADDS_ONE = frozenset({"append", "insert", "add", "setdefault"})
_ADDS_MANY = frozenset({"extend", "update", "symmetric_difference_update"})
_TAKES_ONE = frozenset({"pop", "popitem", "remove", "discard"})
_FRESH: frozenset[type[ast.AST]] = frozenset(
    {
        *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant, ast.JoinedStr, ast.BinOp, ast.UnaryOp, ast.Compare),
        *(ast.Lambda, *COMPREHENSIONS),
    }
)
_COPIES = frozenset({"list", "tuple", "set", "frozenset", "dict", "sorted", "range", "str", "int", "float", "len"})
_COPYING_METHODS = frozenset({"copy", "split", "rsplit", "splitlines", "partition", "union", "intersection", "strip"})
_VIEWS = frozenset({"enumerate", "zip", "reversed", "iter", "map", "filter"})
_VIEWING_METHODS = frozenset({"items", "keys", "values"})


class Changes:
    """Effects of changes, and who else may change an object."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._also: dict[Holder, set[Holder]] | None = None  # whose changes reach this variable's object too
        self._borrowed: set[Holder] = set()  # variables that may hold what a container holds
        self._elsewhere: dict[Holder, list[Definition]] = {}
        self._entered: set[Scope] = set()
        self._inside: Number | None = None
        self._is_adding_up = False
        self._stored: set[str] | None = None

    # The name that the change is written on

    def effect(self, query: "Query", change: Definition) -> Effect:
        """Return what a change does to the quantity of the variable that it is written on."""
        if query.path:
            return self._adds(query, change)
        match query.measure:
            case Measure.LENGTH:
                gain = self._gain(change, query)
                if change.place.outer is not None:
                    gain = times(gain, self._bounds.loops.within_statement(change.place))
                return Effect(gain, NEVER)
            case Measure.SHORTNESS:
                return self._shrinks(change)
        return NOTHING

    def _gain(self, change: Definition, query: "Query") -> Number:
        """Return by how much one execution lengthens the object; negative if it surely shortens it."""
        node, place = change.node, change.place
        if isinstance(node, ast.Call):
            method = _method(node)
            if method in _ADDS_ONE:
                return 1
            if method in _ADDS_MANY:
                gain: Number = sum(keyword.arg is not None for keyword in node.keywords)
                for argument in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg is None)):
                    gain = plus(gain, self._bounds.number(argument, place, Measure.LENGTH))
                return gain
            surely = method in {"pop", "popitem", "remove"} and len(node.args) < 2  # noqa: PLR2004 - pop(key, default) may take nothing
            return -1 if surely and is_certain(change) else 0
        if not isinstance(node, ast.Subscript) or change.value is None:
            return 0  # a deletion
        if isinstance(node.slice, ast.Slice):
            effect = self._bounds.values.evaluate(change.value, place, Measure.LENGTH, change.path)
            return effect.base
        return 0 if isinstance(node.slice, ast.Constant) or self.is_list(query.scope, query.name) else 1

    def keys_by_name(self, scope: Scope, name: str) -> int:
        """Return how many constant keys are ever assigned to a dict, each of which lengthens it once."""
        keys = set()
        for change in scope.changes.get(name, ()):
            if isinstance(change.node, ast.Subscript) and change.value is not None:
                key = change.node.slice
                if isinstance(key, ast.Constant):
                    keys.add(repr(key.value))
        return len(keys) if keys and not self.is_list(scope, name) else 0

    def _shrinks(self, change: Definition) -> Effect:
        """Return what a change does to the negated length."""
        node = change.node
        if isinstance(node, ast.Call):
            method = _method(node)
            if method in {"append", "insert"}:
                return Effect(-1, NEVER) if is_certain(change) else NOTHING
            if method in _ADDS_ONE or method in _ADDS_MANY - {"symmetric_difference_update"}:
                return NOTHING
            if method in _TAKES_ONE and change.place.outer is None:
                return Effect(1, NEVER)
            return constant(0)
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return NOTHING if change.value is not None else Effect(1, NEVER)
        return constant(0)

    def _adds(self, query: "Query", change: Definition) -> Effect:
        """Return the bound of what a change puts at the query's path."""
        node, place, value = change.node, change.place, change.value
        step, rest = query.path[0], query.path[1:]
        values = self._bounds.values
        if value is None:
            return NOTHING
        if isinstance(node, ast.Call):
            method = _method(node)
            if method in _ADDS_ONE:
                return NOTHING.join(values.evaluate(value, place, query.measure, rest))
            if method in _ADDS_MANY:
                return NOTHING.join(values.evaluate(value, place, query.measure, query.path))
            return NOTHING
        assert isinstance(node, ast.Subscript)
        if isinstance(node.slice, ast.Slice):
            return NOTHING.join(values.evaluate(value, place, query.measure, change.path + query.path))
        effect = NOTHING.join(values.evaluate(value, place, query.measure, change.path + rest))
        if step is Part.EACH and not self.is_list(query.scope, query.name):
            effect = effect.join(values.evaluate(node.slice, place, query.measure, rest))
        return effect

    def is_list(self, scope: Scope, name: str) -> bool:
        """Whether a variable never holds anything but a list that is written out where it is assigned."""
        return all(
            one.kind is Kind.AUGMENT
            or (one.kind is Kind.ASSIGN and not one.path and isinstance(one.value, ast.List | ast.ListComp))
            for one in scope.definitions.get(name, ())
        )

    # Other names for the same object

    def elsewhere(self, scope: Scope, name: str) -> list[Definition]:
        """Return the definitions and changes that reach a variable's object from outside its function's own code."""
        return [one for one in self._reaching(scope, name) if one.kind is not Kind.AUGMENT or one.name == name]

    def extended_elsewhere(self, scope: Scope, name: str) -> list[Definition]:
        """Return every ``alias += ...`` of another variable that may hold the same list."""
        return [one for one in self._reaching(scope, name) if one.kind is Kind.AUGMENT and one.name != name]

    def _reaching(self, scope: Scope, name: str) -> list[Definition]:
        key = scope, name
        if key not in self._elsewhere:
            self._elsewhere[key] = self._find_elsewhere(scope, name)
        return self._elsewhere[key]

    def _find_elsewhere(self, scope: Scope, name: str) -> list[Definition]:
        also, reached, waiting = self._aliases(), {(scope, name)}, [(scope, name)]
        found = [one for one in scope.definitions.get(name, ()) if one.place.function is not scope]
        while waiting:
            holder = waiting.pop()
            own = holder == (scope, name)
            for change in holder[0].changes.get(holder[1], ()):
                if not own or change.place.function is not scope:
                    found.append(change)
            if not own:
                found += [one for one in holder[0].definitions.get(holder[1], ()) if one.kind is Kind.AUGMENT]
            for other in also.get(holder, ()):
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return found

    def total_gain(self, change: Definition) -> Number:
        """Return by how much all executions of a change together may lengthen what it is written on."""
        owner = change.place.scope.resolve(change.name) if change.name else None
        query = self._bounds.query(owner or change.place.scope, change.name, Measure.LENGTH)
        return times(max(self._gain(change, query), 0), self._bounds.callers.executions(change.place))

    def gain_after(self, name: ast.Name, place: Place) -> Number:
        """Return by how much a variable's object may grow in its own function once ``place`` has been passed."""
        scope = place.scope.resolve(name.id)
        total: Number = 0
        for change in () if scope is None else scope.changes.get(name.id, ()):
            if change.place.function is place.function and _may_follow(change, name, place):
                total = plus(total, self.total_gain(change))
        return total

    def origins(self, node: ast.expr, place: Place) -> set[Holder]:
        """Return the variables whose object an expression's value may be, or may be a view of."""
        return self._origins(node, place)[0]

    def growth_inside_containers(self) -> Number:
        """Return by how much all changes of objects that containers hold may lengthen any one of them."""
        if self._inside is None:
            self._aliases()
            if self._is_adding_up:
                return self._bounds.give_up()
            self._is_adding_up = True
            before = self._bounds.given_up
            total: Number = 0
            for change in self._bounds.survey.wild_changes:
                total = plus(total, self._wild_gain(change))
            for scope, name in self._borrowed:
                for change in scope.changes.get(name, ()):
                    total = plus(total, self.total_gain(change))
            self._is_adding_up = False
            if not self._bounds.is_final(total, before):
                return total
            self._inside = total
        return self._inside

    def _wild_gain(self, change: Definition) -> Number:
        if isinstance(change.node, ast.AugAssign):
            length = self._bounds.values.evaluate(change.node.value, change.place, Measure.LENGTH)
            return times(length.base, self._bounds.callers.executions(change.place))
        return self.total_gain(change)

    def may_be_in_container(self, scope: Scope, name: str) -> bool:
        """Whether a variable's object may also be what a container holds."""
        self._aliases()
        if (scope, name) in self._borrowed:
            return True
        if self._stored is None:
            self._stored = _stored_names(self._bounds.survey)
        return name in self._stored

    def _aliases(self) -> dict[Holder, set[Holder]]:
        if self._also is None:
            self._also = defaultdict(set)
            survey = self._bounds.survey
            for scope in (survey.module, *survey.functions()):
                for name, definitions in scope.definitions.items():
                    for definition in definitions:
                        self._link((scope, name), definition)
        return self._also

    def _link(self, holder: Holder, definition: Definition) -> None:
        assert self._also is not None
        value, path = definition.value, definition.path
        match definition.kind:
            case Kind.ASSIGN | Kind.WALRUS if value is not None:
                if (
                    value.__class__ in _FRESH
                    and isinstance(definition.node, ast.Assign)
                    and len(definition.node.targets) == 1
                    and not path
                ):
                    return
                if len(path) == 1 and isinstance(value, ast.Tuple | ast.List) and isinstance(path[0], int):
                    value, path = value.elts[path[0]] if path[0] < len(value.elts) else value, ()
                if not path:
                    holders, borrowed = self._origins(value, definition.place)
                    if isinstance(definition.node, ast.Assign) and len(definition.node.targets) > 1:
                        holders |= {
                            (holder[0], target.id) for target in definition.node.targets if isinstance(target, ast.Name)
                        }
                    for other in holders - {holder}:
                        self._also[other].add(holder)
                        self._also[holder].add(other)
                    if not borrowed:
                        return
            case Kind.PARAMETER:
                for argument, place in self._bounds.callers.arguments(*holder):
                    holders, borrowed = self._origins(argument, place)
                    for other in holders:
                        self._also[other].add(holder)
                    if borrowed:
                        self._borrowed.add(holder)
                return
            case Kind.FUNCTION | Kind.AUGMENT | Kind.REST:
                return
        self._borrowed.add(holder)

    def _origins(self, node: ast.expr, place: Place) -> tuple[set[Holder], bool]:
        """Return the variables whose object the value may be, and whether it may be one that a container holds."""
        kind = node.__class__
        if kind in _FRESH:
            return set(), False
        match node:
            case ast.Name():
                scope = place.scope.resolve(node.id)
                return (set() if scope is None else {(scope, node.id)}), False
            case ast.Await():
                return self._origins(node.value, place)
            case ast.Call():
                return self._returned(node, place)
            case ast.Subscript():
                return set(), not isinstance(node.slice, ast.Slice)
            case ast.NamedExpr():
                return _union(self._origins(node.value, place), self._origins(node.target, place))
            case ast.IfExp():
                return _union(self._origins(node.body, place), self._origins(node.orelse, place))
            case ast.BoolOp():
                found: tuple[set[Holder], bool] = (set(), False)
                for value in node.values:
                    found = _union(found, self._origins(value, place))
                return found
        return set(), True

    def _returned(self, node: ast.Call, place: Place) -> tuple[set[Holder], bool]:
        func = node.func
        if isinstance(func, ast.Name):
            functions = self._bounds.callers.functions_of(func.id, place.scope)
            if functions is not None:
                return self._passed_through(node, place, functions)
            if func.id in _COPIES:
                return set(), False
            if func.id in _VIEWS:
                found: tuple[set[Holder], bool] = (set(), False)
                for argument in node.args:
                    found = _union(found, self._origins(argument, place))
                return found
        elif isinstance(func, ast.Attribute):
            if (isinstance(func.value, ast.Name) and func.value.id == "ctx") or func.attr in _COPYING_METHODS:
                return set(), False
            if func.attr in _VIEWING_METHODS:
                return self._origins(func.value, place)
        return set(), True

    def _passed_through(self, node: ast.Call, place: Place, functions: list[Scope]) -> tuple[set[Holder], bool]:
        """Return what a helper's result may be: an argument that it hands back, or something of a container."""
        found: tuple[set[Holder], bool] = (set(), False)
        for function in functions:
            if function in self._entered:
                continue
            self._entered.add(function)
            for value, returned_at in function.returns:
                holders, borrowed = self._origins(value, returned_at)
                found = _union(found, (set(), borrowed))
                for holder in holders:
                    argument = self._bounds.callers.argument(node, function, holder[1])
                    if holder[0] is function and _is_parameter(*holder):
                        found = _union(found, (set(), True) if argument is None else self._origins(argument, place))
                    else:
                        found = _union(found, self._unless_fresh(holder))
            self._entered.discard(function)
        return found

    def _unless_fresh(self, holder: Holder) -> tuple[set[Holder], bool]:
        """Return the variable, or nothing where all it ever holds is made for it alone and gone with its function."""
        scope, name = holder
        for definition in scope.definitions.get(name, ()):
            value = definition.value
            if definition.kind is not Kind.ASSIGN or value is None or definition.path:
                return {holder}, True
            if isinstance(value, ast.Name) or self._origins(value, definition.place) != (set(), False):
                return {holder}, True
        return set(), False


def _may_follow(change: Definition, name: ast.Name, place: Place) -> bool:
    node = change.node
    assert isinstance(node, ast.expr | ast.stmt)
    later = (node.lineno, node.col_offset) > (name.lineno, name.col_offset)
    return later or not set(change.place.loops()).isdisjoint(place.loops())


def _union(left: tuple[set[Holder], bool], right: tuple[set[Holder], bool]) -> tuple[set[Holder], bool]:
    return left[0] | right[0], left[1] or right[1]


def _is_parameter(function: Scope, name: str) -> bool:
    return any(one.kind is Kind.PARAMETER for one in function.definitions.get(name, ()))


def _method(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _stored_names(survey: Survey) -> set[str]:
    """Return the names of objects that are put into a container, or handed to something that might do so.

    What a payload or the script's result holds is not meant: nobody changes that any more.
    """
    entry = (scope for node, scope in survey.scopes.items() if scope.parent is survey.module and scope.name == ENTRY)
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
            case ast.Call(func=ast.Attribute(value=ast.Name(id="ctx"), attr="run" | "log")):
                continue
            case ast.Call() if not _only_reads(node):
                held += [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.Assign(targets=targets) if not all(isinstance(target, ast.Name) for target in targets):
                held.append(node.value)
            case ast.Yield() | ast.Return():
                held.append(node.value)
            case ast.ListComp() | ast.GeneratorExp():
                held.append(node.elt)
            case ast.DictComp():
                held.append(node.value)
        waiting += ast.iter_child_nodes(node)
    names: set[str] = set()
    while held:
        value = held.pop()
        match value:
            case ast.Name():
                names.add(value.id)
            case ast.IfExp():
                held += (value.body, value.orelse)
            case ast.BoolOp():
                held += value.values
    return names


def _only_reads(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _COPIES | _VIEWS | {"any", "all", "sum", "min", "max"}
