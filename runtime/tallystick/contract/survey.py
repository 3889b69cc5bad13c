"""The checker's one walk over the tree: it finds what rules want to see and builds the scopes (contract.md, section 4).

The walk goes block by block, and inside a statement level by level, so that it needs no recursion. ``EXPRESSIONS``
and the statement handlers are together the allow-list of syntax: a node that neither knows is reported as unknown,
and its inside is not looked at. So syntax that a later Python adds is refused until somebody has decided about it.

Left out: ``ast.NodeVisitor`` costs three times as much; one walk per rule costs as many walks as there are rules.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tallystick.contract.scopes import Block, Comprehension, Definition, FunctionNode, Kind, Part, Place, Scope, Steps

Found: TypeAlias = tuple[Any, Place]
"""A node and where it is evaluated."""

CONTEXT = "ctx"
ENTRY = "orchestrate"
FANOUTS = frozenset({"parallel", "pipeline", "dag", "race"})

CHANGING_METHODS = frozenset(
    {
        *("append", "insert", "extend", "add", "update", "setdefault", "symmetric_difference_update"),
        *("pop", "popitem", "remove", "discard", "clear", "difference_update", "intersection_update"),
    }
)
"""Methods that change the length of the list, dict or set they are called on."""
_ANSWERING_METHODS = frozenset({"pop", "popitem", "setdefault"})

# The expressions and patterns of the subset with the fields to walk; where a handler of _Walk walks on, none.
EXPRESSIONS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: (),
    ast.Await: (),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Call: (),
    ast.Compare: ("left", "comparators"),
    ast.Constant: (),
    ast.Dict: ("keys", "values"),
    ast.DictComp: (),
    ast.FormattedValue: ("value", "format_spec"),
    ast.GeneratorExp: (),
    ast.IfExp: ("test", "body", "orelse"),
    ast.JoinedStr: ("values",),
    ast.Lambda: (),
    ast.List: ("elts",),
    ast.ListComp: (),
    ast.MatchAs: (),
    ast.MatchClass: ("cls", "patterns", "kwd_patterns"),
    ast.MatchMapping: (),
    ast.MatchOr: ("patterns",),
    ast.MatchSequence: ("patterns",),
    ast.MatchSingleton: (),
    ast.MatchStar: (),
    ast.MatchValue: ("value",),
    ast.Name: (),
    ast.NamedExpr: (),
    ast.Set: ("elts",),
    ast.SetComp: (),
    ast.Slice: ("lower", "upper", "step"),
    ast.Starred: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
    ast.Yield: (),
    ast.YieldFrom: (),
    ast.keyword: ("value",),
}

# Statements that hold nothing but expressions, in these fields.
_PLAIN_STATEMENTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Assert: ("test", "msg"),
    ast.Continue: (),
    ast.Expr: ("value",),
    ast.Pass: (),
}


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
        attributes: every attribute that is written, by its name.
        leaving: loops that a ``break``, ``return`` or ``raise`` may leave before their end.
        wild_changes: changes to lists, dicts and sets that no name holds directly.
        awaited: calls that stand directly under an ``await``.
        awaits: awaits of anything but a call.
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
        self.attributes: dict[str, list[Found]] = defaultdict(list)
        self.leaving: set[ast.AST] = set()
        self.wild_changes: list[Definition] = []
        self.awaited: set[ast.Call] = set()
        self.awaits: list[Found] = []
        self.unknown: list[ast.AST] = []

    def functions(self) -> list[Scope]:
        """Return the scopes of all functions and lambdas."""
        return [scope for scope in self.scopes.values() if isinstance(scope.node, FunctionNode)]


def survey(tree: ast.Module, wanted: Iterable[type[ast.AST]] = ()) -> Survey:
    """Walk a module once; ``wanted`` are the node types that ``found`` collects."""
    walk = _Walk(Survey(tree), frozenset(wanted))
    walk.run()
    return walk.survey


class _Walk:
    def __init__(self, result: Survey, wanted: frozenset[type[ast.AST]]) -> None:
        self.survey = result
        self.queue: list[Block] = []
        self.inner: list[tuple[Sequence[Any], Place]] = []  # expressions that are evaluated in a place of their own
        self.changes: list[Definition] = []
        self.scopes_that_declare: list[Scope] = []
        found = result.found = {kind: [] for kind in wanted}
        self.attributes = result.attributes
        handlers: dict[type[ast.AST], Callable[[Any, Place, list[Any]], None]] = {
            ast.Attribute: self.attribute,
            ast.Await: self.await_,
            ast.Call: self.call,
            ast.DictComp: self.comprehension,
            ast.GeneratorExp: self.comprehension,
            ast.Lambda: self.lambda_,
            ast.ListComp: self.comprehension,
            ast.MatchAs: self.capture,
            ast.MatchMapping: self.capture,
            ast.MatchStar: self.capture,
            ast.NamedExpr: self.walrus,
            ast.SetComp: self.comprehension,
            ast.Yield: self.yield_,
            ast.YieldFrom: self.yield_,
        }
        self.expressions: dict[type[Any], tuple[list[Found] | None, Any, tuple[str, ...]]] = {
            kind: (found.get(kind), handlers.get(kind), fields) for kind, fields in EXPRESSIONS.items()
        }
        self.expressions[type(None)] = (None, None, ())  # an absent part: a dict's ** key, a slice without a stop
        self.statements: dict[type[ast.AST], Callable[[Any, Place], None]] = {
            **dict.fromkeys(_PLAIN_STATEMENTS, self.plain_statement),
            ast.AnnAssign: self.annotated_assignment,
            ast.Assign: self.assignment,
            ast.AsyncFor: self.for_,
            ast.AsyncFunctionDef: self.function,
            ast.AsyncWith: self.with_,
            ast.AugAssign: self.augmented_assignment,
            ast.Break: self.leave,
            ast.Delete: self.delete,
            ast.For: self.for_,
            ast.FunctionDef: self.function,
            ast.Global: self.declaration,
            ast.If: self.if_,
            ast.Import: self.import_,
            ast.ImportFrom: self.import_,
            ast.Match: self.match,
            ast.Nonlocal: self.declaration,
            ast.Raise: self.leave,
            ast.Return: self.return_,
            ast.Try: self.try_,
            ast.While: self.while_,
            ast.With: self.with_,
        }

    def run(self) -> None:
        survey = self.survey
        body = self.block(survey.tree, survey.tree.body, survey.module, None)
        if ast.Module in survey.found:
            survey.found[ast.Module].append((survey.tree, Place(survey.module, body, -1)))
        for block in self.queue:  # grows while it is walked
            for index, statement in enumerate(block.statements):
                kind = statement.__class__
                handler = self.statements.get(kind)
                if handler is None:
                    survey.unknown.append(statement)
                    continue
                place = Place(block.scope, block, index)
                if kind in survey.found:
                    survey.found[kind].append((statement, place))
                handler(statement, place)
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
            owner_of_change = change.place.scope.resolve(change.name)
            if owner_of_change is not None:
                owner_of_change.changes.setdefault(change.name, []).append(change)

    def block(
        self,
        node: ast.AST,
        statements: list[ast.stmt],
        scope: Scope,
        owner: Place | None,
        role: str = "body",
        part: ast.excepthandler | ast.match_case | None = None,
    ) -> Block:
        block = Block(statements, scope, owner, role, part)
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
                        handler(node, place, deeper)
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
        self.attributes[node.attr].append((node, place))
        if node.value.__class__ is ast.Name and node.value.id == CONTEXT:  # type: ignore[attr-defined]  # the class was compared, which is cheaper than isinstance
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
            if any(_is_context(argument) for argument in arguments):  # rule R02 looks at what it is handed to
                arguments = [argument for argument in arguments if not _is_context(argument)]
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
        self.attributes[func.attr].append((func, place))
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
            self.attributes[func.attr].append((func, place))
            if func.attr in _ANSWERING_METHODS:
                arguments.append(receiver)
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, place, node, value))
            arguments.append(func)

    def comprehension(self, node: Comprehension, place: Place, deeper: list[Any]) -> None:
        scope = Scope(node, place.scope, place)
        self.survey.scopes[node] = scope
        outside, value_place = place.plain(), Place(scope, place.block, place.index, place, place.fanout)
        inside = value_place.plain()
        for number, generator in enumerate(node.generators):
            iterated_at = inside if number else outside
            self.inner.append(((generator.iter,), iterated_at))
            rest: list[Any] = list(generator.ifs)
            self.bind(generator.target, generator.iter, (Part.EACH,), iterated_at, node, rest, Kind.TARGET, scope)
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
        self.define(node.target.id, Kind.WALRUS, place, node, node.value, (), place.scope.function())
        deeper.append(node.value)

    def yield_(self, node: ast.Yield | ast.YieldFrom, place: Place, deeper: list[Any]) -> None:
        place.function.yields.append((node, place))
        deeper.append(node.value)

    def capture(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, place: Place, deeper: list[Any]) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self.define(name, Kind.OTHER, place, node)
        if isinstance(node, ast.MatchAs):
            deeper.append(node.pattern)
        elif isinstance(node, ast.MatchMapping):
            deeper += node.keys
            deeper += node.patterns

    # Names

    def define(
        self,
        name: str,
        kind: Kind,
        place: Place,
        node: ast.AST,
        value: ast.expr | None = None,
        path: Steps = (),
        scope: Scope | None = None,
    ) -> None:
        definitions = (scope or place.scope).definitions
        definitions.setdefault(name, []).append(Definition(name, kind, place, node, value, path))

    def bind(
        self,
        target: ast.expr,
        value: ast.expr | None,
        path: Steps,
        place: Place,
        node: ast.AST,
        rest: list[Any],
        kind: Kind = Kind.ASSIGN,
        scope: Scope | None = None,
    ) -> None:
        """Define what ``target`` binds to the value at ``path`` of ``value``; ``rest`` gets what is left to walk."""
        if isinstance(target, ast.Name):
            self.define(target.id, kind, place, node, value, path, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            known = True
            for index, item in enumerate(target.elts):
                if isinstance(item, ast.Starred):
                    known = False
                    self.bind(item.value, value, path, place, node, rest, Kind.REST, scope)
                else:
                    self.bind(item, value, (*path, index if known else Part.ANY), place, node, rest, kind, scope)
        elif isinstance(target, ast.Subscript):
            rest.append(target.slice)
            self.change(target, value, path, place, rest)
        else:
            rest.append(target)

    def change(self, target: ast.Subscript, value: ast.expr | None, path: Steps, place: Place, rest: list[Any]) -> None:
        holder = target.value
        if isinstance(holder, ast.Name) and holder.id != CONTEXT:
            self.changes.append(Definition(holder.id, Kind.CHANGE, place, target, value, path))
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, place, target, value, path))
            rest.append(holder)

    def parameters(self, arguments: ast.arguments, scope: Scope, block: Block) -> list[Any]:
        """Define a function's parameters; return its defaults and annotations, which belong to the place around it."""
        entry = Place(scope, block, -1)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        for argument in every:
            self.define(argument.arg, Kind.PARAMETER, entry, argument)
        return [*arguments.defaults, *arguments.kw_defaults, *(argument.annotation for argument in every)]

    # Statements

    def plain_statement(self, node: ast.stmt, place: Place) -> None:
        self.walk([getattr(node, name) for name in _PLAIN_STATEMENTS[node.__class__]], place)

    def assignment(self, node: ast.Assign, place: Place) -> None:
        rest: list[Any] = [node.value]
        for target in node.targets:
            self.bind(target, node.value, (), place, node, rest)
        self.walk(rest, place)

    def annotated_assignment(self, node: ast.AnnAssign, place: Place) -> None:
        rest: list[Any] = [node.annotation, node.value]
        if node.value is not None:
            self.bind(node.target, node.value, (), place, node, rest)
        self.walk(rest, place)

    def augmented_assignment(self, node: ast.AugAssign, place: Place) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            self.define(target.id, Kind.AUGMENT, place, node, node.value)
            self.walk((node.value,), place)
        else:
            self.survey.wild_changes.append(Definition("", Kind.CHANGE, place, node, node.value))
            self.walk((target, node.value), place)

    def delete(self, node: ast.Delete, place: Place) -> None:
        rest: list[Any] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                rest.append(target.slice)
                self.change(target, None, (), place, rest)
            elif not isinstance(target, ast.Name) or target.id == CONTEXT:
                rest.append(target)
        self.walk(rest, place)

    def leave(self, node: ast.Break | ast.Raise, place: Place) -> None:
        self.survey.leaving.update(place.loops())
        if isinstance(node, ast.Raise):
            self.walk((node.exc, node.cause), place)

    def return_(self, node: ast.Return, place: Place) -> None:
        self.survey.leaving.update(place.loops())
        if node.value is not None:
            place.scope.returns.append((node.value, place))
            self.walk((node.value,), place)

    def import_(self, node: ast.Import | ast.ImportFrom, place: Place) -> None:
        for alias in node.names:
            self.define(alias.asname or alias.name.partition(".")[0], Kind.OTHER, place, node)

    def declaration(self, node: ast.Global | ast.Nonlocal, place: Place) -> None:
        self.scopes_that_declare.append(place.scope)
        place.scope.declared.update(dict.fromkeys(node.names, isinstance(node, ast.Global)))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: Place) -> None:
        self.define(node.name, Kind.FUNCTION, place, node)
        scope = Scope(node, place.scope, place)
        self.survey.scopes[node] = scope
        body = self.block(node, node.body, scope, None)
        around = self.parameters(node.args, scope, body)
        self.walk([*node.decorator_list, *around, node.returns, *getattr(node, "type_params", ())], place)

    def if_(self, node: ast.If, place: Place) -> None:
        self.walk((node.test,), place)
        self.block(node, node.body, place.scope, place)
        if node.orelse:
            self.block(node, node.orelse, place.scope, place, "orelse")

    def while_(self, node: ast.While, place: Place) -> None:
        test = Block([], place.scope, place, "test")
        self.survey.blocks[node] = [test]
        self.walk((node.test,), Place(place.scope, test, 0))
        self.block(node, node.body, place.scope, place)
        self.block(node, node.orelse, place.scope, place, "orelse")

    def for_(self, node: ast.For | ast.AsyncFor, place: Place) -> None:
        rest: list[Any] = [node.iter]
        body = self.block(node, node.body, place.scope, place)
        self.bind(node.target, node.iter, (Part.EACH,), Place(place.scope, body, -1), node, rest, Kind.TARGET)
        self.block(node, node.orelse, place.scope, place, "orelse")
        self.walk(rest, place)

    def with_(self, node: ast.With | ast.AsyncWith, place: Place) -> None:
        body = self.block(node, node.body, place.scope, place)
        rest: list[Any] = [item.context_expr for item in node.items]
        for item in node.items:
            if item.optional_vars is not None:
                self.bind(item.optional_vars, None, (), Place(place.scope, body, -1), node, rest, Kind.OTHER)
        self.walk(rest, place)

    def try_(self, node: ast.Try, place: Place) -> None:
        self.block(node, node.body, place.scope, place)
        for handler in node.handlers:
            block = self.block(node, handler.body, place.scope, place, "handler", handler)
            self.walk((handler.type,), place)
            if handler.name is not None:
                self.define(handler.name, Kind.OTHER, Place(place.scope, block, -1), handler)
        self.block(node, node.orelse, place.scope, place, "orelse")
        self.block(node, node.finalbody, place.scope, place, "finalbody")

    def match(self, node: ast.Match, place: Place) -> None:
        self.walk((node.subject,), place)
        for case in node.cases:
            block = self.block(node, case.body, place.scope, place, "case", case)
            self.walk((case.pattern,), Place(place.scope, block, -1))
            if case.guard is not None:
                self.walk((case.guard,), Place(place.scope, block, -1))


def _is_context(argument: ast.expr | ast.keyword) -> bool:
    value = argument.value if isinstance(argument, ast.keyword) else argument
    return isinstance(value, ast.Name) and value.id == CONTEXT
