"""Scripts that take what they can: memory, time, descriptors, room for output; and those that leave without a word."""

from collections.abc import Callable
from typing import NamedTuple

from tallystick.sandbox.acceptance.inside import PRELUDE
from tallystick.sandbox.frames import Crash, Done, FrameError, Log, ToHost
from tallystick.sandbox.protocol import Exit, Limits


class Outcome(NamedTuple):
    """What a script came to: the frames that it sent, how its guest ended, the breach that the host saw."""

    frames: list[ToHost]
    exit: Exit
    fault: FrameError | None

    @property
    def crash(self) -> Crash | None:
        """The crash that it ended with, if any."""
        last = self.frames[-1] if self.frames else None
        return last if isinstance(last, Crash) else None

    @property
    def completed(self) -> bool:
        """Whether the host would take it for completed."""
        done = bool(self.frames) and isinstance(self.frames[-1], Done)
        return done and self.fault is None and (self.exit.cause, self.exit.code) == ("exit", 0)

    def __str__(self) -> str:
        last = type(self.frames[-1]).__name__ if self.frames else "no frame"
        how = f"signal {self.exit.signal}" if self.exit.signal is not None else f"status {self.exit.code}"
        return f"{last}, then {self.exit.cause} ({how})" + (f"; {self.fault}" if self.fault else "")


class Trial(NamedTuple):
    """A script with what the host gives it, and what must come of it."""

    check: str
    name: str
    body: str
    holds: Callable[[Outcome], bool]
    limits: Limits = Limits()

    @property
    def source(self) -> str:
        """The script."""
        lines = "\n".join(f"    {line}" for line in self.body.splitlines())
        return f"{PRELUDE}\nasync def orchestrate(ctx, args):\n{lines}\n"


def _ends_by(*causes: str) -> Callable[[Outcome], bool]:
    return lambda seen: seen.exit.cause in causes and not seen.completed


def _crashes_with(kind: str) -> Callable[[Outcome], bool]:
    return lambda seen: seen.crash is not None and seen.crash.kind == kind


def _not_completed(seen: Outcome) -> bool:
    return not seen.completed


_STDERR = 30_000
_LOGGED = 2 << 20

TRIALS = (
    Trial(
        "memory limit",
        "a hoard of memory",
        "hoard = []\nwhile True:\n    hoard.append(list(range(1000)))",
        _ends_by("memory"),
        Limits(memory=96 << 20),
    ),
    Trial(
        "memory limit",
        "a hoard that catches every error",
        "hoard = []\nwhile True:\n    try:\n        while True: hoard.append('x' * (1 << 20))\n"
        "    except MemoryError:\n        hoard.append(hoard[:])",
        _ends_by("memory", "cpu"),
        Limits(memory=96 << 20, cpu_seconds=2),
    ),
    Trial("timeout", "an endless loop", "while True: pass", _ends_by("cpu"), Limits(cpu_seconds=1)),
    Trial(
        "timeout",
        "one endless step of the interpreter",
        "return pow(7, 7 ** 20)",
        _ends_by("cpu"),
        Limits(cpu_seconds=1),
    ),
    Trial(
        "processes and signals",
        "a bomb of threads",
        "while True: BRING('_thread').start_new_thread(print, ())",
        _crashes_with("RuntimeError"),
    ),
    Trial(
        "resource limits",
        "a bomb of descriptors",
        "hoard = []\nwhile True: hoard.append(OS.open('/dev/null', 0))",
        _crashes_with("PermissionError"),
    ),
    Trial(
        "output limits",
        "a flood of the error stream",
        "while True: OS.write(2, b'x' * 10000)",
        lambda seen: not seen.completed and len(seen.exit.text) <= _STDERR,
        Limits(stderr=_STDERR, output=8 << 20),
    ),
    Trial(
        "output limits",
        "a flood of standard output",
        "while True: OS.write(1, b'\\xff' * 10000)",
        lambda seen: not seen.completed and len(seen.exit.text) <= _STDERR,
        Limits(stderr=_STDERR, output=8 << 20),
    ),
    Trial(
        "output limits",
        "a flood of printed lines",
        "for _ in range(40): print('x' * (1 << 20))",
        lambda seen: seen.completed and sum(len(f.text) for f in seen.frames if isinstance(f, Log)) < _LOGGED,
    ),
    Trial("output limits", "a result beyond its limit", "return 'x' * (16 << 20)", _crashes_with("TypeError")),
    Trial("frame protocol", "an exit in good order without a result", "OS._exit(0)", _not_completed),
    Trial("frame protocol", "an exit by the interpreter's own way", "REAL['exit'](0)", _not_completed),
    Trial("frame protocol", "a crash of the interpreter", "CTYPES.string_at(0)", _not_completed),
)
