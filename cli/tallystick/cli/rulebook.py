"""The checker's rules as people read them: a table of all, a page of one."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from tallystick.cli.fields import Labelled
from tallystick.contract.errors import UsageError
from tallystick.contract.rules.pages import RulePage, pages
from tallystick.contract.rules.rule import nearest

_INDENT = 2


def chosen(name: str | None) -> tuple[RulePage, ...]:
    """Return the page of the rule with this code or slug, or those of all rules.

    Raises:
        UsageError: no rule has this name.
    """
    known = pages()
    if name is None:
        return known
    found = tuple(page for page in known if name.lower() in (page.code.lower(), page.slug))
    if not found:
        similar = nearest(name.lower(), [page.slug for page in known])
        hint = f"did you mean {similar}?" if similar else f"they are {known[0].code} to {known[-1].code}"
        raise UsageError(f"there is no rule {name!r}", hint=f"{hint} `tally rules` lists them")
    return found


def listing(of: Sequence[RulePage]) -> Text:
    """Return one line for each rule: what it refuses, in a few words."""
    return Text("\n").join(_headline(page) for page in of)


def page(of: RulePage) -> RenderableType:
    """Return all that there is to say about one rule."""
    return Group(
        _headline(of),
        *_prose("what it refuses", of.refuses),
        *_prose("why", of.why),
        *_code("refused", of.refused),
        *_code("write instead", of.instead),
    )


def _headline(of: RulePage) -> Text:
    return Text.assemble((of.code, "bold red"), "  ", (f"{of.slug:<22}", "bold"), of.title)


def _prose(title: str, text: str) -> list[RenderableType]:
    return [Text(f"\n{title}", "bold"), Labelled(Text(" " * _INDENT), Text(text))]


def _code(title: str, source: str) -> list[RenderableType]:
    return [Text(f"\n{title}", "bold"), *(Text(" " * _INDENT + line) for line in source.splitlines())]
