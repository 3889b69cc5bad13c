"""Tables of the documentation that restate the code are held against it."""

from docs_support import DOCS, marked_rows
from tallystick.contract.capability import usd
from tallystick.providers import catalogue


def plain(cell: str) -> str:
    return cell.strip("`")


def test_the_catalogue_is_the_programs() -> None:
    expected = [
        [
            name,
            catalogue.shape(name).payload,
            catalogue.shape(name).result,
            known.effect.replace("_", "-"),
            usd(known.estimate),
            "local" if known.bound else "none",
        ]
        for name, known in catalogue.CATALOGUE.items()
    ]
    assert [list(map(plain, cells)) for cells in marked_rows(DOCS / "providers.md", "catalogue")] == expected
