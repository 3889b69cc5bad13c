"""Live progress of a run on stderr: one line per finished call, and a status line where there is a terminal."""

import time
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from tallystick.cli.terminal import amount, console, money, plain
from tallystick.engine.messages import Progress

#: What each kind of progress is printed with; the others move the status line only.
_MARKS = {
    "committed": ("+", "green"),
    "failed": ("x", "red"),
    "unresolved": ("?", "bold yellow"),
    "denied": ("-", "yellow"),
    "warning": ("!", "yellow"),
    "log": (">", "dim"),
    "asked": ("*", "cyan"),
    "rejected": ("x", "yellow"),
    "accepted": ("+", "bold green"),
    "preparing": (".", "dim"),
    "waiting": ("~", "yellow"),
    "retrying": ("~", "yellow"),
}
_PHASES = {
    "asked": "waiting for a model",
    "queued": "waiting for a free sandbox",
    "preparing": "preparing the sandbox",
    "settling": "settling the calls in flight",
    "waiting": "waiting for an approval",
    "retrying": "waiting to try again",
}


class Display:
    """Shows one run; a context manager, for the status line must be cleared whatever happens."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._phase = "running"
        self._latest = Progress(kind="snapshot", at=0.0)
        self._started = time.monotonic()
        self._console = console(stderr=True)
        self._spinner = Spinner("dots")
        self._live = Live(self, console=self._console, refresh_per_second=10, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __rich__(self) -> Table:
        row = Table.grid("", Column(no_wrap=True), padding=(0, 1))  # one line, whatever the width
        row.add_row(self._spinner, status_line(self._run, self._phase, self._latest, time.monotonic() - self._started))
        return row

    def show(self, progress: Progress) -> None:
        """Take the next progress of the stream."""
        self._latest = progress
        self._phase = _PHASES.get(progress.kind, "running")
        line = event_line(progress)
        if line is not None:
            self._console.print(line, soft_wrap=True)

    def dropped(self) -> None:
        """Say that the stream broke and is being opened again."""
        self._phase = "reconnecting"
        self._console.print("the connection to the daemon broke; reconnecting", style="yellow")


def event_line(progress: Progress) -> Text | None:
    """Return what is printed for one progress, None where only the counters move."""
    if progress.kind not in _MARKS:
        return None
    mark, style = _MARKS[progress.kind]
    text = Text.assemble((f"  {mark} ", style))
    parts = []
    if progress.identity is not None and str(progress.identity) not in progress.text:
        parts.append(f"{plain(progress.capability):<16} {plain(str(progress.identity))}".lstrip())
    if progress.cost_usd is not None:
        parts.append(money(progress.cost_usd))
    elif progress.kind == "committed":
        parts.append("cost unknown")
    if progress.text:
        further = f"\n  {mark} " if progress.kind == "log" else "\n    "
        parts.append(plain(progress.text).replace("\n", further))
    return text.append("  ".join(parts))


def status_line(run: str, phase: str, latest: Progress, seconds: float) -> Text:
    """Return the one line that says how the run stands."""
    calls = latest.calls
    parts = [f"{calls.executed} executed", f"{calls.replayed} replayed", f"{latest.in_flight} in flight"]
    parts += [f"{number} {name}" for number, name in ((calls.failed, "failed"), (calls.denied, "denied")) if number]
    parts += [amount(latest.spend.usd, latest.spend.unpriced), f"{seconds:.1f} s"]
    return Text.assemble((run, "bold"), " ", (phase, "cyan"), "  ", " · ".join(parts))
