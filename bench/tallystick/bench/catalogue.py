"""The benches there are. Listing them imports none: their questions are read off their sources."""

import ast
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tallystick.contract.errors import UsageError

NAMES = ("fanout", "durable", "paper", "scale", "identities", "repair", "sandbox", "help")


class Question(msgspec.Struct, frozen=True):
    """A bench, and what it asks."""

    name: str
    question: str


def listing() -> list[Question]:
    """Return every bench with its question."""
    return [Question(name, _question(name)) for name in NAMES]


def run(name: str, argv: Sequence[str]) -> int:
    """Run a bench and return its exit status.

    Raises:
        UsageError: there is no such bench.
    """
    if name not in NAMES:
        raise UsageError(f"there is no bench {name!r}", hint=f"there are {', '.join(NAMES)}; tally bench lists them")
    module = importlib.import_module(_module(name))
    try:
        return int(module.main(argv))
    except SystemExit as ended:  # argparse, which has said why
        return int(ended.code or 0)


def _module(name: str) -> str:
    """Return what has the bench's ``main``: a module, or what a package runs."""
    package = f"tallystick.bench.{name}"
    return f"{package}.__main__" if _origin(package).name == "__init__.py" else package


def _question(name: str) -> str:
    text = ast.get_docstring(ast.parse(_origin(f"tallystick.bench.{name}").read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition("``")[0].strip()


def _origin(module: str) -> Path:
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)
