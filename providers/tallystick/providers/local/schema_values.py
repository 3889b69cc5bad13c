"""Values that conform to a JSON schema, for the keywords that schemas of model answers use."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tallystick.providers.local.dice import Dice

_DEPTH = 24
_MOST_VALUES = 5_000
_LONGEST_TEXT = 20_000
_ROOM = 10
_UNSUPPORTED = ("pattern", "not", "if", "patternProperties", "dependentSchemas", "contains", "propertyNames")
_INFERRED = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minimum": "number",
    "maximum": "number",
}


class SchemaError(ValueError):
    """No value can be made for a schema; the message names the place."""


def value_for(schema: Any, words: Sequence[str], dice: Dice) -> Any:
    """Return a value that conforms to ``schema``, with ``words`` for its strings.

    Raises:
        SchemaError: the schema is not one, contradicts itself, asks for values without end or uses a keyword that no
            value can be made for here; the message names the place.
    """
    try:
        return _Maker(schema, words, dice).make(schema, "schema", 0)
    except (TypeError, AttributeError, OverflowError, ZeroDivisionError) as error:
        raise SchemaError(f"schema: a keyword has a value of the wrong kind ({error})") from error


class _Maker:
    """One schema document: references are looked up in its root."""

    def __init__(self, root: Any, words: Sequence[str], dice: Dice) -> None:
        self._root = root
        self._words = words
        self._dice = dice
        self._made = 0
        self._of_kind: dict[str, Callable[[Mapping[str, Any], str, int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda _schema, _place, _depth: dice.whole(0, 1) == 1,
            "null": lambda _schema, _place, _depth: None,
        }

    def make(self, schema: Any, place: str, depth: int) -> Any:
        if depth > _DEPTH:
            raise SchemaError(f"{place}: nested deeper than {_DEPTH} levels")
        self._made += 1
        if self._made > _MOST_VALUES:
            raise SchemaError(f"{place}: asks for more than {_MOST_VALUES:,} values")
        if schema is True:
            return self._dice.pick(self._words)
        if not isinstance(schema, Mapping):
            raise SchemaError(f"{place}: {schema!r} is not a schema that a value can be made for")
        for keyword in _UNSUPPORTED:
            if keyword in schema:
                raise SchemaError(f'{place}: the local provider cannot make values for "{keyword}"')
        if "$ref" in schema:
            return self.make(self._resolve(schema["$ref"], place), place, depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._dice.pick(_listed(schema, "enum", place))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                outer = {key: value for key, value in schema.items() if key != keyword}
                inner = _listed(schema, keyword, place)[0]
                return self.make(_merged((outer, inner), f"{place}.{keyword}"), f"{place}.{keyword}[0]", depth + 1)
        if "allOf" in schema:
            outer = {key: value for key, value in schema.items() if key != "allOf"}
            parts = [self._dereferenced(part, place) for part in _listed(schema, "allOf", place)]
            return self.make(_merged((outer, *parts), f"{place}.allOf"), place, depth + 1)
        kind = schema.get("type") or next((kind for key, kind in _INFERRED.items() if key in schema), "string")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if not isinstance(kind, str) or kind not in self._of_kind:
            raise SchemaError(f"{place}: there is no type {kind!r}")
        return self._of_kind[kind](schema, place, depth)

    def _object(self, schema: Mapping[str, Any], place: str, depth: int) -> dict[str, Any]:
        fields = dict(schema.get("properties") or {})
        others = schema.get("additionalProperties", True)
        for name in schema.get("required") or ():
            if name not in fields:
                if others is False:
                    raise SchemaError(f'{place}: required property "{name}" is not defined')
                fields[name] = others
        if not fields and isinstance(others, Mapping):
            fields = {word.lower(): others for word in self._words[:2]}
        return {name: self.make(field, f"{place}.{name}", depth + 1) for name, field in fields.items()}

    def _array(self, schema: Mapping[str, Any], place: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems") or ()
        low = int(schema.get("minItems", min(2, schema.get("maxItems", 2))))
        high = int(schema.get("maxItems", max(low, 3)))
        _ordered(low, high, place)
        length = max(self._dice.whole(low, min(high, low + 2)), min(len(first), high))
        items = schema.get("items", True)
        made = [
            self.make(first[index] if index < len(first) else items, f"{place}[{index}]", depth + 1)
            for index in range(length)
        ]
        if schema.get("uniqueItems"):
            made = [item for index, item in enumerate(made) if item not in made[:index]]
            if len(made) < low:
                raise SchemaError(f"{place}: the local provider cannot make {low} distinct items of this kind")
        return made

    def _string(self, schema: Mapping[str, Any], place: str, _depth: int) -> str:
        low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
        _ordered(low, min(_LONGEST_TEXT, _LONGEST_TEXT if high is None else high), place)
        text = " ".join(self._dice.pick(self._words) for _ in range(self._dice.whole(1, 3)))
        while len(text) < low:
            text += f" {self._dice.pick(self._words)}"
        return text if high is None else text[: int(high)]

    def _integer(self, schema: Mapping[str, Any], place: str, _depth: int) -> int:
        return int(self._multiple(schema, schema.get("multipleOf", 1), place))

    def _number(self, schema: Mapping[str, Any], place: str, _depth: int) -> float:
        if "multipleOf" in schema:
            return self._multiple(schema, schema["multipleOf"], place)
        low, high = _limits(schema)
        open_ended = "exclusiveMinimum" in schema or "exclusiveMaximum" in schema
        _ordered(math.nextafter(low, math.inf) if open_ended else low, high, place)
        margin = (high - low) * 0.1
        value = self._dice.between(low + margin, high - margin)
        return round(value, 2) if low < round(value, 2) < high else value

    def _multiple(self, schema: Mapping[str, Any], step: float, place: str) -> float:
        low, high = _limits(schema)
        first, last = math.ceil(low / step), math.floor(high / step)
        if "exclusiveMinimum" in schema:
            first = max(first, math.floor(schema["exclusiveMinimum"] / step) + 1)
        if "exclusiveMaximum" in schema:
            last = min(last, math.ceil(schema["exclusiveMaximum"] / step) - 1)
        _ordered(first, last, place)
        return self._dice.whole(first, last) * step

    def _dereferenced(self, schema: Any, place: str) -> Any:
        return self._resolve(schema["$ref"], place) if isinstance(schema, Mapping) and "$ref" in schema else schema

    def _resolve(self, pointer: Any, place: str) -> Any:
        node = self._root
        if not isinstance(pointer, str) or not pointer.startswith("#"):
            raise SchemaError(f"{place}: {pointer!r} refers to another document")
        for step in pointer.removeprefix("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if name and not (isinstance(node, Mapping) and name in node):
                raise SchemaError(f"{place}: {pointer!r} refers to nothing")
            node = node[name] if name else node
        return node


def _listed(schema: Mapping[str, Any], keyword: str, place: str) -> list[Any]:
    choices = schema[keyword]
    if not isinstance(choices, list) or not choices:
        raise SchemaError(f'{place}: "{keyword}" must be a list that is not empty')
    return choices


def _merged(parts: Sequence[Any], place: str) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            raise SchemaError(f"{place}: {part!r} is not a schema that can be merged")
        fields, needed = dict(whole.get("properties") or {}), list(whole.get("required") or ())
        whole |= part
        if fields or needed:
            whole["properties"] = fields | dict(part.get("properties") or {})
            whole["required"] = [*needed, *(part.get("required") or ())]
    return whole


def _limits(schema: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and highest number in question, exclusive limits included; an open end gets room for ten."""
    lows = [schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema]
    highs = [schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema]
    low = max(lows) if lows else min(0, min(highs, default=0) - _ROOM) if highs else 0
    return low, min(highs) if highs else low + _ROOM


def _ordered(low: float, high: float, place: str) -> None:
    if low > high:
        raise SchemaError(f"{place}: nothing lies between {low} and {high}")
