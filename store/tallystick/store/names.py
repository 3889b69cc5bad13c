"""The names of artifacts in whatever may hold them: an event, or a file of JSON that an event names.

Every 64 hexadecimal digits count as a name. What only looks like one keeps a file that could go, and never the other
way round.
"""

import re
from collections.abc import Callable, Iterable

_NAME = re.compile(rb"(?=([0-9a-f]{64}))")
#: What a JSON value begins with that may hold a name.
_JSON = (b"{", b"[", b'"')


def names_in(data: bytes | memoryview) -> set[str]:
    """Return everything in some bytes that may be the name of an artifact."""
    return {name.decode() for name in _NAME.findall(data)}


def may_be_json(beginning: bytes) -> bool:
    """Tell whether something that begins so may be JSON which holds names."""
    return beginning.lstrip()[:1] in _JSON


def reachable(named: Iterable[str], read: Callable[[str], bytes | None]) -> set[str]:
    """Return the names with those that are found in the files behind them, and in the files behind these.

    Args:
        named: names to begin with.
        read: returns the bytes of a file, None where there is none of this name.
    """
    found: set[str] = set()
    waiting = list(named)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        data = read(name)
        if data is not None and may_be_json(data):
            waiting += names_in(data) - found
    return found
