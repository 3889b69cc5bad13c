"""Helpers of the sandbox's tests: a guest without a process that is played to its end, answered in any order."""

from collections.abc import Callable
from inspect import cleandoc
from textwrap import indent
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

from tallystick.sandbox.frames import WINDOW, Call, Crash, Done, Failure, Log, Reply, Start, ToHost
from tallystick.sandbox.guest.core import Guest

NONCE = "n"

Answer = Callable[[Call], Reply | Failure]


def echo(call: Call) -> Reply:
    """Answer a call with its own payload."""
    return Reply(nonce=NONCE, id=call.id, value=call.payload)


def failing(*payloads: Any) -> Answer:
    """Fail the calls with these payloads; each error's text names its payload."""

    def answer(call: Call) -> Reply | Failure:
        if call.payload in payloads:
            return Failure(nonce=NONCE, id=call.id, kind="rate_limited", text=f"no {call.payload}")
        return echo(call)

    return answer


class Play:
    """A script in a guest. What it sends is kept; the test answers call by call, or lets it run to its end."""

    def __init__(self, source: str, args: Any = None, window: int = WINDOW) -> None:
        self.guest = Guest(NONCE)
        self.frames: list[ToHost] = []
        self.open: list[Call] = []
        self._keep(self.guest.feed([Start(nonce=NONCE, source=source, args=args, window=window)]))

    def answer(self, *calls: Call, by: Answer = echo) -> list[Call]:
        """Answer calls in one batch and return the new ones."""
        before = len(self.calls)
        for call in calls:
            self.open.remove(call)
        self._keep(self.guest.feed([by(call) for call in calls]))
        return self.calls[before:]

    def to_end(self, by: Answer = echo) -> "Play":
        """Answer all open calls, in their order, until the script has ended."""
        while self.guest.last is None:
            assert self.open, "the script waits for nothing"
            self.answer(*self.open, by=by)
        return self

    @property
    def calls(self) -> list[Call]:
        return [frame for frame in self.frames if isinstance(frame, Call)]

    @property
    def logs(self) -> list[str]:
        return [frame.text for frame in self.frames if isinstance(frame, Log)]

    @property
    def identities(self) -> list[tuple[str, tuple[int | str, ...], int]]:
        return [(call.site, call.path, call.occurrence) for call in self.calls]

    @property
    def result(self) -> Any:
        """What the script returned."""
        assert isinstance(self.guest.last, Done), self.guest.last
        return self.guest.last.value

    @property
    def crash(self) -> Crash:
        """How the script crashed."""
        assert isinstance(self.guest.last, Crash), self.guest.last
        return self.guest.last

    def _keep(self, frames: list[ToHost]) -> None:
        self.frames += frames
        self.open += [frame for frame in frames if isinstance(frame, Call)]


def script(body: str, *definitions: str) -> str:
    """Return a module whose ``orchestrate`` has this body; definitions stand before it."""
    inner = indent(cleandoc(body), "    ")
    return "\n".join([*definitions, "async def orchestrate(ctx, args):", inner, ""])


def played(body: str, *definitions: str, args: Any = None, by: Answer = echo, window: int = WINDOW) -> Play:
    """Run the body of a script to its end."""
    return Play(script(body, *definitions), args, window).to_end(by)


def guests() -> list[psutil.Process]:
    """Return the guests that are children of this process, those that nobody has waited for included.

    Other tests may keep a server running beside them.
    """
    found = []
    for child in psutil.Process().children():
        command = child.cmdline()
        if not command or "typing_extensions" in command[-1]:
            found.append(child)
    return found
