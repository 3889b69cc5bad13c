"""Tables of the documentation that restate the code are held against it."""

import re

from docs_support import DOCS, marked_rows
from tallystick.contract.capability import usd
from tallystick.engine.api import create_app
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
    app = create_app(None)  # type: ignore[arg-type]  # no request is made: the host is never asked for
    served = {
        f"{method} {re.sub(r':[a-z]+', '', route.path)}"
        for route in app.routes
        for method in getattr(route, "methods", ())
        if route.path.startswith("/v1/") and method != "OPTIONS"
    }
    assert {plain(cells[0]) for cells in marked_rows(DOCS / "architecture.md", "routes")} == served
