"""Loading a script, the names it finds, and what is told of an error that ended it."""

import builtins
import warnings
from collections.abc import Callable
from typing import Any, Literal

from tallystick.sandbox.frames import MAX_COUNT, MAX_NAME, MAX_TEXT, MAX_WHERE, Crash
from tallystick.sandbox.guest.values import CapabilityError, Failed, display

FILENAME = "<script>"
ENTRY = "orchestrate"

# What the checker refuses by name is not there at run time either (contract.md, section 4, R04 and R10): no clock, no
# file, no code from text, no attribute by name, no classes. Exceptions come on top: those a script may catch.
OFFERED = (
    "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex",
    "dict", "divmod", "enumerate", "filter", "float", "format", "frozenset", "hasattr", "hex", "int", "isinstance",
    "issubclass", "iter", "len", "list", "map", "max", "min", "next", "object", "oct", "ord", "pow", "range", "repr",
    "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
)  # fmt: skip


_NAMES: dict[str, Any] = {name: getattr(builtins, name) for name in OFFERED}
_NAMES |= {
    name: value for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
}
_NAMES |= {"CapabilityError": CapabilityError, "Failed": Failed}


def script_builtins(print_line: Callable[..., None]) -> dict[str, Any]:
    """Return the ``__builtins__`` of a script; ``print`` is ``print_line``."""
    return {**_NAMES, "print": print_line}


def load(source: str, offered: dict[str, Any]) -> Callable[..., Any]:
    """Run a script's definitions and return its entry point.

    Raises:
        Exception: whatever the source raises while it is compiled and its definitions run.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, FILENAME, "exec", dont_inherit=True)
    namespace: dict[str, Any] = {"__builtins__": offered, "__name__": "script"}
    exec(code, namespace)  # noqa: S102 - running the script is what this program is for
    entry: Callable[..., Any] | None = namespace.get(ENTRY)
    if not callable(entry):
        raise TypeError(f"the script defines no 'async def {ENTRY}(ctx, args)'")
    return entry


def crash(nonce: str, error: BaseException, phase: Literal["load", "run", "result"]) -> Crash:
    """Return the frame that tells the host how the script ended: the error, and the script's own lines.

    The error loses its traceback, and the script's data with it.
    """
    try:
        text = display(error)
    except Exception as unprintable:  # noqa: BLE001 - the text of an error may be made of anything
        text = f"its text could not be made: {type(unprintable).__name__}"
    where = _where(error)
    error.__traceback__ = None
    return Crash(
        nonce=nonce,
        kind=type(error).__name__[:MAX_NAME],
        text=text[:MAX_TEXT],
        where=where,
        phase=phase,
        capability_error=_call_of(error),
    )


def _call_of(error: BaseException) -> int | None:
    """Return the call that failed, None where the error is of the script's own making, or it says anything else."""
    call = error.call_id if isinstance(error, CapabilityError) else None
    return call if type(call) is int and 1 <= call <= MAX_COUNT else None


def _where(error: BaseException) -> tuple[tuple[int, str], ...]:
    """Return (line, function) of the script's frames that the error passed, innermost last, the last ones only."""
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        line = error.lineno  # the compiler's, or whatever a script has raised it with
        return ((line if type(line) is int and 0 <= line <= MAX_COUNT else 0, "<module>"),)
    found: list[tuple[int, str]] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILENAME:
            name = code.co_qualname.replace(".<locals>", "")
            found.append((trace.tb_lineno or 0, name[-MAX_NAME:]))
        trace = trace.tb_next
    return tuple(found[-MAX_WHERE:])
