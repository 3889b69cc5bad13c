"""R10: a way round the names in the source.

What it refuses:
    Imports; dunder names; attributes that begin with an underscore, also in class patterns; giving an attribute to
    anything; the builtins that make code from text or reach attributes, variables and types by name (``eval``,
    ``getattr``, ``globals``, ``type``, ...); format strings that reach attributes; attributes of frames, tracebacks
    and code, and those that drive a generator or a coroutine by hand (``send``, ``throw``, ``close``); the keyword
    ``_site``, which the host adds. It is the use of the builtin that is refused: a name that the script binds itself,
    ``type = row["type"]``, is innocent, and so is any word in a string or a comment.

Why:
    What a script does is judged from its source. These make a name mean something that the source does not show.

Refused:
    import json

    async def orchestrate(ctx, args):
        answer = await ctx.run("text.generate", {"prompt": args["prompt"]})
        return {"facts": json.loads(answer["text"]), "kind": type(answer).__name__}

Write instead:
    SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    async def orchestrate(ctx, args):
        answer = await ctx.run("text.generate", {"prompt": args["prompt"], "schema": SCHEMA})
        return {"facts": answer["data"], "structured": isinstance(answer["data"], dict)}
"""

import ast
from collections.abc import Iterator

from tallystick.contract.rules.formats import reached_attribute
from tallystick.contract.rules.rule import Evidence, Finding, Rule
from tallystick.contract.scopes import Place
from tallystick.contract.survey import CONTEXT

_BUILTINS: dict[str, str] = {
    "eval": "compute the value with plain code, or ask for structured data with a schema",
    "exec": "write the code out",
    "compile": "write the code out",
    "__import__": "scripts import nothing; everything they reach is a capability",
    "getattr": "use the attribute by its name, or keep the values in a dict",
    "setattr": "keep the values in a dict",
    "delattr": "keep the values in a dict",
    "vars": "keep the values in a dict",
    "locals": "keep the values in a dict",
    "globals": "use the constant by its name, or keep the values in a dict",
    "dir": "keep the values in a dict",
    "type": "ask with isinstance(value, dict)",
    "super": "scripts have no classes: write functions",
    "breakpoint": "leave it out; ctx.log(text) writes to the run's log",
    "memoryview": "scripts hold text and artifacts, not memory",
    "help": "leave it out",
    "exit": "return from orchestrate, or raise an exception",
    "quit": "return from orchestrate, or raise an exception",
}
_MODULES: dict[str, str] = {
    "asyncio": "use ctx.parallel([...]) for what runs side by side",
    "json": "ask for structured data: text.generate takes a 'schema' and answers with 'data'",
    "random": "take what varies from args, or ask for another sample with take=",
    "time": "scripts have no clock; pass times in as args",
    "datetime": "scripts have no clock; pass times in as args",
    "re": "use the methods of strings: split, replace, startswith, in",
    "math": "use arithmetic, round, min and max",
    "typing": "leave the annotations out",
    "__future__": "leave it out",
}
_INTERNALS = frozenset(
    {
        *("gi_frame", "gi_code", "gi_yieldfrom", "gi_running", "gi_suspended"),
        *("cr_frame", "cr_code", "cr_await", "cr_origin", "cr_running", "cr_suspended"),
        *("ag_frame", "ag_code", "ag_await", "ag_running", "ag_suspended"),
        *("f_back", "f_builtins", "f_code", "f_globals", "f_lasti", "f_lineno", "f_locals", "f_trace"),
        *("send", "throw", "close", "asend", "athrow", "aclose"),
        *("tb_frame", "tb_lasti", "tb_lineno", "tb_next", "with_traceback", "mro"),
        *("co_code", "co_consts", "co_names", "co_varnames", "co_filename", "co_freevars", "co_cellvars"),
    }
)
_SITE = "_site"
_PLAIN = "use plain values: dicts, lists, strings, numbers"


def _check(node: ast.AST, _place: Place, evidence: Evidence) -> Iterator[Finding]:
    match node:
        case ast.Module():
            yield from _names(evidence)
            yield from _attributes(evidence)
        case ast.Import() | ast.ImportFrom():
            yield from _import(node)
        case ast.keyword():
            yield from _keyword(node)
        case ast.MatchClass():
            yield from _pattern(node)


