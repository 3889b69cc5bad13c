"""docs/configuration.md names every key of the configuration with its default, and no other."""

import json
import re
from typing import Any

import msgspec

from docs_support import DOCS, rows, sources
from tallystick.contract.capability import Envelope
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.config import BudgetSettings, CapabilityPolicy, Config, DaemonSettings, SandboxSettings
from tallystick.engine.messages import Limits

PAGE = DOCS / "configuration.md"
_CODE = re.compile(r"`([^`]*)`")


def documented(prefix: str, column: int) -> dict[str, str]:
    """Return what a column says of each key under a prefix: its code, or its words where it has none."""
    found = {}
    for cells in rows(PAGE):
        match = _CODE.fullmatch(cells[0])
        if match and match[1].startswith(f"{prefix}."):
            code = _CODE.search(cells[column])
            found[match[1].removeprefix(f"{prefix}.")] = code[1] if code else cells[column]
    return found


def defaults(kind: type[msgspec.Struct], words: dict[str, str]) -> dict[str, str]:
    """Return the default of each field as TOML writes it, or what ``words`` says of it."""
    return {field.name: words.get(field.name) or json.dumps(field.default) for field in msgspec.structs.fields(kind)}


def test_each_setting_stands_with_its_default() -> None:
    assert documented("daemon", 1) == defaults(DaemonSettings, {})
    absent = {field.name: "none" for field in msgspec.structs.fields(AuthoringSettings) if field.default is None}
    assert documented("authoring", 1) == defaults(AuthoringSettings, absent)
    assert documented("sandbox", 1) == defaults(SandboxSettings, {})
    assert documented("capabilities.*", 1) == defaults(
        CapabilityPolicy,
        {
            "provider": "required",
            "estimate": "the catalogue's",
            "estimate_tokens": "the catalogue's",
            "ceiling": "none",
            "rate": "no limit",
        },
    )
    assert documented("budget", 1) == defaults(BudgetSettings, {"cap_usd": "no limit"})


def test_the_page_has_every_table_of_the_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = {field.name for field in msgspec.structs.fields(Config)}
    assert set(re.findall(r"^## `\[(\w+)", text, re.MULTILINE)) == tables


def test_each_limit_stands_with_its_default() -> None:
    names = {"budget_usd": "budget"}
    envelope = Envelope()
    words: dict[Any, str] = {None: "no limit", (): "none"}
    expected = {}
    for name in Limits.__struct_fields__:
        default = getattr(envelope, names.get(name, name))
        expected[name] = words.get(default) or json.dumps(default)
    assert documented("limits", 2) == expected


def test_each_variable_of_the_environment_is_named() -> None:
    named = set(re.findall(r"^\| `(TALLYSTICK_[A-Z]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    read = {
        name for path in sources() for name in re.findall(r"\"(TALLYSTICK_[A-Z]+)", path.read_text(encoding="utf-8"))
    }
    assert named == read


def test_ceilings_without_an_option_are_as_stated() -> None:
    envelope = Envelope()
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{envelope.max_calls_per_site} new calls of one site" in text
    assert f"{envelope.max_width} branches of one fanout" in text
