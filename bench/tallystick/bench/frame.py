"""The frame of every bench: its options, the table that it prints, the JSON and the plot that it writes.

A bench measures and returns ``Findings``; what is said of them, where they go and with which exit status is the same
for all. Figures go with what they were measured on (``machine.py``), for absolute times mean nothing without.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tallystick.bench.machine import Surroundings, surroundings
from tallystick.contract.errors import TallyError
from tallystick.contract.events import ErrorInfo

INTERRUPTED = 130

Point: TypeAlias = tuple[float, float]


class Table(msgspec.Struct, frozen=True):
    """Rows under heads: the first column is text and stands left, all others right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def __str__(self) -> str:
        """Return the table as lines of text."""
        lines = [line for line in (self.heads, *self.rows) if any(line)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.heads))]
        shown = ("  ".join(_aligned(cell, width, at) for at, (cell, width) in enumerate(zip(line, widths, strict=True)))
                 for line in lines)  # fmt: skip
        return "\n".join([*([self.title] if self.title else []), *(line.rstrip() for line in shown)])


class Plot(msgspec.Struct, frozen=True):
    """What would be looked at rather than read: lines through points, by their names."""

    title: str
    x: str
    y: str
    lines: dict[str, tuple[Point, ...]]
    logarithmic: bool = False


class Findings(msgspec.Struct, frozen=True):
    """What a bench found.

    Attributes:
        tables: what is printed.
        figures: what is written, as JSON can hold it.
        missed: what was to be shown and was not, a sentence each; with any the exit status is 1.
        notes: what a reader of the tables should know.
        plot: what is drawn, if anything is.
    """

    tables: tuple[Table, ...]
    figures: Any
    missed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    plot: Plot | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of a bench."""

    bench: str
    command: tuple[str, ...]
    surroundings: Surroundings
    figures: Any
    missed: tuple[str, ...]
    notes: tuple[str, ...]
    plot: Plot | None


Options: TypeAlias = argparse.Namespace


def no_options(_: argparse.ArgumentParser) -> None:
    """Add no options."""


class Bench:
    """One question with what answers it.

    Args:
        name: what it is called, as in ``tally bench NAME``.
        text: the question in its first line, and how it is answered: the docstring of the bench's module.
        measure: finds the answer.
        add: adds the options that only this bench has.
    """

    def __init__(
        self,
        name: str,
        text: str | None,
        measure: Callable[[Options], Findings],
        add: Callable[[argparse.ArgumentParser], None] = no_options,
    ) -> None:
        self.name = name
        self._text = text or ""
        self._measure = measure
        self._add = add

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Measure, print and write; return 0, 1 where something was missed, or the status of an error."""
        words = list(sys.argv[1:] if argv is None else argv)
        options = self._parser().parse_args(words)
        try:
            with _no_log():
                findings = self._measure(options)
            with disk(options) as folder:
                written = Written(
                    bench=self.name,
                    command=("tally", "bench", self.name, *words),
                    surroundings=surroundings(folder),
                    figures=findings.figures,
                    missed=findings.missed,
                    notes=findings.notes,
                    plot=findings.plot,
                )
            self._keep(written, options.out)
        except TallyError as error:
            return _report(error, as_json=options.json)
        except KeyboardInterrupt:
            note("interrupted; nothing was written")
            return INTERRUPTED
        if options.json:
            print(msgspec.json.encode(written).decode())
        else:
            _say(findings)
        return int(bool(findings.missed))

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"tally bench {self.name}",
            description=self._text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._add(parser)
        parser.add_argument("--out", type=Path, default=Path("bench-out"), metavar="DIR", help="where files go")
        parser.add_argument("--disk", type=Path, metavar="DIR", help="where stores are made; the daemon's by default")
        parser.add_argument("--json", action="store_true", help="print the JSON in place of the tables")
        return parser

    def _keep(self, written: Written, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{self.name}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=2) + b"\n")
        note(f"written: {path}")
        if written.plot is not None:
            from tallystick.bench.plotting import draw

            for drawn in draw(written.plot, out / self.name):
                note(drawn)


@contextmanager
def disk(options: Options) -> Iterator[Path]:
    """Give a folder of its own on the disk that is measured; it is gone after the block."""
    from tallystick.engine import paths

    where = options.disk or paths.home()
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=where) as folder:
        yield Path(folder)


def note(line: str) -> None:
    """Tell a person what goes on, on stderr."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _no_log() -> Iterator[None]:
    """Keep the engine's log out of what is printed."""
    import logging

    import structlog

    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def _say(findings: Findings) -> None:
    print("\n\n".join(map(str, findings.tables)))
    lines = [*filter(None, findings.notes), *(f"missed: {line}" for line in findings.missed)]
    if lines:
        print("", *lines, sep="\n")


def _report(error: TallyError, *, as_json: bool) -> int:
    note(f"error[{error.code}]: {error.message}" + (f"\n  hint: {error.hint}" if error.hint else ""))
    if as_json:
        said = {"error": ErrorInfo(error.code, error.message, error.hint), "details": error.details}
        print(msgspec.json.encode(said).decode())
    return error.exit_code


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)
