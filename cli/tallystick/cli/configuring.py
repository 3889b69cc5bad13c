"""The configuration as people read it: what is wrong with it, and what it comes to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from tallystick.cli.fields import Labelled
from tallystick.cli.terminal import count, plain
from tallystick.engine.config import load
from tallystick.engine.config_check import ConfigReport

HIDDEN = "[hidden]"
#: Parts of names under which a provider's settings might hold a secret, though none should.
_SECRET = ("key", "token", "secret", "password", "authorization", "cookie")
#: Settings with such a name that say where a secret is, or count something.
_HARMLESS = ("env", "keyring", "user", "header", "form", "dedupes_keys", "max_tokens")


def findings(report: ConfigReport) -> RenderableType:
    """Return what was found, errors first, and a verdict."""
    parts: list[RenderableType] = []
    for finding in sorted(report.findings, key=lambda one: one.severity != "error"):
        style = "bold red" if finding.severity == "error" else "yellow"
        text = ": ".join(filter(None, (plain(finding.where), plain(finding.message))))
        parts.append(Labelled(Text(f"{finding.severity}: ", style), Text(text), 2))
        if finding.hint:
            parts.append(Labelled(Text("  hint: ", "dim"), Text(plain(finding.hint))))
    errors = sum(finding.severity == "error" for finding in report.findings)
    verdict = (f"{count(errors, 'error')}", "bold red") if errors else ("good", "bold green")
    missing = "" if report.exists else ", which does not exist: every default holds"
    parts.append(Text.assemble(verdict, f": {report.path}{missing}"))
    return Group(*parts)


def shown(path: Path) -> dict[str, Any]:
    """Return the configuration with every default filled in, and without what might be a secret.

    Raises:
        UsageError: the file is wrong.
    """
    config = load(path)
    filled = msgspec.to_builtins(msgspec.structs.replace(config, capabilities=config.policies()))
    filled["providers"] = _hidden(filled["providers"])
    return dict(filled)


def as_toml(path: Path, config: dict[str, Any]) -> str:
    """Return a configuration as TOML; values that are not set stand as comments."""
    head = f"# {path}" + ("" if path.exists() else ", which does not exist: every default holds")
    return plain("\n".join([head, *_tables(config, "")]))


def _tables(table: dict[str, Any], name: str) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    if name and (len(inner) < len(table) or not table):
        yield f"\n[{name}]"
    for key, value in table.items():
        if not isinstance(value, dict):
            yield f"# {_key(key)} is not set" if value is None else f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield from _tables(value, f"{name}.{_key(key)}" if name else _key(key))


def _key(name: str) -> str:
    return name if name and all(letter.isalnum() or letter in "_-" for letter in name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return msgspec.json.encode(value).decode()


def _hidden(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _hidden(item, key) for key, item in value.items()}
    suspect = name.lower() not in _HARMLESS and any(part in name.lower() for part in _SECRET)
    return HIDDEN if suspect and isinstance(value, str) else value
