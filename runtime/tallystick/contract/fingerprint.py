"""The fingerprint of a call expression: scheme f1 (contract.md, sections 2 and 3).

SHA-256 over our own encoding of the syntax of the call's arguments. It depends neither on layout, quotes and
parentheses nor on the Python that parsed the source: what the parsers of different versions build differently
for the same text (the constant parts of an f-string, an empty format spec) is brought to one form first.

Each node is its class name, then its fields in a fixed order. Every token is closed by a blank, every list opens
with its length and every text with its own, so two different expressions never have one encoding. Constants
carry their type: ``1``, ``1.0``, ``True`` and ``"1"`` are four values.

Standard library only: fingerprints are compared across interpreters.
"""

import ast
import hashlib
from typing import Any, Literal

# The fields that are hashed. Not hashed: contexts (they follow from the position), comments, the ``u`` of u"".
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: ("value", "attr"),
    ast.Await: ("value",),
    ast.BinOp: ("left", "op", "right"),
    ast.BoolOp: ("op", "values"),
    ast.Compare: ("left", "ops", "comparators"),
    ast.Dict: ("keys", "values"),
    ast.DictComp: ("key", "value", "generators"),
    ast.GeneratorExp: ("elt", "generators"),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Lambda: ("args", "body"),
    ast.List: ("elts",),
    ast.ListComp: ("elt", "generators"),
    ast.Name: ("id",),
    ast.NamedExpr: ("target", "value"),
    ast.Set: ("elts",),
    ast.SetComp: ("elt", "generators"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Starred: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("op", "operand"),
    ast.Yield: ("value",),
    ast.YieldFrom: ("value",),
    ast.arg: ("arg", "annotation"),
    ast.arguments: ("posonlyargs", "args", "vararg", "kwonlyargs", "kw_defaults", "kwarg", "defaults"),
    ast.comprehension: ("target", "iter", "ifs", "is_async"),
    ast.keyword: ("arg", "value"),
    **dict.fromkeys(
        (
            *(ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.Mod, ast.Pow, ast.FloorDiv),
            *(ast.LShift, ast.RShift, ast.BitOr, ast.BitXor, ast.BitAnd),
            *(ast.And, ast.Or, ast.Not, ast.Invert, ast.UAdd, ast.USub),
            *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn),
        ),
        (),
    ),
}


class UnknownSyntaxError(ValueError):
    """The expression holds a node that scheme f1 does not define; ``node`` is that node."""

    def __init__(self, node: ast.AST) -> None:
        name = node.__class__.__name__
        super().__init__(f"the syntax {name!r} cannot stand in a capability call: fingerprints do not define it")
        self.node = node


def fingerprint(node: ast.Call, kind: Literal["call", "race"] = "call") -> str:
    """Return the hex SHA-256 of a capability call's or race's arguments, every keyword but ``_site``.

    Raises:
        UnknownSyntaxError: an argument holds syntax that the scheme does not define.
    """
    tokens = ["f1 ", kind, " "]
    _encode_arguments(node, tokens)
    return hashlib.sha256("".join(tokens).encode("utf-8", "surrogatepass")).hexdigest()


def _encode_arguments(node: ast.Call, tokens: list[str]) -> None:
    _encode_list(node.args, tokens)
    _encode_list([keyword for keyword in node.keywords if keyword.arg != "_site"], tokens)


def _encode_list(values: list[Any], tokens: list[str]) -> None:
    tokens.append(f"{len(values)} ")
    for value in values:
        _encode(value, tokens)


def _encode(node: Any, tokens: list[str]) -> None:
    kind = node.__class__
    if kind is ast.Constant:
        tokens.append(_constant(node))
    elif kind in _FIELDS:
        tokens.append(_TAGS[kind])
        for name in _FIELDS[kind]:
            field = getattr(node, name)
            if field.__class__ is str:
                tokens.append(f"{len(field)}:{field} ")
            elif field.__class__ is list:
                tokens.append(f"{len(field)} ")
                for item in field:
                    _encode(item, tokens)
            else:
                _encode(field, tokens)
    elif kind is ast.JoinedStr:
        _encode_fstring(node, tokens)
    elif kind is ast.Call:
        tokens.append("Call ")
        _encode(node.func, tokens)
        _encode_arguments(node, tokens)
    elif node is None:
        tokens.append("- ")
    elif kind is int:
        tokens.append(f"{node} ")
    else:
        raise UnknownSyntaxError(node)


_TAGS = {kind: f"{kind.__name__} " for kind in _FIELDS}


def _text(text: str) -> str:
    return f"{len(text)}:{text} "


def _constant(node: ast.Constant) -> str:
    value = node.value
    if isinstance(value, str):
        return f"str {len(value)}:{value} "
    if value is None or value is True or value is False or value is ...:
        return f"{value} "
    if isinstance(value, int):  # hexadecimal: Python limits the length of a decimal
        return f"int {value:x} "
    if isinstance(value, float):
        return f"float {value.hex()} "
    if isinstance(value, complex):
        return f"complex {value.real.hex()} {value.imag.hex()} "
    if isinstance(value, bytes):
        return f"bytes {value.hex()} "
    raise UnknownSyntaxError(node)


def _encode_fstring(node: ast.JoinedStr, tokens: list[str]) -> None:
    """Encode text and fields in turn; without a field an f-string is the string it spells."""
    parts = _parts(node)
    if not any(isinstance(part, ast.FormattedValue) for part in parts):
        tokens.append(f"str {_text(''.join(map(str, parts)))}")
        return
    tokens.append(f"JoinedStr {len(parts)} ")
    for part in parts:
        if isinstance(part, str):
            tokens.append(_text(part))
            continue
        tokens.append(f"FormattedValue {part.conversion} ")
        _encode(part.value, tokens)
        spec = part.format_spec
        if spec is None or (isinstance(spec, ast.JoinedStr) and not _parts(spec)):
            tokens.append("- ")
        else:
            _encode(spec, tokens)


def _parts(node: ast.JoinedStr) -> list[str | ast.FormattedValue]:
    """Return the parts of an f-string with neighbouring texts joined and empty ones dropped."""
    parts: list[str | ast.FormattedValue] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            parts.append(value)
        elif isinstance(value, ast.Constant) and isinstance(value.value, str):
            if parts and isinstance(parts[-1], str):
                parts[-1] += value.value
            elif value.value:
                parts.append(value.value)
        else:
            raise UnknownSyntaxError(value)
    return parts
