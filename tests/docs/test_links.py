"""Every link of the documentation leads somewhere, and so does every mention of it in the sources."""

import re
from pathlib import Path

import pytest

from docs_support import DOCS, ROOT, anchors, headings, pages, prose, sources

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_SECTION = re.compile(r"contract\.md, (?:sections? )?(\d+(?:\.\d+)?)")
_PAGE = re.compile(r"docs/[\w/.-]+\.(?:md|svg)|docs/decisions/\d{4}")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for number, line in prose(page):
        for target in _LINK.findall(line):
            if target.startswith("https://"):
                continue
            name, _, anchor = target.partition("#")
            linked = (page.parent / name).resolve() if name else page
            if not linked.exists() or (anchor and anchor not in anchors(linked)):
                broken.append(f"line {number}: {target}")
    assert not broken


def test_every_page_can_be_reached_by_links() -> None:
    start = [*ROOT.glob("*.md"), DOCS / "architecture.md"]
    seen = {page.resolve() for page in start}
    queue = list(seen)
    while queue:
        page = queue.pop()
        for _, line in prose(page):
            for target in _LINK.findall(line):
                linked = (page.parent / target.partition("#")[0]).resolve()
                if linked.is_dir():
                    found = set(linked.glob("*.md"))
                else:
                    found = {linked} if linked.suffix == ".md" and linked.exists() else set()
                queue += found - seen
                seen |= found
    assert set(map(Path.resolve, pages())) == seen


def test_the_sections_that_code_cites_exist() -> None:
    numbers = {
        match[1] for heading in headings(DOCS / "contract.md") if (match := re.match(r"(\d+(?:\.\d+)?)", heading))
    }
    cited = {
        (section, str(path.relative_to(ROOT)))
        for path in sources()
        for section in _SECTION.findall(path.read_text(encoding="utf-8"))
    }
    assert cited
    assert {(section, path) for section, path in cited if section not in numbers} == set()


def test_the_pages_that_sources_name_exist() -> None:
    texts = [*sources(), ROOT / "pyproject.toml", ROOT / "Makefile"]
    named = {(name, path) for path in texts for name in _PAGE.findall(path.read_text(encoding="utf-8"))}
    assert named
    missing = {name for name, _ in named if not (ROOT / name).exists() and not list(ROOT.glob(f"{name}-*.md"))}
    assert missing == set()
