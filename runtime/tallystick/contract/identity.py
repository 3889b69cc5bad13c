"""The structural identity of a call: site, fanout path, occurrence (contract.md, section 2).

An identity names a call by where it stands and how it was reached, never by its payload, its line or its
moment. Its text form, ``orchestrate.shot/#1 [3] 0``, is what messages show and what commands accept.
"""

import hashlib
import json
import re
from typing import Any, TypeAlias

import msgspec

PathStep: TypeAlias = int | str
Path: TypeAlias = tuple[PathStep, ...]

SITE_SCHEME = "s1"
FINGERPRINT_SCHEME = "f1"
DIGEST_SCHEME = "d1"

#: The largest branch index and occurrence that a guest's frames can carry.
MAX_NUMBER = (1 << 31) - 1

_PLAIN_STEP = re.compile(r"[A-Za-z_<][A-Za-z0-9_.:~<>/#-]*")
_TEXT_FORM = re.compile(r"(?P<site>\S+) \[(?P<path>.*)\] (?P<occurrence>\d+)", re.DOTALL)


class Identity(msgspec.Struct, frozen=True):
    """One call of a run: ``site`` (str), ``path`` (tuple of branch indices and node names), ``occurrence`` (int)."""

    site: str
    path: Path
    occurrence: int

    def __str__(self) -> str:
        """Return the text form, ``site [step, step] occurrence``."""
        return f"{self.site} [{', '.join(map(_step_text, self.path))}] {self.occurrence}"

    @property
    def sort_key(self) -> tuple[str, tuple[tuple[bool, PathStep], ...], int]:
        """Order by site, path, occurrence; an index sorts before a name at the same depth."""
        return (self.site, tuple((isinstance(step, str), step) for step in self.path), self.occurrence)

    def canonical(self) -> bytes:
        """Return the versioned byte encoding that keys and effect keys are derived from."""
        return json.dumps(
            [SITE_SCHEME, self.site, list(self.path), self.occurrence], ensure_ascii=False, separators=(",", ":")
        ).encode()

    def slot_key(self) -> bytes:
        """Return 16 bytes that name this identity's slot within a run, whatever the length of its site."""
        return hashlib.sha256(self.canonical()).digest()[:16]

    @staticmethod
    def parse(text: str) -> "Identity":
        """Read the text form back.

        Raises:
            ValueError: the text is not ``site [path] occurrence``.
        """
        match = _TEXT_FORM.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text!r} is not an identity; write it as 'site [path] occurrence', say 'orchestrate/#1 [] 0'"
            )
        return Identity(match["site"], _parse_path(match["path"]), _number(match["occurrence"]))


class Schemes(msgspec.Struct, frozen=True):
    """The versions of the three schemes that a record was written under (contract.md, section 2)."""

    site: str = SITE_SCHEME
    fingerprint: str = FINGERPRINT_SCHEME
    digest: str = DIGEST_SCHEME


def _step_text(step: PathStep) -> str:
    if isinstance(step, int):
        return str(step)
    return step if _PLAIN_STEP.fullmatch(step) else json.dumps(step, ensure_ascii=False)


def _parse_path(text: str) -> Path:
    steps: list[PathStep] = []
    decoder = json.JSONDecoder()
    rest = text.strip()
    while rest:
        step: Any
        if rest[0] == '"':
            try:
                step, end = decoder.raw_decode(rest)
            except json.JSONDecodeError as error:
                raise ValueError(f"the path step {rest!r} is not a quoted string") from error
        else:
            word = re.match(r"[^,\s]+", rest)
            if word is None:
                raise ValueError(f"the path {text!r} has an empty step")
            end = word.end()
            step = _number(word[0]) if word[0].isdecimal() else word[0]
        steps.append(step)
        rest = rest[end:].lstrip()
        if rest and rest[0] != ",":
            raise ValueError(f"the path {text!r} needs a comma before {rest!r}")
        rest = rest[1:].lstrip()
    return tuple(steps)


def _number(digits: str) -> int:
    number = int(digits[:11])
    if number > MAX_NUMBER:
        raise ValueError(f"{digits[:20]} is a larger number than any identity has")
    return number
