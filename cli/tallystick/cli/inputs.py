"""What a person writes on the command line, read strictly; every refusal says what to write instead."""

import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tallystick.cli import attachments
from tallystick.contract.capability import OrphanPolicy, RepeatPolicy
from tallystick.contract.errors import UsageError
from tallystick.contract.identity import Identity
from tallystick.engine.authoring.choices import AutoRepair, ModelChoice
from tallystick.engine.messages import Limits

MAX_SCRIPT_BYTES = 512 * 1024
MAX_JSON_BYTES = 4 * 1024 * 1024
MAX_DOLLARS = 1e9

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_DOLLARS = re.compile(r"\$?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)


def read_script(path: Path) -> str:
    """Read a script's source (str), without a byte order mark.

    Raises:
        UsageError: missing, unreadable, a folder, beyond 512 KiB, not UTF-8.
    """
    return _read(path, "script", MAX_SCRIPT_BYTES)


def one_script(positional: Path | None, option: Path | None) -> Path | None:
    """Return the script that was named in one of two ways, None when it was in neither.

    Raises:
        UsageError: it was named in both.
    """
    if positional is not None and option is not None:
        raise UsageError(
            f"two scripts are named, {positional} and --script {option}", hint="name one of them, either way"
        )
    return option if positional is None else positional


def json_value(text: str, option: str) -> Any:
    """Read JSON that is given inline or, as ``@FILE``, by the file that holds it.

    Raises:
        UsageError: the file cannot be read, or it is not JSON; the message says where.
    """
    if not text.startswith("@"):
        return _decode(text, option, 'quote the JSON for your shell, say \'{"brief": "a lighthouse"}\', or use @FILE')
    path = Path(text[1:])
    return json_file(path, option)


def json_file(path: Path, option: str) -> Any:
    """Read a file that holds one JSON value.

    Raises:
        UsageError: the file cannot be read, or it is not JSON.
    """
    return _decode(_read(path, "file", MAX_JSON_BYTES), f"{option} {path}", "the file must hold one JSON value")


def result_file(path: Path, option: str) -> Any:
    """Read a file that holds a call's result, with the files that it names put in.

    Raises:
        UsageError: it cannot be read, is not JSON, or names a file that cannot be used.
    """
    return attachments.with_files(json_file(path, option), path.parent)


def dollars(text: str, option: str) -> float:
    """Read an amount of dollars, ``1.50`` or ``$1.50``; zero is an amount.

    Raises:
        UsageError: not a number, negative, absurdly large.
    """
    if _DOLLARS.fullmatch(text) is None or not (amount := float(text.removeprefix("$"))) <= MAX_DOLLARS:
        raise UsageError(f"{option} {text!r} is not an amount of dollars", hint=f"write it as {option} 1.50")
    return amount


def duration(text: str, option: str) -> float:
    """Read a stretch of time with its unit, ``50ms``, ``2s``, ``1.5m``, ``1h``, and return seconds.

    Raises:
        UsageError: no number, no unit, an unknown unit.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"{option} {text!r} is not a duration", hint="write a number and a unit: 50ms, 2s, 1.5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def names(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the names of a repeatable option that also takes comma lists, each once; None when it was not given."""
    if given is None:
        return None
    return tuple(dict.fromkeys(name for item in given for name in re.split(r"[,\s]+", item) if name))


def identity(text: str, option: str) -> Identity:
    """Read an identity in the form that messages show.

    Raises:
        UsageError: it has another form.
    """
    try:
        return Identity.parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint="copy it from the message, in quotes") from None


def limits(
    *,
    envelope: Path | None = None,
    grant: Iterable[str] | None = None,
    budget: str | None = None,
    budget_tokens: int | None = None,
    concurrency: int | None = None,
    max_calls: int | None = None,
    wall_clock: str | None = None,
    repeats: RepeatPolicy | None = None,
    orphans: OrphanPolicy | None = None,
) -> Limits:
    """Put the limits together; an option wins over the envelope file.

    Raises:
        UsageError: a value or the file is wrong.
    """
    given: dict[str, Any] = {
        "grants": names(grant),
        "budget_usd": None if budget is None else _positive(dollars(budget, "--budget"), "--budget"),
        "budget_tokens": budget_tokens,
        "concurrency": concurrency,
        "max_calls": max_calls,
        "wall_clock": None if wall_clock is None else _positive(duration(wall_clock, "--wall-clock"), "--wall-clock"),
        "repeat_policy": repeats,
        "orphan_policy": orphans,
    }
    base = Limits() if envelope is None else read_envelope(envelope)
    return msgspec.structs.replace(base, **{name: value for name, value in given.items() if value is not None})


def require_free(path: Path | None) -> None:
    """Refuse a file to write that exists, before anything is paid for what is to stand in it.

    Raises:
        UsageError: it exists.
    """
    if path is not None and path.exists():
        raise UsageError(f"{path} exists, and is not written over; nobody was asked", hint="name another file with -o")


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist.

    Raises:
        UsageError: it exists by now, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="tally show names the run, which keeps the script"
        ) from None


def auto_repair(
    rewrites: int | None, *, model: str | None, base_url: str | None, provider: str | None
) -> AutoRepair | None:
    """Put together how a run is repaired without asking; None when it is not.

    Raises:
        UsageError: a model is named, and nothing says that it is to repair.
    """
    choice = ModelChoice(model, base_url, provider)
    if rewrites is None and choice != ModelChoice():
        raise UsageError("--model, --base-url and --provider name who repairs: --auto-repair N says how often at most")
    return None if rewrites is None else AutoRepair(rewrites, choice)


def read_envelope(path: Path) -> Limits:
    """Read limits from a TOML or JSON file whose names are those of ``Limits``; seconds and dollars are numbers.

    Raises:
        UsageError: unreadable, neither TOML nor JSON, an unknown name, a value of the wrong kind or out of range.
    """
    text = _read(path, "envelope", MAX_JSON_BYTES)
    option = f"--envelope {path}"
    try:
        values = tomllib.loads(text) if path.suffix == ".toml" else msgspec.json.decode(text)
        found = msgspec.convert(values, Limits)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        known = ", ".join(Limits.__struct_fields__)
        raise UsageError(f"{option}: {error}", hint=f"TOML (.toml) or JSON with some of: {known}") from None
    for name in ("budget_usd", "budget_tokens", "concurrency", "max_calls", "wall_clock"):
        value = getattr(found, name)
        if value is not None:
            _positive(value, f"{option}: {name}")
    return found


def _positive(value: float, what: str) -> float:
    if not 0 < value < math.inf:
        raise UsageError(f"{what} must be above zero and finite, not {value:g}", hint="leave it out for no limit")
    return value


def _decode(text: str, option: str, hint: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"{option} is not JSON: {error}", hint=hint) from None
    except RecursionError:
        raise UsageError(f"{option} is nested too deep", hint="flatten it") from None


def _read(path: Path, what: str, limit: int) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be read: {error.strerror}", hint="check the path") from None
    except ValueError as error:
        raise UsageError(f"the {what} {str(path)!r} cannot be read: {error}", hint="check the path") from None
    if len(data) > limit:
        raise UsageError(
            f"the {what} {path} is larger than {limit // 1024} KiB; nothing was sent", hint="make it smaller"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the {what} {path} is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}",
            hint="is it the right file? Save it as UTF-8",
        ) from None
