"""The types of payloads and results as a person writes them, and what is wrong with a value that does not fit one."""

import difflib
import json
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UnsetType, inspect

from tallystick.providers.payloads import Artifact

_SHOWN = 60
_ALIKE = 0.6
_PLAIN = {
    inspect.AnyType: "any",
    inspect.BoolType: "bool",
    inspect.StrType: "str",
    inspect.IntType: "int",
    inspect.FloatType: "number",
}


def shape(kind: Any) -> str:
    """Return a type as text: ``{"brief": str, "shots": int 1-32, "style"?: str}``."""
    return _shape(inspect.type_info(kind))


def misfit(kind: Any, value: Any) -> tuple[str, str] | None:
    """Return where and why ``value`` does not fit the type, or None when it does.

    Args:
        kind: a Struct of ``payloads`` or ``results``, or the type of one of their fields.
        value: JSON-like data; it is not changed.

    Returns:
        The path (``shots[1].duration_s``, empty for the value itself) and a sentence.
    """
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        return _explain(kind, value, "", str(error))
    return None


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` was probably meant to be."""
    by_folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=_ALIKE)
    return by_folded[close[0]] if close else None


def shown(value: Any) -> str:
    """Return a value as it may stand in a message: as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _shape(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=extra):
            return (extra or {}).get("description") or _shape(inner)
        case inspect.StructType(cls=cls) if cls is Artifact:
            return "artifact"
        case inspect.StructType(fields=fields):
            parts = (f'"{f.encode_name}"{"" if f.required else "?"}: {_shape(f.type)}' for f in fields)
            return "{" + ", ".join(parts) + "}"
        case inspect.ListType(item_type=item):
            return f"[{_shape(item)}]"
        case inspect.IntType(ge=low, le=high) | inspect.FloatType(ge=low, le=high) if low is not None:
            limit = f"from {low}" if high is None else f"{low}-{high}"
            return f"{_PLAIN[type(kind)]} {limit}"
    return _PLAIN[type(kind)]


def _explain(kind: Any, value: Any, path: str, reason: str) -> tuple[str, str]:
    """Find the innermost place that does not fit; ``reason`` is the checker's own, for what has no better words."""
    bare = _bare(kind)
    if bare is Artifact and not (isinstance(value, Mapping) and "$artifact" in value):
        return path, f'is {shown(value)}, and must be an artifact as an earlier call gave it, say result["images"][0]'
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        if not isinstance(value, Mapping):
            return path, f"is {shown(value)}, and must be a dict: {shape(bare)}"
        return _explain_fields(bare, value, path, reason)
    if typing.get_origin(bare) is list and isinstance(value, list):
        (item_kind,) = typing.get_args(bare)
        for index, item in enumerate(value):
            if (fault := misfit(item_kind, item)) is not None:
                return f"{path}[{index}]{_joined(fault[0])}", fault[1]
    if value is None:
        return path, f"is null; leave it out, or give {shape(kind)}"
    if value in ("", []):
        return path, f"is empty; give {shape(kind)}"
    return path, f"is {shown(value)}, and must be {shape(kind)}"


def _explain_fields(kind: type[msgspec.Struct], value: Mapping[Any, Any], path: str, reason: str) -> tuple[str, str]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    inside = f"{path}." if path else ""
    for name in value if kind.__struct_config__.forbid_unknown_fields else ():
        if name not in fields:
            meant = nearest(str(name), fields.keys() - value.keys())
            hint = f'did you mean "{meant}"?' if meant else f"the fields are {', '.join(fields)}"
            return f"{inside}{name}", f"is not a field here; {hint}"
    for name, field in fields.items():
        if name not in value:
            if field.required:
                return f"{inside}{name}", f"is missing; it must be {shape(field.type)}"
        elif (fault := misfit(field.type, value[name])) is not None:
            return f"{inside}{name}{_joined(fault[0])}", fault[1]
    return path, reason


def _joined(path: str) -> str:
    return path if not path or path.startswith("[") else f".{path}"


def _bare(kind: Any) -> Any:
    """Return a field's type without the marks of its being optional or limited."""
    if typing.get_origin(kind) is typing.Annotated:
        return _bare(typing.get_args(kind)[0])
    present = [one for one in typing.get_args(kind) if one is not UnsetType]
    if UnsetType in typing.get_args(kind) and len(present) == 1:
        return _bare(present[0])
    return kind
