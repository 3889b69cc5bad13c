import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.rules.pages import RulePage, pages

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
ENVELOPE = Envelope(grants=("text.generate", "image.generate", "review.visual", "storyboard.plan"))


def refusals(source: str) -> set[str]:
    return {found.rule for found in check(source, ENVELOPE).violations if found.severity == "error"}


@PAGES
def test_a_page_says_all_there_is_to_say(page: RulePage) -> None:
    for text in (page.refuses, page.why):
        assert text[-1] == "."
        assert "``" not in text
        assert "  " not in text


@PAGES
def test_a_page_shows_a_script_that_its_rule_alone_refuses(page: RulePage) -> None:
    assert refusals(page.refused) == {page.code}


@PAGES
def test_what_a_page_says_to_write_instead_is_accepted(page: RulePage) -> None:
    assert refusals(page.instead) == set()
