"""JSON-like values as people read them: what fits into one line stays there, hashes are shortened."""

from typing import Any

import msgspec

from tallystick.cli.terminal import plain

MAX_LINES = 40
WIDTH = 100
#: Hex digits that are shown of an artifact's hash; `--json` prints them all.
HASH_DIGITS = 12

_ARTIFACT = "$artifact"


def pretty(value: Any) -> str:
    """Show a value over as few lines as its parts need, and no more than a screenful."""
    lines = _laid_out(_shortened(value), "")
    cut = lines[:MAX_LINES]
    if len(lines) > len(cut):
        cut.append(f"... {len(lines) - len(cut)} more lines; --json prints all of it")
    return plain("\n".join(cut))


def holds_artifacts(value: Any) -> bool:
    """Whether an artifact is referred to somewhere within a value."""
    if isinstance(value, dict):
        return _ARTIFACT in value or any(map(holds_artifacts, value.values()))
    return isinstance(value, list) and any(map(holds_artifacts, value))


def compact(value: Any, limit: int) -> str:
    """Show a value in one line of at most ``limit`` characters."""
    text = plain(msgspec.json.encode(value).decode())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _shortened(value: Any) -> Any:
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    digits = len("sha256:") + HASH_DIGITS
    return {
        name: f"{item[:digits]}..." if name == _ARTIFACT and isinstance(item, str) else _shortened(item)
        for name, item in value.items()
    }


def _laid_out(value: Any, lead: str) -> list[str]:
    flat = lead + msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    if len(flat) <= WIDTH or not isinstance(value, dict | list) or not value:
        return [flat]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    entries = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    inner = [
        _laid_out(item, "" if name is None else f"{msgspec.json.encode(name).decode()}: ") for name, item in entries
    ]
    ends = [","] * (len(inner) - 1) + [""]
    body = ["  " + line for part, end in zip(inner, ends, strict=True) for line in (*part[:-1], part[-1] + end)]
    return [lead + opening, *body, closing]
