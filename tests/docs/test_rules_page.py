"""docs/rules.md is what the rules' modules say."""

from pathlib import Path

from docs_support import DOCS
from tallystick.cli.docs import main, rules_page
from tallystick.contract.rules.pages import pages

PAGE = DOCS / "rules.md"


def test_the_page_of_the_rules_is_current(tmp_path: Path) -> None:
    main(tmp_path)
    assert (tmp_path / "rules.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), "run make docs"


def test_what_a_rule_says_changes_the_page() -> None:
    first, *others = pages()
    assert rules_page(others) != rules_page([first, *others])
