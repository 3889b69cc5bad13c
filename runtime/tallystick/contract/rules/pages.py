"""The documentation of the rules, read off their modules: what `tally rules` and docs/rules.md show."""

import re
import textwrap

import msgspec

from tallystick.contract.rules import RULES
from tallystick.contract.rules.rule import Rule

_SECTION = re.compile(r"^(\S.*):\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


class RulePage(msgspec.Struct, frozen=True):
    """One rule explained.

    Attributes:
        code: "R03".
        slug: the bad pattern in a few words.
        title: the same as a sentence's subject.
        since: the version that first had it.
        refuses: what it refuses, prose with code in backticks.
        why: the reason, likewise.
        refused: a script that it refuses.
        instead: the same script as it is accepted.
    """

    code: str
    slug: str
    title: str
    since: str
    refuses: str
    why: str
    refused: str
    instead: str


def pages() -> tuple[RulePage, ...]:
    """Return the page of every rule, in the order of the codes."""
    return tuple(map(page_of, RULES))


def page_of(rule: Rule) -> RulePage:
    """Read a rule's page off the docstring of its module."""
    sections = {title: textwrap.dedent(body).strip("\n") for title, body in _SECTION.findall(rule.page)}
    return RulePage(
        rule.code,
        rule.slug,
        rule.title,
        rule.since,
        refuses=_paragraph(sections["What it refuses"]),
        why=_paragraph(sections["Why"]),
        refused=sections["Refused"],
        instead=sections["Write instead"],
    )


def _paragraph(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
