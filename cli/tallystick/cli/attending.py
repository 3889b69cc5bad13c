"""What the commands that start, follow and rewrite runs have in common: waiting for the end, telling a refusal."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.text import Text

from tallystick.cli import findings, plans, reports
from tallystick.cli.client import Client, RefusedError, run_path
from tallystick.cli.findings import NamedSource
from tallystick.cli.progress import Display
from tallystick.cli.streaming import follow
from tallystick.cli.terminal import count, note, say, say_json
from tallystick.contract.events import ErrorInfo
from tallystick.engine.messages import AttemptReport, ErrorBody, PlanReport, RunReport, Source

INTERRUPTED = 130
#: What a plan finds before a resume starts; the details of such a refusal are the plan.
_PLANNED = ("TS-D001", "TS-A001", "TS-P005")
#: A use of the script's args other than as its parameter: an item, an attribute, a loop over them.
_ARGS_READ = re.compile(r"\bargs\s*[\[.]|\bin args\b")


def attend(client: Client, run: str) -> RunReport:
    """Show a run's progress on stderr until it ends, and return its report.

    Raises:
        DaemonError: the daemon stayed away.
    """
    with Display(run) as display:
        for progress in follow(client, run, display.dropped):
            display.show(progress)
    return client.get(run_path(run), RunReport)


def see_through(client: Client, started: Callable[[], RunReport], *, detach: bool, as_json: bool) -> int:
    """Start or find a run, wait for its end unless told not to, print its report, return the exit status.

    The first Ctrl-C lets the run go on and says so; the run is the daemon's.
    """
    report = None
    try:
        report = started()
        if not detach:
            if report.status == "running":
                note(Text.assemble("run ", (report.run, "bold")))
            report = attend(client, report.run)
    except KeyboardInterrupt:
        note(_detached(report))
        if as_json and report is not None:
            say_json(report)
        return INTERRUPTED
    if as_json:
        say_json(report)
    else:
        say(reports.run_summary(report))
        note_missing_args(client, report)
        if detach and report.status == "running":
            note(f"it goes on by itself: `tally watch {report.run}` follows it, `tally cancel {report.run}` ends it")
    return report.exit_code


@contextmanager
def explained(
    as_json: bool,
    new: NamedSource | None,
    committed: Callable[[], NamedSource] | None = None,
    other_args: Callable[[PlanReport], None] = lambda _: None,
) -> Iterator[None]:
    """Show what a refusal carries, source by source, before the error itself is reported.

    Args:
        as_json: leave it to the one object on stdout.
        new: the script that was submitted.
        committed: fetches the script that the run's records were made by.
        other_args: says of a plan that its args are other ones.
    """
    try:
        yield
    except RefusedError as error:
        if as_json:
            raise
        if error.code in _PLANNED and isinstance(error.details, dict):
            planned = _planned(error, new, committed)
            other_args(msgspec.convert(error.details, PlanReport))
            raise planned from None
        _explain(error, new, committed)
        raise


def committed_source(client: Client, run: str) -> NamedSource:
    """Return the script of a run's latest accepted revision; errors as ``Client.get``."""
    found = client.get(run_path(run, "source"), Source)
    return NamedSource(f"revision {found.revision}", found.source)


def own_args(client: Client, run: str) -> Any:
    """Return the args of a run's latest accepted revision; errors as ``Client.get``."""
    return client.get(run_path(run, "source"), Source).args


def note_other_args(client: Client, run: str, args: Any, plan: PlanReport) -> None:
    """Say of a plan with divergences that its args are not those which the records were made with, if they are not."""
    if not plan.diverge or args is msgspec.UNSET or client.get(run_path(run, "source"), Source).args == args:
        return
    note(
        "the args are other ones than those of the run, and committed calls have read them: leave --args out to go on "
        "with this run, or start a new one with them, `tally run SCRIPT --args ...`"
    )


def note_missing_args(client: Client, report: RunReport) -> None:
    """Say of a run which failed on a None that it was given no args, if its script reads them."""
    if report.reason != "TS-R001" or report.error is None or "None" not in report.error.message:
        return
    found = client.get(run_path(report.run, "source"), Source)
    if found.args is None and _ARGS_READ.search(found.source):
        note(
            f"no --args were given, and the script reads args: `tally resume {report.run} --args '{{...}}'` "
            "goes on with some"
        )


def _explain(error: RefusedError, new: NamedSource | None, committed: Callable[[], NamedSource] | None) -> None:
    if error.code == "TS-A001" and isinstance(error.details, list):
        note(reports.attempts(msgspec.convert(error.details, tuple[AttemptReport, ...])))
        return
    violations, counterexamples = findings.from_details(error.details, error.code)
    old = committed() if committed is not None and (counterexamples or new is None) else None
    candidate = new or old
    if candidate is None:
        return
    for violation in violations:
        note(findings.violation(violation, candidate))
        note("")
    for counterexample in counterexamples if old is not None else ():
        note(findings.counterexample(counterexample, old or candidate, candidate))
        note("")


def _planned(error: RefusedError, new: NamedSource | None, committed: Callable[[], NamedSource] | None) -> RefusedError:
    """Show the stops that a plan found, and return the refusal without repeating the gravest of them."""
    source = new or (committed() if committed is not None else NamedSource("", ""))
    stops = plans.stops(msgspec.convert(error.details, PlanReport))
    for group in findings.alike(stops):
        note(findings.stop(group, source))
        note("")
    said = ErrorInfo(
        error.code,
        f"the plan of this resume has {count(len(stops), 'stop')}; nothing was started, nothing was spent",
        "tally plan shows all of it; tally resume --no-preflight starts all the same, and stops there",
    )
    return RefusedError(ErrorBody(said, error.details))


def _detached(report: RunReport | None) -> Text:
    if report is None:
        return Text("\ninterrupted before the daemon answered; `tally runs` shows whether a run started", "yellow")
    run = report.run
    return Text.assemble(
        ("\ndetached: ", "yellow"),
        f"run {run} goes on. `tally watch {run}` follows it, `tally cancel {run}` ends it",
    )
