"""What goes to the screen: the answer on stdout, what accompanies it on stderr, foreign text made harmless.

Rich is loaded by what prints for people: an answer in JSON does without.
"""

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from tallystick.contract.capability import MICROS_PER_USD, usd
from tallystick.contract.errors import TallyError
from tallystick.contract.events import ErrorInfo
from tallystick.engine.messages import ErrorBody

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Columns of a table that goes to a file or a pipe, where nothing says how wide it may be.
PIPE_WIDTH = 180

# Escape sequences would drive the terminal, and the bidirectional overrides show other code than what runs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Return text with every control character written as an escape; newlines and tabs stay."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def money(dollars: float) -> str:
    """Show dollars (float) as a person reads them."""
    return usd(round(dollars * MICROS_PER_USD))


def amount(dollars: float, unpriced: int) -> str:
    """Show dollars (float); beside calls whose cost nobody knows they are a lower bound, which is said."""
    return f"at least {money(dollars)}, {count(unpriced, 'call')} unpriced" if unpriced else money(dollars)


def count(number: int, noun: str) -> str:
    """Return ``1 error``, ``2 errors``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def console(*, stderr: bool = False) -> "Console":
    """Return a console that prints text as it is: no markup, no emoji codes, no guessed colours."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def say(content: "RenderableType") -> None:
    """Print a part of the answer on stdout."""
    _print(console(), content)


def note(content: "RenderableType") -> None:
    """Print what accompanies the answer on stderr."""
    _print(console(stderr=True), content)


def say_json(value: Any) -> None:
    """Print one JSON object, and a newline, on stdout."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def report_error(error: TallyError, *, as_json: bool) -> None:
    """Print an error for a person on stderr and, where asked for, for a program on stdout."""
    from rich.text import Text

    text = Text.assemble((f"error[{error.code}]", "bold red"), ": ", (plain(error.message), "bold"))
    if error.hint:
        text.append(f"\n  hint: {plain(error.hint)}")
    note(text)
    if as_json:
        say_json(ErrorBody(error=ErrorInfo(error.code, error.message, error.hint), details=error.details))


def _print(on: "Console", content: "RenderableType") -> None:
    """Print without breaking lines where a terminal or a reader does it better; tables break their own."""
    from rich.text import Text

    on.print(content, soft_wrap=isinstance(content, str | Text) or not on.is_terminal)
