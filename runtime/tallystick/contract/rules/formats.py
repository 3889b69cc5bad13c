"""What a format string reaches: a part of R10.

A field such as ``{0.name}`` reads an attribute. What can be known of the string is put together from constants; where
a part is not known, the known parts must not leave a field open across it, for its text could be anything.
"""

import ast
from collections.abc import Iterator
from string import Formatter

from tallystick.contract.scopes import Kind, Place

_DEEPEST = 8
_UNKNOWN = None


def reached_attribute(template: ast.expr, place: Place) -> str | None:
    """Return the attribute that formatting with ``template`` reads, None if it reads none as far as can be known."""
    parts = list(_parts(template, place, 0))
    if all(part is _UNKNOWN for part in parts):
        return None
    text = ""
    for part in parts:
        if part is not _UNKNOWN:
            text += part
        elif _is_open(text):
            return f"{text[text.rindex('{') :]}..."
    return _attribute_in(text)


def _is_open(text: str) -> bool:
    """Whether a replacement field was begun and not ended."""
    return text.replace("{{", "").rfind("{") > text.replace("{{", "").rfind("}")


def _attribute_in(text: str) -> str | None:
    try:
        fields = list(Formatter().parse(text))
    except ValueError:
        return None  # formatting raises
    for _, field, spec, _ in fields:
        if field is not None and "." in _outside_brackets(field):
            return field
        if spec and "{" in spec:
            nested = _attribute_in(spec)
            if nested is not None:
                return nested
    return None


def _outside_brackets(field: str) -> str:
    """Return a field's name without its keys: ``a[b.c].d`` reads the attribute ``d``, not ``c``."""
    text, rest = "", field
    while "[" in rest:
        before, _, rest = rest.partition("[")
        text += before
        rest = rest.partition("]")[2]
    return text + rest


def _parts(node: ast.expr, place: Place, depth: int) -> Iterator[str | None]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr(values=values):
            for value in values:
                yield from _parts(value, place, depth + 1)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from _parts(left, place, depth + 1)
            yield from _parts(right, place, depth + 1)
        case ast.BinOp(op=ast.Mult(), left=left):
            yield from _parts(left, place, depth + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _parts(body, place, depth + 1)
            yield from _parts(orelse, place, depth + 1)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()) as separator, attr="join"), args=[items]):
            if isinstance(items, ast.List | ast.Tuple):
                for item in items.elts:
                    yield from _parts(item, place, depth + 1)
            else:
                yield from (separator.value if isinstance(separator.value, str) else _UNKNOWN, _UNKNOWN)
        case ast.Call(func=ast.Attribute(value=inner)):
            yield from _parts(inner, place, depth + 1)
        case ast.Name(id=name) if depth < _DEEPEST:
            yield from _assigned(name, place, depth)
        case _:
            yield _UNKNOWN


def _assigned(name: str, place: Place, depth: int) -> Iterator[str | None]:
    scope = place.scope.resolve(name)
    definitions = scope.definitions[name] if scope is not None else []
    if not definitions:
        yield _UNKNOWN
    for definition in definitions:
        known = definition.kind in {Kind.ASSIGN, Kind.AUGMENT, Kind.WALRUS} and not definition.path
        if known and definition.value is not None:
            yield from _parts(definition.value, definition.place, depth + 1)
        else:
            yield _UNKNOWN
