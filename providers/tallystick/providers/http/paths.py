"""Places in JSON-like data: ``data[*].url``, ``choices[0].message.content``; the empty path is the whole."""

import functools
import re
from typing import Any, Final, TypeAlias

import msgspec


class _Mark:
    """A value that JSON cannot hold."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


MISSING: Final = _Mark("MISSING")
"""What is found where there is nothing. It is not null."""
EVERY: Final = _Mark("EVERY")
"""The step ``[*]``: all entries of a list."""

Step: TypeAlias = str | int | _Mark

_STEP = re.compile(r"(?:^|\.)([^.\[\]{}|]+)|\[(\d+|\*)\]")


class Path(msgspec.Struct, frozen=True):
    """A parsed path: its text and its steps."""

    text: str
    steps: tuple[Any, ...]

    def find(self, value: Any) -> Any:
        """Return what stands at this place in ``value``, or ``MISSING``.

        ``[*]`` gives a list: what is found in each entry, without the entries in which there is nothing.
        """
        return _find(value, self.steps)

    def lacks(self, value: Any) -> bool:
        """Return whether ``value`` itself says that there is nothing here: null, or a list that is too short.

        A key that is not there says nothing of the kind: it may be another answer altogether.
        """
        found = self.find(value)
        if found is not MISSING or not self.steps:
            return found is None
        return isinstance(self.steps[-1], int) and isinstance(_find(value, self.steps[:-1]), list)


@functools.lru_cache(maxsize=1_024)
def parse(text: str) -> Path:
    """Read a path.

    Raises:
        ValueError: the text is no path.
    """
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f'"{text}" is not a path; write one like data[0].url or data[*]')
        name, index = match.groups()
        steps.append(name if index is None else EVERY if index == "*" else int(index))
        position = match.end()
    return Path(text, tuple(steps))


def first(paths: tuple[Path, ...], value: Any) -> Any:
    """Return what the first path finds that finds anything but null, or ``MISSING``."""
    found = (path.find(value) for path in paths)
    return next((one for one in found if one is not MISSING and one is not None), MISSING)


def _find(value: Any, steps: tuple[Any, ...]) -> Any:
    for position, step in enumerate(steps):
        if step is EVERY:
            if not isinstance(value, list):
                return MISSING
            found = (_find(entry, steps[position + 1 :]) for entry in value)
            return [one for one in found if one is not MISSING]
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
        elif not isinstance(value, dict) or step not in value:
            return MISSING
        value = value[step]
    return value
