"""What does `tally --help` cost, against a bare typer app with as many commands?

Each program is started in turn in a process of its own, with its bytecode cached; what counts is the processor time
of the fastest starts, since everything slower is the machine's doing.
"""

import os
import resource
import subprocess
import sys
from typing import NamedTuple

from tallystick.bench.frame import Bench, Findings, Options, Table

BUDGET = 1.3
ROUNDS = 25
COUNTED = 5

_OURS = "import sys; from tallystick.cli.main import main; sys.exit(main(['--help']))"
_BARE = """
import typer
app = typer.Typer(rich_markup_mode=None, add_completion=False)
for number in range({commands}):
    def command() -> None:
        "Do one thing, and say so in a line of help."
    app.command(name=f"command-{{number}}")(command)
app(["--help"])
"""


class Cost(NamedTuple):
    """Processor time of one start, in milliseconds; ``ratio`` is what the budget is about."""

    tally: float
    bare: float
    commands: int

    @property
    def ratio(self) -> float:
        """How many bare starts one of ours costs."""
        return self.tally / self.bare


def measure(rounds: int = ROUNDS) -> Cost:
    """Start both programs ``rounds`` times, in turn, after one start each that fills the caches."""
    shown = _start(_OURS)[1]
    commands = len([line for line in shown.partition("Commands:\n")[2].splitlines() if line.strip()])
    bare = _BARE.format(commands=commands)
    _start(bare)
    times: dict[str, list[float]] = {_OURS: [], bare: []}
    for _ in range(rounds):
        for program, taken in times.items():
            taken.append(_start(program)[0])
    ours, others = (sum(sorted(taken)[:COUNTED]) / min(COUNTED, rounds) for taken in times.values())
    return Cost(ours, others, commands)


def _findings(_: Options) -> Findings:
    cost = measure()
    rows = (
        ("tally --help", f"{cost.tally:.1f} ms of processor time"),
        (f"bare typer, {cost.commands} commands", f"{cost.bare:.1f} ms"),
        ("ratio", f"{cost.ratio:.2f} (budget {BUDGET})"),
    )
    over = (f"tally --help costs {cost.ratio:.2f} bare starts, and may cost {BUDGET}",) if cost.ratio > BUDGET else ()
    return Findings((Table(("", ""), rows),), {**cost._asdict(), "ratio": cost.ratio, "budget": BUDGET}, over)


def _start(program: str) -> tuple[float, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own text
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, done.stdout


main = Bench("help", __doc__, _findings).main

if __name__ == "__main__":
    sys.exit(main())
