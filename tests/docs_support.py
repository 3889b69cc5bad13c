"""The pages of the documentation as tests read them: their code blocks, tables, headings and links."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PORTIONS = ("runtime", "store", "sandbox", "providers", "cli", "bench")

_FENCE = re.compile(r"^ *(```+|~~~+)(.*)$")
_HEADING = re.compile(r"^#{1,6} +(.*?)\s*$")


class Block(NamedTuple):
    """One fenced block: the page and line that it begins at, its info string, its text."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return every page: those of docs, and those beside it."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def sources() -> list[Path]:
    """Return every source file of the product."""
    return [path for portion in PORTIONS for path in sorted((ROOT / portion).rglob("*.py"))]


def blocks(page: Path, info: str = "") -> list[Block]:
    """Return the fenced blocks of a page whose info string begins with ``info``."""
    return [block for block in _blocks(page) if block.info.startswith(info)]


def all_blocks(info: str) -> list[Block]:
    """Return the fenced blocks of all pages whose info string begins with ``info``."""
    return [block for page in pages() for block in blocks(page, info)]


def prose(page: Path) -> list[tuple[int, str]]:
    """Return the numbered lines of a page that stand outside fenced blocks."""
    inside = {
        number for block in _blocks(page) for number in range(block.line, block.line + block.text.count("\n") + 2)
    }
    lines = page.read_text(encoding="utf-8").splitlines()
    return [(number, line) for number, line in enumerate(lines, 1) if number not in inside]


def headings(page: Path) -> list[str]:
    """Return the headings of a page, in order."""
    return [match[1] for _, line in prose(page) if (match := _HEADING.match(line))]


def anchors(page: Path) -> set[str]:
    """Return the names under which the headings of a page are linked to."""
    found: set[str] = set()
    for heading in headings(page):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number, name = 0, slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def marked_rows(page: Path, mark: str) -> list[list[str]]:
    """Return the cells of the table between ``<!-- mark -->`` and ``<!-- /mark -->``, without its head."""
    text = page.read_text(encoding="utf-8")
    inside = text.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0]
    return _cells(inside.strip().splitlines())[2:]


def rows(page: Path) -> list[list[str]]:
    """Return the cells of every table row of a page."""
    return _cells(line for _, line in prose(page))


def _cells(lines: Iterable[str]) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in lines
        if line.lstrip().startswith("|")
    ]


def _blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[int, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, body = (number, fence[1], fence[2].strip()), []
        elif opened is not None and fence and fence[1].startswith(opened[1]) and not fence[2].strip():
            found.append(Block(page, opened[0], opened[2], "".join(f"{each}\n" for each in body)))
            opened = None
        elif opened is not None:
            body.append(line)
    assert opened is None, f"{page}: the block at line {opened[0]} is not closed"
    return found
