"""Mutations of accepted scripts: those that break a rule of the checker, and those that break none.

Each takes the source of a script and returns another, or None where the script has no place for it. What is inserted
stands at the beginning of ``orchestrate``; names of the corpus are not used again.
"""

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

Mutation: TypeAlias = Callable[[str], str | None]

CALL = 'await ctx.run("text.generate", {"prompt": "one more"})'


def inserted(head: str, module: str = "") -> Mutation:
    """Return what puts statements at the beginning of ``orchestrate``, and definitions in front of it."""

    def mutate(source: str) -> str:
        tree = ast.parse(source)
        entry = _entry(tree)
        at = 1 if ast.get_docstring(entry) else 0
        entry.body[at:at] = ast.parse(head).body
        where = tree.body.index(entry)
        tree.body[where:where] = ast.parse(module).body
        return ast.unparse(tree)

    return mutate


def _entry(tree: ast.Module) -> ast.AsyncFunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == "orchestrate")


def _on_tree(change: Callable[[ast.Module], bool]) -> Mutation:
    """Change the tree in place; ``change`` says whether there was a place for it."""

    def mutate(source: str) -> str | None:
        tree = ast.parse(source)
        return ast.unparse(ast.fix_missing_locations(tree)) if change(tree) else None

    return mutate


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
    ]


