"""What a call cost: fixed, by what the answer says was used, or as the answer states it; else nobody knows."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tallystick.contract.capability import MICROS_PER_USD
from tallystick.providers.http import paths
from tallystick.providers.http.paths import MISSING

Usd = Annotated[float, msgspec.Meta(ge=0)]

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a call is priced. What is given adds up; without anything the cost is unknown, which is not zero.

    ``fixed``: dollars a call. ``per_unit`` and ``per_million``: dollars for one, and for a million, of what a path of
    the answer counts; a list counts its entries. ``stated``: a path at which the answer names dollars itself;
    ``currency`` a path that must then say USD. ``header``: a header that names dollars.
    """

    fixed: Usd | None = None
    per_unit: dict[str, Usd] = {}
    per_million: dict[str, Usd] = {}
    stated: str | None = None
    currency: str | None = None
    header: str | None = None

    def __post_init__(self) -> None:
        """Refuse paths that are none."""
        for text in (*self.per_unit, *self.per_million, self.stated, self.currency):
            paths.parse(text or "")


def cost(price: Price | None, answer: Any, headers: Mapping[str, str]) -> int | None:
    """Return the cost of an answered call in micro-dollars, or None when a part of it is not known.

    Args:
        price: how the call is priced, or None.
        answer: the parsed answer, ``MISSING`` when it could not be read.
        headers: those of the answer, with names in lower case.
    """
    if price is None:
        return None
    parts: list[float | None] = []
    if price.fixed is not None:
        parts.append(price.fixed)
    parts += [_counted(answer, path, usd) for path, usd in price.per_unit.items()]
    parts += [_counted(answer, path, usd / _MILLION) for path, usd in price.per_million.items()]
    if price.stated is not None:
        parts.append(_stated(price, answer))
    if price.header is not None:
        parts.append(_number(headers.get(price.header.lower())))
    known = [part for part in parts if part is not None]
    return round(sum(known) * MICROS_PER_USD) if parts and len(known) == len(parts) else None


def _counted(answer: Any, path: str, usd: float) -> float | None:
    found = paths.parse(path).find(answer)
    count = float(len(found)) if isinstance(found, list) else _number(found)
    return None if count is None else count * usd


def _stated(price: Price, answer: Any) -> float | None:
    if price.currency is not None and paths.parse(price.currency).find(answer) not in ("USD", "usd", "$"):
        return None
    return _number(paths.parse(price.stated or "").find(answer))


def _number(value: Any) -> float | None:
    """Return an amount that is one: not null, not a truth value, not negative; also from text, as headers are."""
    if value is MISSING or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
