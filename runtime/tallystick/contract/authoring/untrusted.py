"""Text from outside in a prompt: bounded, made harmless, and marked as data (contract.md, section 9).

The marks do not make a model obey; they tell it what is whose. What holds is that nothing it answers is believed:
the checker, the gate, the grants and the budget judge it as they judge anybody's script.
"""

import hashlib
import re

#: Characters of one text from outside: an error, a finding on a stranger's script.
TEXT_LIMIT = 2_000
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def harmless(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return a text without control, bidirectional and invisible characters, and no longer than ``limit``."""
    clean = _CONTROLS.sub("\ufffd", text[: limit + 1].replace("\r\n", "\n"))
    return clean if len(text) <= limit else f"{clean[:limit]} [... cut, {len(text) - limit} characters more]"


def enclosed(label: str, text: str) -> str:
    """Return a text between two lines that it cannot contain, so that nothing in it ends the enclosure.

    Args:
        label: what it is, in capitals: ``ERROR``.
        text: as it is to be shown; see ``harmless``.
    """
    mark = _mark(label, text)
    return f"<<{mark}\n{text.rstrip()}\n{mark}>>"


def _mark(label: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    marks = (f"{label}-{digest[start : start + 8]}" for start in range(0, len(digest), 8))
    return next((mark for mark in marks if mark not in text), f"{label}-{digest}")