def _statements(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int]]:
    """List the simple statements that await a capability call, as body and index."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            found = getattr(node, field, None)
            body: list[ast.stmt] = found if isinstance(found, list) else []
            for index, statement in enumerate(body):
                simple = isinstance(statement, ast.Assign | ast.Expr)
                if simple and any(isinstance(inner, ast.Await) and _calls(inner) for inner in ast.walk(statement)):
                    yield body, index


# What breaks a rule.


def _renamed_entry(tree: ast.Module) -> bool:
    _entry(tree).name = "main"
    return True


def _third_parameter(tree: ast.Module) -> bool:
    _entry(tree).args.args.append(ast.arg("more"))
    return True


def _second_entry(tree: ast.Module) -> bool:
    tree.body += ast.parse("async def orchestrate(ctx, args):\n    return args").body
    return True


def _computed_capability(tree: ast.Module) -> bool:
    for call in _calls(tree):
        match call.args[0]:
            case ast.Constant(value=str(name)):
                kind, dot, verb = name.partition(".")
                call.args[0] = ast.BinOp(ast.Constant(kind + dot), ast.Add(), ast.Constant(verb))
                return True
    return False


def _alias_of_run(tree: ast.Module) -> bool:
    entry = _entry(tree)
    for call in _calls(entry):
        call.func = ast.Name("run", ast.Load())
    entry.body.insert(0, ast.parse("run = ctx.run").body[0])
    return True


def _starred_arguments(tree: ast.Module) -> bool:
    call = _calls(tree)[0]
    call.args = [ast.Starred(ast.Tuple(call.args, ast.Load()), ast.Load())]
    return True


def _first_await_dropped(tree: ast.Module) -> bool:
    for body, index in _statements(tree):
        match body[index]:
            case (
                ast.Expr(value=ast.Await(value=ast.Call() as call))
                | ast.Assign(value=ast.Await(value=ast.Call() as call))
            ):
                if call in _calls(tree):
                    body.insert(index, ast.Expr(call))
                    return True
    return False


def _tried(handler: str) -> Callable[[ast.Module], bool]:
    def change(tree: ast.Module) -> bool:
        for body, index in _statements(tree):
            wrapped = ast.parse(handler).body[0]
            assert isinstance(wrapped, ast.Try)
            wrapped.body = [body[index]]
            body[index] = wrapped
            return True
        return False

    return change


def _in_payload(entry: str) -> Callable[[ast.Module], bool]:
    def change(tree: ast.Module) -> bool:
        added = ast.parse(f"{{{entry}}}", mode="eval").body
        assert isinstance(added, ast.Dict)
        for call in _calls(tree):
            payload = call.args[1]
            if isinstance(payload, ast.Dict):
                payload.keys += added.keys
                payload.values += added.values
                return True
        return False

    return change


def _unbounded_slices(tree: ast.Module) -> bool:
    """Take the bound away where a statement loops or fans out over a slice of what came in."""

    class Unbound(ast.NodeTransformer):
        found = False

        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            match node:
                case ast.Subscript(value=ast.Subscript(value=ast.Name("args")) as whole, slice=ast.Slice(lower=None)):
                    self.found = True
                    return whole
            return self.generic_visit(node)

    unbound = Unbound()
    unbound.visit(tree)
    return unbound.found


def _site_given(tree: ast.Module) -> bool:
    _calls(tree)[0].keywords.append(ast.keyword("_site", ast.Constant("orchestrate/#1")))
    return True


def _misspelt(tree: ast.Module) -> bool:
    for call in _calls(tree):
        match call.args[0]:
            case ast.Constant(value=str(name)):
                call.args[0] = ast.Constant(f"{name}s")
                return True
    return False


DESTROYING: dict[str, tuple[str, Mutation]] = {
    "cut off": ("R00", lambda source: source[: source.rindex("(") + 1]),
    "fenced": ("R00", lambda source: f"```python\n{source}```\n"),
    "run on import": ("R00", lambda source: f"{source}\nprint(orchestrate)\n"),
    "entry renamed": ("R01", _on_tree(_renamed_entry)),
    "third parameter": ("R01", _on_tree(_third_parameter)),
    "second entry": ("R01", _on_tree(_second_entry)),
    "computed capability": ("R02", _on_tree(_computed_capability)),
    "alias of run": ("R02", _on_tree(_alias_of_run)),
    "starred arguments": ("R02", _on_tree(_starred_arguments)),
    "coroutine dropped": ("R02", _on_tree(_first_await_dropped)),
    "context kept": ("R02", inserted("mine = [ctx]")),
    "unknown attribute": ("R02", inserted("await ctx.fetch('https://example.com')")),
    "endless loop": ("R03", inserted(f"while True:\n    {CALL}")),
    "loop over what came in": ("R03", inserted(f"for one in args['many']:\n    {CALL}")),
    "loop until good": ("R03", inserted(f"good = False\nwhile not good:\n    good = ({CALL})['text'] == 'yes'")),
    "hash": ("R04", inserted("seed = hash(str(args))")),
    "identity of an object": ("R04", inserted("seed = id(args) % 97")),
    "clock": ("R04", inserted("seed = time.time()", "import time")),
    "global changed": ("R04", inserted("TOLD.append(1)", "TOLD = []")),
    "fanout over what came in": (
        "R05",
        inserted("await ctx.parallel([ctx.run('text.generate', {'prompt': one}) for one in args['many']])"),
    ),
    "fanout of a list without a cap": (
        "R05",
        inserted(
            "jobs = []\nfor one in args['many']:\n"
            "    jobs.append(ctx.run('text.generate', {'prompt': one}))\nawait ctx.parallel(jobs)"
        ),
    ),
    "bound of slices removed": ("R03|R05", _on_tree(_unbounded_slices)),
    "recursion": (
        "R06",
        inserted(
            "await again(ctx, 3)",
            f"async def again(ctx, left):\n    {CALL}\n    if left:\n        await again(ctx, left - 1)",
        ),
    ),
    "mutual recursion": (
        "R06",
        inserted(
            "await ping(ctx)",
            f"async def ping(ctx):\n    {CALL}\n    await pong(ctx)\nasync def pong(ctx):\n    await ping(ctx)",
        ),
    ),
    "bare except": ("R07", _on_tree(_tried("try:\n    pass\nexcept:\n    raise"))),
    "except BaseException": ("R07", _on_tree(_tried("try:\n    pass\nexcept (ValueError, BaseException):\n    raise"))),
    "call in finally": ("R07", _on_tree(_tried(f"try:\n    pass\nfinally:\n    {CALL}"))),
    "set in the payload": ("R08", _on_tree(_in_payload("'tags': {'a', 'b'}"))),
    "bytes in the payload": ("R08", _on_tree(_in_payload("'blob': b'raw'"))),
    "number as a key": ("R08", _on_tree(_in_payload("'sizes': {1: 'small'}"))),
    "lambda in the payload": ("R08", _on_tree(_in_payload("'key': lambda one: one"))),
    "arrivals in a list": (
        "R09",
        inserted(
            "arrivals = []\nasync def arrive(one):\n"
            "    arrivals.append((await ctx.run('text.generate', {'prompt': one}))['text'])\n"
            "await ctx.parallel([arrive(one) for one in ('a', 'b')])\nctx.log('; '.join(arrivals))"
        ),
    ),
    "the last to arrive": (
        "R09",
        inserted(
            "latest = None\nasync def arrive(one):\n    nonlocal latest\n"
            "    latest = await ctx.run('text.generate', {'prompt': one})\n"
            "await ctx.parallel([arrive(one) for one in ('a', 'b')])\nctx.log(latest['text'])"
        ),
    ),
    "import": ("R10", lambda source: f"import json\n{source}"),
    "dunder": ("R10", inserted("kind = args.__class__")),
    "getattr": ("R10", inserted("kind = getattr(args, 'items')")),
    "eval": ("R10", inserted("kind = eval('1 + 1')")),
    "format that reaches an attribute": ("R10", inserted("kind = '{0.real}'.format(1)")),
    "site given": ("R10", _on_tree(_site_given)),
    "unknown capability": ("R11", _on_tree(_misspelt)),
    "capability without a grant": (
        "R11",
        inserted("await ctx.run('music.generate', {'prompt': 'a', 'duration_s': 1})"),
    ),
    "more calls than allowed": ("R11", inserted(f"for turn in range(400):\n    {CALL}")),
    "loop over a set": ("R12", inserted("for one in {'a', 'b'}:\n    await ctx.run('text.generate', {'prompt': one})")),
    "set joined": (
        "R12",
        inserted("words = '; '.join(set(str(args).split()))\nawait ctx.run('text.generate', {'prompt': words})"),
    ),
    "list of a set": (
        "R12",
        inserted("words = list({'a', 'b'} | {'c'})\nawait ctx.run('text.generate', {'prompt': words[0]})"),
    ),
}


#: Mutants that still keep the rule that their mutation is meant to break, and so are none: mutation and script.
STILL_SOUND = {("bound of slices removed", "24-weekly-digest")}  # its batches have a bound of their own


# What breaks none.


def _constant_hoisted(tree: ast.Module) -> bool:
    for call in _calls(tree):
        payload = call.args[1]
        if not isinstance(payload, ast.Dict):
            continue
        for at, value in enumerate(payload.values):
            if isinstance(value, ast.Constant):
                payload.values[at] = ast.Name("HOISTED", ast.Load())
                tree.body.insert(0, ast.Assign([ast.Name("HOISTED", ast.Store())], value))
                return True
    return False


def _payload_named(tree: ast.Module) -> bool:
    """Build the payload of a call in the statement before it."""
    for body, index in _statements(tree):
        calls = _calls(body[index])
        if len(calls) == 1 and isinstance(calls[0].args[1], ast.Dict):
            inside = [node for node in ast.walk(body[index]) if isinstance(node, ast.comprehension | ast.Lambda)]
            if not inside:
                payload, calls[0].args[1] = calls[0].args[1], ast.Name("asked", ast.Load())
                body.insert(index, ast.Assign([ast.Name("asked", ast.Store())], payload))
                return True
    return False


def _nested_renamed(tree: ast.Module) -> bool:
    entry = _entry(tree)
    names = [node.name for node in entry.body if isinstance(node, ast.AsyncFunctionDef)]
    for node in ast.walk(entry):
        if isinstance(node, ast.AsyncFunctionDef) and node.name in names:
            node.name += "_renamed"
        elif isinstance(node, ast.Name) and node.id in names:
            node.id += "_renamed"
    return bool(names)


def _documented(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not ast.get_docstring(node):
            node.body.insert(0, ast.Expr(ast.Constant("Do as the name says: import nothing, eval() nothing.")))
    return True


PRESERVING: dict[str, Mutation] = {
    "other layout": _on_tree(lambda _: True),
    "comments": lambda source: source.replace("\n\n", "\n# while True: import os\n\n"),
    "docstrings": _on_tree(_documented),
    "payload constant hoisted": _on_tree(_constant_hoisted),
    "payload named": _on_tree(_payload_named),
    "nested functions renamed": _on_tree(_nested_renamed),
    "failure handed on": _on_tree(
        _tried("try:\n    pass\nexcept CapabilityError as problem:\n    ctx.log(problem.text)\n    raise")
    ),
    "except Exception": _on_tree(_tried("try:\n    pass\nexcept Exception:\n    raise\nelse:\n    fine = True")),
    "bounded loop": inserted(f"for turn in range(3):\n    {CALL}"),
    "capped while": inserted(f"turns = 0\nwhile turns < 3:\n    turns += 1\n    {CALL}"),
    "loop without calls": inserted("total = 0\nfor one in args:\n    total += len(str(one))"),
    "bounded fanout": inserted(
        "more = await ctx.parallel([ctx.run('text.generate', {'prompt': one}) for one in args['many'][:3]])"
    ),
    "pipeline of lambdas": inserted(
        "more = await ctx.pipeline(['a', 'b'], lambda one: ctx.run('text.generate', {'prompt': one}), "
        "lambda one: one['text'])"
    ),
    "dag": inserted(
        "more = await ctx.dag({'one': ([], lambda deps: ctx.run('text.generate', {'prompt': 'one'})), "
        "'two': (['one'], lambda deps: ctx.run('text.generate', {'prompt': deps['one']['text']}))})"
    ),
    "race": inserted("more = await ctx.race([ctx.run('text.generate', {'prompt': one}) for one in ('a', 'b')])"),
    "helper with the context": inserted(
        "more = await tell(ctx, 'a')",
        "async def tell(ctx, one):\n    return await ctx.run('text.generate', {'prompt': one})",
    ),
    "arrivals by key": inserted(
        "arrivals = {}\nasync def arrive(one):\n    arrivals[one] = await ctx.run('text.generate', {'prompt': one})\n"
        "await ctx.parallel([arrive(one) for one in ('a', 'b')])\nctx.log(arrivals['a']['text'])"
    ),
    "arrivals sorted": inserted(
        "arrivals = []\nasync def arrive(one):\n"
        "    arrivals.append((await ctx.run('text.generate', {'prompt': one}))['text'])\n"
        "await ctx.parallel([arrive(one) for one in ('a', 'b')])\nctx.log('; '.join(sorted(arrivals)))"
    ),
    "set sorted": inserted("for one in sorted({'a', 'b'}):\n    await ctx.run('text.generate', {'prompt': one})"),
    "set asked": inserted("seen = set()\nfor one in ('a', 'b', 'a'):\n    if one not in seen:\n        seen.add(one)"),
    "own names of builtins": inserted("type = 'photo'\nid = len(args)\nctx.log(f'{type} {id}')"),
    "match and walrus": inserted(
        "match args:\n    case {'many': [first, *_]} if (size := len(str(first))) > 2:\n"
        f"        ctx.log(str(size))\n    case _:\n        {CALL}"
    ),
}
