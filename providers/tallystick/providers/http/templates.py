"""Templates: JSON-like data in which strings refer to other data, compiled once and filled in for each call.

A string that is one reference, ``"{size}"``, becomes the value itself; in a longer one, ``"Cut {brief} in
{shots}"``, references become text; ``{{`` and ``}}`` are braces. A reference is a path, perhaps through filters:
``{choices[0].message.content|parse}``. It looks into the subject of the template, or into the value that a leading
``$name`` names. What a reference does not find is left out: the key that holds it, and in a list the whole entry; an
object that loses all it had is left out too.

An object with ``$when`` stands for its ``then`` where the path finds something. One with ``$files`` stands for the
files that its path finds; see ``FilesNode``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from tallystick.providers.http import filters, paths
from tallystick.providers.http.paths import MISSING, Path

SUBJECT = ""
"""The name of what a path without ``$`` looks into."""

Scope: TypeAlias = Mapping[str, Any]

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Reference(msgspec.Struct, frozen=True):
    """One ``{…}``: the name of what it looks into, the place there, and the filters on the way."""

    root: str
    path: Path
    names: tuple[str, ...] = ()
    chain: tuple[Any, ...] = ()

    def value(self, scope: Scope) -> Any:
        """Return what it refers to, or ``MISSING``; raises ``FilterError``."""
        if self.root not in scope:
            return MISSING
        return filters.run(self.chain, self.path.find(scope[self.root]))


class FilesNode(msgspec.Struct, frozen=True):
    """Files of an answer: all entries at ``source`` (``$files``) or the one there (``$file``).

    In each entry the bytes are inline, in base64, at ``base64``, or behind the link at ``url``; the first that is
    there counts.
    """

    source: Reference
    many: bool
    base64: Path | None
    url: Path | None


class _Text(msgspec.Struct, frozen=True):
    parts: tuple[Any, ...]  # of str | Reference


class _When(msgspec.Struct, frozen=True):
    condition: Reference
    then: Any


class Template:
    """A compiled template.

    Args:
        source: JSON-like data.
        place: what a message about a fault in it calls it.

    Raises:
        ValueError: a reference, a filter or a ``$`` object in it is wrong; the message says where.
    """

    def __init__(self, source: Any, place: str = "") -> None:
        self._node = _compile(source, place)
        self.references = tuple(_references(self._node))
        self.files = tuple(_files(self._node))

    def fill(
        self, scope: Scope, files: Callable[[FilesNode], Any] = lambda _: MISSING, *, absent: Any = MISSING
    ) -> Any:
        """Fill it in.

        Args:
            scope: what paths look into, by name (``SUBJECT``, ``$seed``, …).
            files: gives the value of each ``$files`` object.
            absent: what stands where the path of a ``$when`` finds nothing.

        Returns:
            The data, or ``MISSING`` when nothing is left of it.

        Raises:
            FilterError: a filter cannot take a value that reaches it.
        """
        return _fill(self._node, _Filling(scope, files, absent))


class _Filling(msgspec.Struct, frozen=True):
    scope: Scope
    files: Callable[[FilesNode], Any]
    absent: Any


def _compile(source: Any, place: str) -> Any:
    try:
        match source:
            case str():
                return _compile_text(source)
            case dict():
                return _compile_object(source, place)
            case list():
                return [_compile(value, f"{place}[{index}]") for index, value in enumerate(source)]
            case _:
                return source
    except _PlacedError:
        raise
    except ValueError as error:
        raise _PlacedError(f"{place.removeprefix('.')}: {error}" if place else str(error)) from None


def _compile_object(source: dict[str, Any], place: str) -> Any:
    match source:
        case {"$when": str() as condition, "then": then} if len(source) == len(("$when", "then")):
            return _When(_reference(condition), _compile(then, f"{place}.then"))
        case {"$files": str() as path}:
            return _compile_files(path, source, many=True)
        case {"$file": str() as path}:
            return _compile_files(path, source, many=False)
    strange = sorted(key for key in source if key.startswith("$"))
    if strange:
        raise ValueError(f'"{strange[0]}" is not understood; $when has a path and a then, $files and $file have a path')
    return {key: _compile(value, f"{place}.{key}") for key, value in source.items()}


class _PlacedError(ValueError):
    """A fault whose place is in its message."""


def _compile_text(source: str) -> Any:
    parts: list[Any] = []
    end = 0
    for match in _PART.finditer(source):
        parts.append(source[end : match.start()])
        end = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
        elif match[1] is None:
            raise ValueError(f'the brace at {match.start()} of "{source}" stands alone; write it twice')
        else:
            parts.append(_reference(match[1]))
    parts = [part for part in (*parts, source[end:]) if part != ""]
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return parts[0] if len(parts) == 1 else _Text(tuple(parts))


def _compile_files(path: str, source: Mapping[str, Any], *, many: bool) -> FilesNode:
    inside = {name: paths.parse(value) for name, value in source.items() if name in ("base64", "url")}
    if not inside or len(inside) + 1 < len(source):
        raise ValueError("files are at base64, at url, or at either; nothing else can be said of them")
    return FilesNode(_reference(path), many, inside.get("base64"), inside.get("url"))


def _reference(text: str) -> Reference:
    path, *names = text.split("|")
    root, _, rest = path.partition(".") if path.startswith("$") else (SUBJECT, "", path)
    if not (root or rest):
        raise ValueError("a reference is empty")
    return Reference(root, paths.parse(rest), tuple(names), tuple(map(filters.build, names)))


def _fill(node: Any, filling: _Filling) -> Any:
    match node:
        case Reference():
            return node.value(filling.scope)
        case _Text(parts=parts):
            texts = [part if isinstance(part, str) else _as_text(part.value(filling.scope)) for part in parts]
            return MISSING if MISSING in texts else "".join(texts)
        case _When(condition=condition, then=then):
            return _fill(then, filling) if condition.value(filling.scope) is not MISSING else filling.absent
        case FilesNode():
            return filling.files(node)
        case dict():
            filled = {key: _fill(value, filling) for key, value in node.items()}
            kept = {key: value for key, value in filled.items() if value is not MISSING}
            return kept if kept or not node else MISSING
        case list():
            entries = [(_fill(entry, filling), entry) for entry in node]
            return [value for value, entry in entries if value is not MISSING and _whole(value, entry)]
        case _:
            return node


def _whole(value: Any, entry: Any) -> bool:
    return not isinstance(entry, dict) or len(value) == len(entry)


def _as_text(value: Any) -> Any:
    if value is MISSING or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _references(node: Any) -> Iterator[Reference]:
    match node:
        case Reference():
            yield node
        case _Text(parts=parts):
            yield from (part for part in parts if isinstance(part, Reference))
        case _When(condition=condition, then=then):
            yield condition
            yield from _references(then)
        case FilesNode(source=source):
            yield source
        case dict() | list():
            for child in node.values() if isinstance(node, dict) else node:
                yield from _references(child)


def _files(node: Any) -> Iterator[FilesNode]:
    match node:
        case FilesNode():
            yield node
        case _When(then=then):
            yield from _files(then)
        case dict() | list():
            for child in node.values() if isinstance(node, dict) else node:
                yield from _files(child)