def _names(evidence: Evidence) -> Iterator[Finding]:
    survey = evidence.survey
    for name in {*survey.uses, *survey.calls}:
        dunder = _is_dunder(name)
        if not dunder and name not in _BUILTINS and name != _SITE:
            continue
        for node, place in (*survey.uses.get(name, ()), *survey.calls.get(name, ())):
            shown = node.func if isinstance(node, ast.Call) else node
            if dunder or name == _SITE:
                yield Finding(shown, f"the name {name} is not a script's to use", _BUILTINS.get(name, _PLAIN))
            elif evidence.is_builtin(name, place):
                yield Finding(shown, f"{name} makes a name mean what the source does not show", _BUILTINS[name])
    for scope in (survey.module, *survey.scopes.values()):
        for name, definitions in scope.definitions.items():
            if not _is_dunder(name) and name != _SITE:
                continue
            for definition in definitions:
                bound = definition.node
                if not isinstance(bound, ast.Import | ast.ImportFrom):
                    assert isinstance(bound, ast.stmt | ast.expr | ast.arg | ast.excepthandler | ast.pattern)
                    yield Finding(bound, f"the name {name} is not a script's to bind", "choose another name")


def _import(node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    for name in names:
        instead = _MODULES.get(name.partition(".")[0], "scripts import nothing; everything they reach is a capability")
        yield Finding(node, f"a script cannot import {name}", instead)


def _attributes(evidence: Evidence) -> Iterator[Finding]:
    for name, found in evidence.survey.attributes.items():
        yield from (_set(one) for one, _ in found if not isinstance(one.ctx, ast.Load) and not _is_context(one.value))
        if name.startswith("__"):
            yield from (Finding(one, f"the attribute {name} reaches into Python itself", _PLAIN) for one, _ in found)
        elif name in _INTERNALS:
            yield from (Finding(one, f"the attribute {name} reaches into running code", _PLAIN) for one, _ in found)
        elif name.startswith("_"):
            yield from (Finding(one, f"the attribute {name} is not a script's to use", _PLAIN) for one, _ in found)
        elif name in {"format", "format_map"}:
            for one, place in found:
                yield from _format(one, place, evidence)


def _set(node: ast.Attribute) -> Finding:
    return Finding(
        node,
        f"this gives the attribute {node.attr} to something that is no data of the script",
        "keep the value in a variable or a dict, and hand it over",
    )


def _is_context(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == CONTEXT  # rule R02 says what may be done with it


def _keyword(node: ast.keyword) -> Iterator[Finding]:
    if node.arg == _SITE:
        yield Finding(node, "_site is added by the host", "leave _site out")
    elif node.arg is not None and _is_dunder(node.arg):
        yield Finding(node, f"the name {node.arg} is not a script's to use", "choose another name")


def _pattern(node: ast.MatchClass) -> Iterator[Finding]:
    for name in node.kwd_attrs:
        if name.startswith("_") or name in _INTERNALS:
            yield Finding(
                node,
                f"the class pattern reads the attribute {name}, which reaches into Python itself",
                'match dicts by their keys: case {"kind": "refund"}',
            )


def _format(node: ast.Attribute, place: Place, evidence: Evidence) -> Iterator[Finding]:
    template = node.value
    if isinstance(template, ast.Name) and template.id == "str" and evidence.is_builtin("str", place):
        given = [call.args[0] for call, _ in evidence.survey.found[ast.Call] if call.func is node and call.args]
        if not given:
            yield Finding(node, f"str.{node.attr} is taken without its format string", "write an f-string")
            return
        template = given[0]
    reached = reached_attribute(template, place)
    if reached is not None:
        yield Finding(
            node,
            f"the format string reaches the attribute {reached!r}",
            'write an f-string, f"{value}", or name plain fields: "{name}".format(name=value)',
        )


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


RULE = Rule(
    code="R10",
    slug="dynamic-access",
    since="0.1.0",
    nodes=(ast.Module, ast.Import, ast.ImportFrom, ast.keyword, ast.MatchClass),
    check=_check,
    sees=(ast.Call,),
)
