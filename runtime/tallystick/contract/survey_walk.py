"""The checker's one walk over the tree: it builds the scopes and finds what rules want to see (contract.md, section 4).

The walk goes block by block, and inside a statement level by level, so that it needs no recursion. A node that is
not in the tables is reported as unknown, and its inside is not looked at.

Left out: ``ast.NodeVisitor`` costs three times as much; one walk per rule costs as many walks as there are rules.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tallystick.contract.scopes import Block, Comprehension, Definition, Kind, Part, Place, Scope, Steps
from tallystick.contract.survey import CHANGING_METHODS, CONTEXT, FANOUTS, Found, Survey
from tallystick.contract.syntax import EXPRESSIONS, PLAIN_STATEMENTS

_ANSWERING_METHODS = frozenset({"pop", "popitem", "setdefault"})


def survey(tree: ast.Module, wanted: Iterable[type[ast.AST]] = ()) -> Survey:
    """Walk a module once; ``wanted`` are the node types that ``found`` collects."""
    walk = _Walk(Survey(tree), frozenset(wanted))
    walk.run()
    return walk.survey


class _Source(NamedTuple):
    """Where a bound value comes from: what is the same for every name of one target."""

    kind: Kind
    scope: Scope
    place: Place
    node: ast.AST
    value: ast.expr | None


class _Walk:
    def __init__(self, result: Survey, wanted: frozenset[type[ast.AST]]) -> None:
        self.survey = result
        self.queue: list[Block] = []
        self.inner: list[tuple[Sequence[Any], Place]] = []  # expressions that are evaluated in a place of their own
        self.changes: list[Definition] = []
        self.scopes_that_declare: list[Scope] = []
        found = result.found = {kind: [] for kind in wanted}
        self.expressions: dict[type[Any], tuple[list[Found] | None, Any, tuple[str, ...]]] = {
            kind: (found.get(kind), _HANDLERS.get(kind), fields) for kind, fields in EXPRESSIONS.items()
        }
        self.expressions[type(None)] = (None, None, ())  # an absent part: a dict's ** key, a slice without a stop

    def run(self) -> None:
        survey = self.survey
        body = self.block(survey.tree, survey.tree.body, survey.module, None)
        if ast.Module in survey.found:
            survey.found[ast.Module].append((survey.tree, Place(survey.module, body, -1)))
        for block in self.queue:  # grows while it is walked
            for index, statement in enumerate(block.statements):
                kind = statement.__class__
                handler = STATEMENTS.get(kind)
                if handler is None:
                    survey.unknown.append(statement)
                    continue
                place = Place(block.scope, block, index)
                found = survey.found.get(kind)
                if found is not None:
                    found.append((statement, place))
                handler(self, statement, place)
        self.settle()

    def settle(self) -> None:
        """Give the definitions of global and nonlocal names, and all changes, to the scopes they belong to."""
        for scope in self.scopes_that_declare:
            for name in scope.declared:
                stray = scope.definitions.pop(name, None)
                if stray is not None:
                    owner = scope.resolve(name) or scope.module()
                    owner.definitions.setdefault(name, []).extend(stray)
        for change in self.changes:
            holder = change.place.scope.resolve(change.name)
            if holder is not None:
                holder.changes.setdefault(change.name, []).append(change)

    def block(
        self, node: ast.AST, statements: list[ast.stmt], scope: Scope, owner: Place | None, *, role: str = "body"
    ) -> Block:
        block = Block(statements, scope, owner, role)
        self.survey.blocks.setdefault(node, []).append(block)
        self.queue.append(block)
        return block

    # Expressions

    def walk(self, nodes: Sequence[Any], place: Place) -> None:
        """Walk expressions level by level, then those in them that have a place of their own."""
        table, uses, unknown = self.expressions, self.survey.uses, self.survey.unknown
        inner = self.inner
        while True:
            level = nodes
            while level:
                deeper: list[Any] = []
                for node in level:
                    kind = node.__class__
                    if kind is ast.Constant:
                        continue
                    if kind is ast.Name:
                        uses[node.id].append((node, place))
                        continue
                    if kind not in table:
                        unknown.append(node)
                        continue
                    found, handler, fields = table[kind]
                    if found is not None:
                        found.append((node, place))
                    if handler is not None:
                        handler(self, node, place, deeper)
                        continue
                    for name in fields:
                        child = getattr(node, name)
                        if child.__class__ is list:
                            deeper += child
                        else:
                            deeper.append(child)
                level = deeper
            if not inner:
                return
            nodes, place = inner.pop()

    def attribute(self, node: ast.Attribute, place: Place, deeper: list[Any]) -> None:
        self.survey.attributes[node.attr].append((node, place))
        if isinstance(node.value, ast.Name) and node.value.id == CONTEXT:
            self.survey.context_attributes.append((node, place))
        else:
            deeper.append(node.value)

    def await_(self, node: ast.Await, place: Place, deeper: list[Any]) -> None:
        value = node.value
        if isinstance(value, ast.Call):
            self.survey.awaited.add(value)
        else:
            self.survey.awaits.append((node, place))
        if place.fanout is None:
            deeper.append(value)
        else:
            self.inner.append(((value,), place.plain()))

    def call(self, node: ast.Call, place: Place, deeper: list[Any]) -> None:
        func = node.func
        arguments: list[Any] = [*node.args, *node.keywords]
        if isinstance(func, ast.Name):
            self.survey.calls[func.id].append((node, place))
            for argument in arguments:
                if _is_context(argument):  # rule R02 looks at what it is handed to
                    self.survey.context_arguments.append((node, place))
                    arguments = [other for other in arguments if not _is_context(other)]
                    break
        elif isinstance(func, ast.Attribute):
            receiver = func.value
            if isinstance(receiver, ast.Name) and receiver.id == CONTEXT:
                self.context_call(node, func, place, deeper)
                return
            if func.attr in CHANGING_METHODS:
                self.changing_call(node, func, place, arguments)
            else:
                arguments.append(func)
        else:
            arguments.append(func)
        if place.fanout is None:
            deeper += arguments
        else:
            self.inner.append((arguments, place.plain()))

    def context_call(self, node: ast.Call, func: ast.Attribute, place: Place, deeper: list[Any]) -> None:
        self.survey.context_calls.append((node, place))
        self.survey.attributes[func.attr].append((func, place))
        if func.attr in FANOUTS:
            self.inner.append((node.args, place.handed_to(node)))
            self.inner.append((node.keywords, place.plain()))
        elif place.fanout is None:
            deeper += node.args
            deeper += node.keywords
        else:
            self.inner.append(([*node.args, *node.keywords], place.plain()))

    def changing_call(self, node: ast.Call, func: ast.Attribute, place: Place, arguments: list[Any]) -> None:
        value = node.args[-1] if node.args else None
        receiver = func.value
        if isinstance(receiver, ast.Name):
            self.changes.append(Definition(receiver.id, Kind.CHANGE, place, node, value))
            self.survey.attributes[func.attr].append((func, place))
            if func.attr in _ANSWERING_METHODS:
                arguments.append(receiver)
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, place, node, value))
            arguments.append(func)

    def comprehension(self, node: Comprehension, place: Place, _deeper: list[Any]) -> None:
        scope = Scope(node, place.scope, place)
        self.survey.scopes[node] = scope
        outside, value_place = place.plain(), Place(scope, place.block, place.index, place, place.fanout)
        inside = value_place.plain()
        for number, generator in enumerate(node.generators):
            iterated_at = inside if number else outside
            self.inner.append(((generator.iter,), iterated_at))
            rest: list[Any] = list(generator.ifs)
            source = _Source(Kind.TARGET, scope, iterated_at, node, generator.iter)
            self.bind(generator.target, source, (Part.EACH,), rest)
            self.inner.append((rest, inside))
        values = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        self.inner.append((values, value_place))

    def lambda_(self, node: ast.Lambda, place: Place, deeper: list[Any]) -> None:
        scope = Scope(node, place.scope, place)
        self.survey.scopes[node] = scope
        block = Block([], scope, None)
        self.survey.blocks[node] = [block]
        inside = Place(scope, block, 0)
        scope.returns.append((node.body, inside))
        deeper += self.parameters(node.args, scope, block)
        self.inner.append(((node.body,), inside))

    def walrus(self, node: ast.NamedExpr, place: Place, deeper: list[Any]) -> None:
        source = _Source(Kind.WALRUS, place.scope.function(), place, node, node.value)
        self.bind(node.target, source, (), deeper)
        deeper.append(node.value)

    def yield_(self, node: ast.Yield | ast.YieldFrom, place: Place, deeper: list[Any]) -> None:
        place.function.yields.append((node, place))
        deeper.append(node.value)

    def capture(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, place: Place, deeper: list[Any]) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self.define(name, _Source(Kind.OTHER, place.scope, place, node, None))
        if isinstance(node, ast.MatchAs):
            deeper.append(node.pattern)
        elif isinstance(node, ast.MatchMapping):
            deeper += node.keys
            deeper += node.patterns

    # Names

    def define(self, name: str, source: _Source, path: Steps = ()) -> None:
        definition = Definition(name, source.kind, source.place, source.node, source.value, path)
        source.scope.definitions.setdefault(name, []).append(definition)

    def bind(self, target: ast.expr, source: _Source, path: Steps, rest: list[Any]) -> None:
        """Define what ``target`` binds to the value at ``path`` of its source; ``rest`` gets what is left to walk."""
        if isinstance(target, ast.Name):
            self.define(target.id, source, path)
        elif isinstance(target, ast.Tuple | ast.List):
            known = True
            for index, item in enumerate(target.elts):
                if isinstance(item, ast.Starred):
                    known = False
                    self.bind(item.value, source._replace(kind=Kind.REST), path, rest)
                else:
                    self.bind(item, source, (*path, index if known else Part.ANY), rest)
        elif isinstance(target, ast.Subscript):
            self.change(target, source, path, rest)
        else:
            rest.append(target)

    def change(self, target: ast.Subscript, source: _Source, path: Steps, rest: list[Any]) -> None:
        """Note that an item is assigned or deleted."""
        rest.append(target.slice)
        holder = target.value
        if isinstance(holder, ast.Name) and holder.id != CONTEXT:
            self.changes.append(Definition(holder.id, Kind.CHANGE, source.place, target, source.value, path))
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, source.place, target, source.value, path))
            rest.append(holder)

    def parameters(self, arguments: ast.arguments, scope: Scope, block: Block) -> list[Any]:
        """Define a function's parameters; return its defaults and annotations, which belong to the place around it."""
        entry = Place(scope, block, -1)
        every = parameters_of(arguments)
        for argument in every:
            self.define(argument.arg, _Source(Kind.PARAMETER, scope, entry, argument, None))
        return [*arguments.defaults, *arguments.kw_defaults, *(argument.annotation for argument in every)]

    # Statements

    def plain_statement(self, node: ast.stmt, place: Place) -> None:
        self.walk([getattr(node, name) for name in PLAIN_STATEMENTS[node.__class__]], place)

    def assignment(self, node: ast.Assign, place: Place) -> None:
        rest: list[Any] = [node.value]
        source = _Source(Kind.ASSIGN, place.scope, place, node, node.value)
        for target in node.targets:
            self.bind(target, source, (), rest)
        self.walk(rest, place)

    def annotated_assignment(self, node: ast.AnnAssign, place: Place) -> None:
        rest: list[Any] = [node.annotation, node.value]
        if node.value is not None:
            self.bind(node.target, _Source(Kind.ASSIGN, place.scope, place, node, node.value), (), rest)
        self.walk(rest, place)

    def augmented_assignment(self, node: ast.AugAssign, place: Place) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            self.define(target.id, _Source(Kind.AUGMENT, place.scope, place, node, node.value))
            self.walk((node.value,), place)
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, place, node, node.value))
            self.walk((target, node.value), place)

    def delete(self, node: ast.Delete, place: Place) -> None:
        rest: list[Any] = []
        source = _Source(Kind.OTHER, place.scope, place, node, None)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.change(target, source, (), rest)
            elif not isinstance(target, ast.Name) or target.id == CONTEXT:
                rest.append(target)
        self.walk(rest, place)

    def leave(self, node: ast.Break | ast.Raise | ast.Return, place: Place) -> None:
        self.survey.leaving.update(place.loops())
        if isinstance(node, ast.Raise):
            self.walk((node.exc, node.cause), place)
        elif isinstance(node, ast.Return) and node.value is not None:
            place.scope.returns.append((node.value, place))
            self.walk((node.value,), place)

    def import_(self, node: ast.Import | ast.ImportFrom, place: Place) -> None:
        source = _Source(Kind.OTHER, place.scope, place, node, None)
        for alias in node.names:
            self.define(alias.asname or alias.name.partition(".")[0], source)

    def declaration(self, node: ast.Global | ast.Nonlocal, place: Place) -> None:
        self.scopes_that_declare.append(place.scope)
        place.scope.declared.update(dict.fromkeys(node.names, isinstance(node, ast.Global)))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: Place) -> None:
        self.define(node.name, _Source(Kind.FUNCTION, place.scope, place, node, None))
        scope = Scope(node, place.scope, place)
        self.survey.scopes[node] = scope
        body = self.block(node, node.body, scope, None)
        around = self.parameters(node.args, scope, body)
        self.walk([*node.decorator_list, *around, node.returns, *getattr(node, "type_params", ())], place)

    def if_(self, node: ast.If, place: Place) -> None:
        self.walk((node.test,), place)
        self.block(node, node.body, place.scope, place)
        self.block(node, node.orelse, place.scope, place, role="orelse")

    def while_(self, node: ast.While, place: Place) -> None:
        test = Block([], place.scope, place, "test")
        self.survey.blocks[node] = [test]
        self.walk((node.test,), Place(place.scope, test, 0))
        self.block(node, node.body, place.scope, place)
        self.block(node, node.orelse, place.scope, place, role="orelse")

    def for_(self, node: ast.For | ast.AsyncFor, place: Place) -> None:
        rest: list[Any] = [node.iter]
        body = self.block(node, node.body, place.scope, place)
        source = _Source(Kind.TARGET, place.scope, Place(place.scope, body, -1), node, node.iter)
        self.bind(node.target, source, (Part.EACH,), rest)
        self.block(node, node.orelse, place.scope, place, role="orelse")
        self.walk(rest, place)

    def with_(self, node: ast.With | ast.AsyncWith, place: Place) -> None:
        body = self.block(node, node.body, place.scope, place)
        rest: list[Any] = [item.context_expr for item in node.items]
        source = _Source(Kind.OTHER, place.scope, Place(place.scope, body, -1), node, None)
        for item in node.items:
            if item.optional_vars is not None:
                self.bind(item.optional_vars, source, (), rest)
        self.walk(rest, place)

    def try_(self, node: ast.Try, place: Place) -> None:
        self.block(node, node.body, place.scope, place)
        for handler in node.handlers:
            block = self.block(node, handler.body, place.scope, place, role="handler")
            self.walk((handler.type,), place)
            if handler.name is not None:
                entry = Place(place.scope, block, -1)
                self.define(handler.name, _Source(Kind.OTHER, place.scope, entry, handler, None))
        self.block(node, node.orelse, place.scope, place, role="orelse")
        self.block(node, node.finalbody, place.scope, place, role="finalbody")

    def match(self, node: ast.Match, place: Place) -> None:
        self.walk((node.subject,), place)
        for case in node.cases:
            entry = Place(place.scope, self.block(node, case.body, place.scope, place, role="case"), -1)
            self.walk((case.pattern, case.guard), entry)


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    """Return every parameter of a function, ``*rest`` and ``**options`` at the end."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]


def _is_context(argument: Any) -> bool:
    value = argument.value if argument.__class__ is ast.keyword else argument
    return value.__class__ is ast.Name and value.id == CONTEXT


_ExpressionHandler: TypeAlias = Callable[[_Walk, Any, Place, list[Any]], None]
_StatementHandler: TypeAlias = Callable[[_Walk, Any, Place], None]

_HANDLERS: dict[type[ast.AST], _ExpressionHandler] = {
    ast.Attribute: _Walk.attribute,
    ast.Await: _Walk.await_,
    ast.Call: _Walk.call,
    ast.DictComp: _Walk.comprehension,
    ast.GeneratorExp: _Walk.comprehension,
    ast.Lambda: _Walk.lambda_,
    ast.ListComp: _Walk.comprehension,
    ast.MatchAs: _Walk.capture,
    ast.MatchMapping: _Walk.capture,
    ast.MatchStar: _Walk.capture,
    ast.NamedExpr: _Walk.walrus,
    ast.SetComp: _Walk.comprehension,
    ast.Yield: _Walk.yield_,
    ast.YieldFrom: _Walk.yield_,
}
STATEMENTS: dict[type[ast.AST], _StatementHandler] = {
    **dict.fromkeys(PLAIN_STATEMENTS, _Walk.plain_statement),
    ast.AnnAssign: _Walk.annotated_assignment,
    ast.Assign: _Walk.assignment,
    ast.AsyncFor: _Walk.for_,
    ast.AsyncFunctionDef: _Walk.function,
    ast.AsyncWith: _Walk.with_,
    ast.AugAssign: _Walk.augmented_assignment,
    ast.Break: _Walk.leave,
    ast.Delete: _Walk.delete,
    ast.For: _Walk.for_,
    ast.FunctionDef: _Walk.function,
    ast.Global: _Walk.declaration,
    ast.If: _Walk.if_,
    ast.Import: _Walk.import_,
    ast.ImportFrom: _Walk.import_,
    ast.Match: _Walk.match,
    ast.Nonlocal: _Walk.declaration,
    ast.Raise: _Walk.leave,
    ast.Return: _Walk.leave,
    ast.Try: _Walk.try_,
    ast.While: _Walk.while_,
    ast.With: _Walk.with_,
}
