"""Tables of the documentation that restate the code are held against it."""

import re

from litestar.handlers import HTTPRouteHandler

from docs_support import DOCS, marked_rows
from tallystick.contract.capability import usd
from tallystick.engine import api
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


def test_the_routes_are_the_programs() -> None:
    served = {
        f"{method} {re.sub(r':[a-z]+', '', path)}"
        for handler in vars(api).values()
        if isinstance(handler, HTTPRouteHandler)
        for path in handler.paths
        for method in handler.http_methods
    }
    assert {plain(cells[0]) for cells in marked_rows(DOCS / "architecture.md", "routes")} == served
