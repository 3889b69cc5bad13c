"""Writes the pages of the documentation that are made from the code: `python -m tallystick.cli.docs [DOCS]`."""

import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from tallystick.contract.rules.pages import RulePage, pages

_WIDTH = 116
_HEAD = """\
# The checker's rules

<!-- made by `make docs` from the rules' modules: change those -->

What `tally check` refuses, rule by rule, with the way to write it instead; `tally rules R03` shows one of them. What
the rules are for is in [contract.md](contract.md#4-the-checker), how to write a script in [scripts.md](scripts.md).
"""


def rules_page(rules: Iterable[RulePage]) -> str:
    """Return docs/rules.md."""
    known = tuple(rules)
    rows = [f"| [{each.code}](#{each.code.lower()}) | `{each.slug}` | {each.title} |" for each in known]
    table = "\n".join(("| rule | name | refuses |", "|---|---|---|", *rows))
    sections = (line for each in known for line in _section(each))
    return "\n".join((_HEAD, table, "", *sections)).rstrip("\n") + "\n"


def main(folder: Path) -> None:
    """Write every page that is made from the code."""
    (folder / "rules.md").write_text(rules_page(pages()), encoding="utf-8")


def _section(of: RulePage) -> Iterator[str]:
    yield f"## {of.code}"
    yield f"\n**{of.title[0].upper()}{of.title[1:]}** (`{of.slug}`, since {of.since})."
    yield f"\n{_wrapped(of.refuses)}"
    yield f"\n{_wrapped(f'*Why*: {of.why}')}"
    yield f"\nRefused:\n\n```python\n{of.refused}\n```"
    yield f"\nWrite instead:\n\n```python\n{of.instead}\n```\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
