"""What a reference of a template can do to a value on its way: ``{image|data_url}``, ``{$seed|int31}``."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from tallystick.providers.http import paths
from tallystick.providers.http.paths import MISSING

INT31 = 2**31 - 1


class Attachment(msgspec.Struct, frozen=True):
    """The bytes behind an artifact reference of a payload."""

    data: bytes
    media_type: str


class FilterError(ValueError):
    """A filter was given a value that it cannot take."""


Filter = Callable[[Any], Any]


def build(text: str) -> Filter:
    """Return the filter that a template names: ``data_url``, or ``at:shots[0]`` with an argument.

    Raises:
        ValueError: there is no such filter.
    """
    name, _, argument = text.partition(":")
    if name == "at":
        path = paths.parse(argument)
        return path.find
    if name not in _FILTERS or argument:
        raise ValueError(f'there is no filter "{text}"; there are at:PATH, {", ".join(_FILTERS)}')
    return _FILTERS[name]


def _base64(value: Any) -> str:
    if not isinstance(value, Attachment):
        raise FilterError("only an artifact has bytes to encode")
    return base64.b64encode(value.data).decode()


def _data_url(value: Any) -> str:
    encoded = _base64(value)
    return f"data:{value.media_type};base64,{encoded}"


def _int31(value: Any) -> int:
    if type(value) is not int:
        raise FilterError("only an integer can be brought into 31 bits")
    return value & INT31


def _side(index: int) -> Filter:
    def side(value: Any) -> int:
        match = re.fullmatch(r"(\d+)x(\d+)", value) if isinstance(value, str) else None
        if match is None:
            raise FilterError('only a size like "1024x768" has a width and a height')
        return int(match[index])

    return side


def _parse(value: Any) -> Any:
    """Read text as JSON; models like to wrap it in a fence."""
    if not isinstance(value, str):
        raise FilterError("only text can be read as JSON")
    fenced = re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", value, re.DOTALL)
    try:
        return msgspec.json.decode(fenced[1] if fenced else value)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise FilterError(f"the text is not JSON: {error}") from None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_FILTERS: dict[str, Filter] = {
    "base64": _base64,
    "data_url": _data_url,
    "int31": _int31,
    "width": _side(1),
    "height": _side(2),
    "parse": _parse,
    "json": _json,
}


def run(chain: tuple[Filter, ...], value: Any) -> Any:
    """Pass a value through filters; ``MISSING`` stays what it is.

    Raises:
        FilterError: a filter cannot take what reaches it.
    """
    for one in chain:
        if value is MISSING:
            return MISSING
        value = one(value)
    return value
