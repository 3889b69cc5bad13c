"""docs/errors.md has an entry for each code of the sources, and none that is stale."""

import re

from docs_support import DOCS, ROOT, headings, prose, sources
from tallystick.contract.errors import TallyError
from tallystick.engine.messages import exit_code_of

PAGE = DOCS / "errors.md"
_CODE = re.compile(r"TS-[A-Z]\d{3}")


def entries() -> list[str]:
    return [heading for heading in headings(PAGE) if _CODE.fullmatch(heading)]


def raised() -> set[str]:
    return {code for path in sources() for code in _CODE.findall(path.read_text(encoding="utf-8"))}


def test_each_code_has_one_entry_and_no_entry_is_stale() -> None:
    assert len(entries()) == len(set(entries()))
    assert set(entries()) == raised()


def test_entries_stand_in_the_order_of_their_codes() -> None:
    assert entries() == sorted(entries())


def test_each_entry_says_what_happened_and_what_to_do() -> None:
    text = PAGE.read_text(encoding="utf-8")
    bodies = dict(re.findall(r"^### (TS-\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert {code for code, body in bodies.items() if "**" not in body.strip()[:2] or "*Do*" not in body} == set()


def test_no_page_mentions_a_code_that_does_not_exist() -> None:
    mentioned = {
        code
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for _, line in prose(page)
        for code in _CODE.findall(line)
    }
    assert mentioned <= raised()


def test_the_table_of_exit_statuses_is_the_programs() -> None:
    statuses = {
        prefix: int(match[1])
        for _, line in prose(PAGE)
        if (match := re.match(r"\| (\d+) \|", line))
        for prefix in re.findall(r"\[(TS-[A-Z])\]", line)
    }
    assert {prefix: exit_code_of(f"{prefix}001") for prefix in statuses} == statuses
    assert {code[:4] for code in raised()} == set(statuses)


def test_error_classes_exit_as_the_table_says() -> None:
    classes = [TallyError]
    for each in classes:
        classes += each.__subclasses__()
    assert {each.__name__ for each in classes if each.exit_code != exit_code_of(each.code)} == set()
