"""The shipped profiles: settings of the ``http`` provider as data, one file each."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from tallystick.providers import shapes


def names() -> tuple[str, ...]:
    """Return the names of the shipped profiles, sorted."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def apply(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings on top of the profile that they name, if any: table by table, what they say wins.

    Raises:
        ValueError: there is no such profile.
    """
    own = dict(settings)
    name = own.pop("profile", None)
    if name is None:
        return own
    if name not in names():
        meant = shapes.nearest(str(name), names())
        hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(names())}"
        raise ValueError(f'there is no profile "{name}"; {hint}')
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return merged({"name": name, **tomllib.loads(text)}, own)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings on top of others: tables are merged, anything else is replaced."""
    both = {
        key: merged(below[key], value) if isinstance(value, Mapping) and isinstance(below.get(key), Mapping) else value
        for key, value in above.items()
    }
    return {**below, **both}
