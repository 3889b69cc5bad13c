"""The main job, told step by step: fail, be refused twice, be repaired, resume, pay once.

Everything that is shown is read from the daemon's reports. Each step checks that it went as promised; where one did
not, the demo says so and fails.
"""

import difflib
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tallystick.cli import attending, findings, reports, spawn
from tallystick.cli.client import Client, RefusedError, run_path
from tallystick.cli.fields import Fields
from tallystick.cli.findings import NamedSource
from tallystick.cli.terminal import money, note, say, say_json
from tallystick.contract.errors import TallyError, UsageError
from tallystick.engine import paths
from tallystick.engine.messages import (
    Artifact,
    AttemptReport,
    Conflict,
    Limits,
    ResumeRequest,
    RunReport,
    RunRequest,
)

ARGS = {"brief": "a lighthouse from dusk to dawn"}
GRANTS = ("storyboard.plan", "image.generate")
BUDGET = 1.0
FAULT = "image.generate:4:invalid_request:size 1792x1024 is not offered by this model"
LATENCY = 0.4
UNSAFE = (
    ("moved_to_helper.py", "moves the paid call into a helper"),
    ("inserted_call.py", "draws a sketch ahead of the paid call"),
)

_SCRIPTS = Path(__file__).with_name("scripts")

Show = Callable[[RenderableType], None]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo came to.

    Money is in dollars, ``rerun_usd`` what starting over would have made of the total; ``home`` and ``pictures`` are
    absolute paths.
    """

    run: str
    home: str
    paid_usd: float
    rerun_usd: float
    executed: int
    replayed: int
    pictures: tuple[str, ...]
    seconds: float


def tell(out: Path, home: Path | None, *, as_json: bool) -> int:
    """Run the demo with a daemon of its own, and put the pictures into ``out``.

    Raises:
        TallyError: a step did not go as promised, or something else went wrong.
    """
    began = time.monotonic()
    pictures = _folder(out)
    os.environ[paths.HOME_VARIABLE] = str(home or tempfile.mkdtemp(prefix="tally-demo-"))
    _embed()
    was_running = spawn.running() is not None
    client = spawn.connect()
    try:
        outcome = _Episode(client, note if as_json else say).play(pictures, began)
    finally:
        if not was_running:
            spawn.stop(client)
    if as_json:
        say_json(outcome)
    return 0


def _embed() -> None:
    """Have a state directory that nobody has configured use the embedded sandbox, which needs no image."""
    paths.home().mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), paths.config_path().open("x", encoding="utf-8") as file:
        file.write('[sandbox]\ndriver = "locked"\n')


class _Episode:
    def __init__(self, client: Client, show: Show) -> None:
        self._client = client
        self._show = show
        self._original = _script("storyboard.py")
        self._shots = 0

    def play(self, out: Path, began: float) -> Outcome:
        failed = self._fail()
        run = failed.run
        paid_before = _paid(self._attempts(run))
        for name, what in UNSAFE:
            self._be_refused(run, name, what)
        repaired = self._repair(run)
        attempts = self._attempts(run)
        pictures = self._save_pictures(run, out)
        total = _paid(attempts)
        outcome = Outcome(
            run=run,
            home=str(paths.home()),
            paid_usd=total,
            # every committed call once more, on top of what the failure has cost
            rerun_usd=_exact(paid_before + total),
            executed=len(_committed(attempts)),
            replayed=repaired.calls.replayed,
            pictures=tuple(map(str, pictures)),
            seconds=time.monotonic() - began,
        )
        self._settle_up(outcome, failed, repaired, paid_before)
        return outcome

    def _fail(self) -> RunReport:
        self._title("1. A script of six pictures runs; the provider refuses the fourth")
        limits = ["--grant", ",".join(GRANTS), "--budget", f"{BUDGET:.2f}"]
        rehearsal = ["--latency", f"{LATENCY * 1000:.0f}ms", "--fail", FAULT]
        self._command("run", self._original.name, "--args", msgspec.json.encode(ARGS).decode(), *limits, *rehearsal)
        request = RunRequest(
            source=self._original.text,
            args=ARGS,
            name=self._original.name.removesuffix(".py"),
            limits=Limits(grants=GRANTS, budget_usd=BUDGET),
            faults=(FAULT,),
            latency=LATENCY,
        )
        report = attending.attend(self._client, self._client.post("/v1/runs", RunReport, request).run)
        self._show(reports.run_summary(report))
        _expect(report.status == "failed", f"the run should have failed at the fourth picture, and is {report.status}")
        asked = [attempt for attempt in self._attempts(report.run) if attempt.capability == "image.generate"]
        kept = len(self._pictures(report.run))
        _expect(kept == len(asked) - 1, f"all pictures but one should be committed, and {kept} of {len(asked)} are")
        self._show(Text(f"\nThe other branches ran to their end: {kept} of {len(asked)} pictures are paid and kept."))
        self._shots = len(asked)
        return report

    def _be_refused(self, run: str, name: str, what: str) -> None:
        self._title(f"{2 + [each for each, _ in UNSAFE].index(name)}. A rewrite fixes the size, and {what}")
        candidate = _script(name)
        self._difference(candidate)
        self._command("resume", run, "--script", name)
        before = self._attempts(run)
        try:
            self._client.post(run_path(run, "resume"), RunReport, ResumeRequest(source=candidate.text), timeout=None)
        except RefusedError as error:
            _expect(error.code == "TS-G001", f"the gate should have stopped {name}: {error.message}")
            for found in msgspec.convert(error.details, tuple[Conflict, ...]):
                self._show(findings.counterexample(found, self._original, candidate))
        else:
            _expect(holds=False, what=f"the gate should have stopped {name}")
        spent = _exact(_paid(self._attempts(run)) - _paid(before))
        _expect(self._attempts(run) == before, f"{name} should not have caused a single call")
        self._show(Text.assemble(("\nstopped", "bold red"), f" before anything started; it has cost {money(spent)}"))

    def _repair(self, run: str) -> RunReport:
        self._title(f"{2 + len(UNSAFE)}. A rewrite fixes the size, and nothing else")
        candidate = _script("repaired.py")
        self._difference(candidate)
        self._command("resume", run, "--script", candidate.name)
        request = ResumeRequest(source=candidate.text)
        started = self._client.post(run_path(run, "resume"), RunReport, request, timeout=None)
        report = attending.attend(self._client, started.run)
        self._show(reports.run_summary(report))
        _expect(report.status == "completed", f"the repaired run should have completed, and is {report.status}")
        return report

    def _save_pictures(self, run: str, out: Path) -> list[Path]:
        artifacts = self._pictures(run)
        _expect(len(artifacts) == self._shots, f"{self._shots} pictures should be there, and {len(artifacts)} are")
        pictures = []
        for number, artifact in enumerate(artifacts, start=1):
            pictures.append(out / f"shot-{number}.png")
            try:
                pictures[-1].write_bytes(self._client.file(artifact.sha256))
            except OSError as error:
                raise _unwritable(out, error) from None
        return pictures

    def _settle_up(self, outcome: Outcome, failed: RunReport, repaired: RunReport, paid_before: float) -> None:
        self._title("What it came to")
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
        table.add_column("step")
        for column in ("paid calls", "replayed", "paid"):
            table.add_column(column, justify="right")
        first = outcome.executed - repaired.calls.executed
        table.add_row(self._original.name, str(first), str(failed.calls.replayed), money(paid_before))
        for name, _ in UNSAFE:
            table.add_row(f"{name}, stopped by the gate", "0", "0", money(0.0))
        paid_after = _exact(outcome.paid_usd - paid_before)
        table.add_row("repaired.py", str(repaired.calls.executed), str(outcome.replayed), money(paid_after))
        table.add_row(Text("together", "bold"), str(outcome.executed), "", Text(money(outcome.paid_usd), "bold green"))
        again = str(first + outcome.executed)
        table.add_row("with a full rerun instead", again, "0", Text(money(outcome.rerun_usd), "red"))
        self._show(table)
        folder = Path(outcome.pictures[0]).parent
        rows = [
            ("run", outcome.run),
            ("pictures", f"{folder} ({len(outcome.pictures)} PNG files)"),
            ("scripts", str(_SCRIPTS)),
            ("look again", f"{paths.HOME_VARIABLE}={shlex.quote(outcome.home)} {_program()} show {outcome.run}"),
            ("took", f"{outcome.seconds:.1f} s"),
        ]
        self._show("")
        self._show(Fields(rows))

    def _attempts(self, run: str) -> tuple[AttemptReport, ...]:
        return self._client.get(run_path(run, "attempts"), tuple[AttemptReport, ...])

    def _pictures(self, run: str) -> list[Artifact]:
        found = self._client.get(run_path(run, "artifacts"), tuple[Artifact, ...])
        return [artifact for artifact in found if artifact.media_type == "image/png"]

    def _title(self, text: str) -> None:
        self._show(Text(f"\n=== {text}", "bold"))

    def _command(self, *arguments: str) -> None:
        self._show(Text.assemble(("$ ", "dim"), (shlex.join(["tally", *arguments]), "bold cyan"), "\n"))

    def _difference(self, candidate: NamedSource) -> None:
        lines = difflib.unified_diff(self._original.text.splitlines(), candidate.text.splitlines(), lineterm="", n=0)
        styles = {"+": "green", "-": "red"}
        for line in list(lines)[2:]:
            if line[:1] in styles and line[1:].strip():
                self._show(Text(f"  {line}", styles[line[0]]))


def _script(name: str) -> NamedSource:
    return NamedSource(name, (_SCRIPTS / name).read_text(encoding="utf-8"))


def _committed(attempts: tuple[AttemptReport, ...]) -> list[AttemptReport]:
    return [attempt for attempt in attempts if attempt.state == "committed"]


def _paid(attempts: tuple[AttemptReport, ...]) -> float:
    prices = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    _expect(len(prices) == len(attempts), "every call should have come with its price")
    return _exact(sum(prices))


def _exact(dollars: float) -> float:
    """Return dollars to the micro-dollar, which is what the daemon counts in."""
    return round(dollars, 6)


def _folder(out: Path) -> Path:
    """Make the folder for the pictures before anything else: a demo that cannot show them need not begin."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(out, error) from None
    return out.absolute()


def _unwritable(out: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the pictures cannot be written to {out}: {error.strerror}", hint="name another folder with --out"
    )


def _program() -> str:
    """Return what the shell that the demo was started in calls this program by."""
    found = next((name for name in ("tally", sys.argv[0]) if shutil.which(name)), None)
    return shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m tallystick.cli.main"


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise TallyError(
            f"the demo did not go as it should: {what}", hint=f"its state is kept in {paths.home()}; please report it"
        )
