"""Following a model at work on a script, and what is done with what it wrote."""

from pathlib import Path

from tallystick.cli import attending, inputs, plans, reports, rewrites
from tallystick.cli.client import Client, run_path
from tallystick.cli.findings import NamedSource
from tallystick.cli.terminal import count, money, note, report_error, say, say_json
from tallystick.contract.errors import NoCandidateError, TallyError
from tallystick.contract.events import ErrorInfo
from tallystick.engine.authoring.messages import WritingReport
from tallystick.engine.messages import Limits, PlanReport, PlanRequest, ResumeRequest, RunReport, exit_code_of


def see_through(client: Client, started: WritingReport) -> WritingReport:
    """Show a model's progress until it is over, and return the report.

    Raises:
        KeyboardInterrupt: told what goes on without this command.
    """
    try:
        attending.attend(client, started.run)
    except KeyboardInterrupt:
        note(
            f"\ndetached: the model goes on with run {started.run}. `tally watch {started.run}` follows it, "
            f"`tally cancel {started.run}` has no further script asked for"
        )
        raise
    return client.get(run_path(started.run, "repair"), WritingReport)


def kept(client: Client, run: str, number: int) -> WritingReport:
    """Return a report on a candidate that was kept, as if it had just been written; errors as ``Client.get``."""
    return client.get(run_path(run, "repair"), WritingReport, candidate=number)


def tell_author(report: WritingReport, output: Path | None, *, as_json: bool) -> int:
    """Write out the script that was written, say what it cost, and return the exit status."""
    if report.source is not None and output is not None:
        inputs.write_new(output, report.source)
    if as_json:
        say_json(report)
        return _status(report)
    if report.source is None:
        return _given_up(report)
    if output is None:
        say(report.source.rstrip("\n"))
    note(f"{_asked(report)}; run {report.run} is a draft: `tally resume {report.run}` starts it")
    return 0


def tell_repair(
    client: Client, report: WritingReport, output: Path | None, limits: Limits, *, apply: bool, as_json: bool
) -> int:
    """Show a repair, write it out, apply it where that is wanted, and return the exit status."""
    source = report.source
    if source is not None and output is not None:
        inputs.write_new(output, source)
    if source is None:
        if not as_json:
            return _given_up(report)
        say_json({"repair": report, "plan": None, "run": None})
        return _status(report)
    if not as_json:
        note(rewrites.verdicts(report))
        say(rewrites.diff(report.base, source, report.frozen))
        note(_asked(report))
    if apply:
        return _apply(client, report, source, limits, as_json=as_json)
    if as_json:
        say_json({"repair": report, "plan": None, "run": None})
    else:
        number = report.candidates[-1].candidate
        note(f"nothing was started: `tally repair {report.run} --candidate {number} --apply` goes on with it")
    return 0


def _apply(client: Client, report: WritingReport, source: str, limits: Limits, *, as_json: bool) -> int:
    run, new = report.run, NamedSource("the repaired script", source)
    plan = client.post(run_path(run, "plan"), PlanReport, PlanRequest(source=source, limits=limits), timeout=None)
    if not as_json:
        say(plans.plan(plan, new))
    status = plans.exit_code(plan)
    if status:
        if as_json:
            say_json({"repair": report, "plan": plan, "run": None})
        else:
            note("it was not resumed: the plan has a stop")
        return status
    request = ResumeRequest(source=source, limits=limits, who="repair --apply")
    with attending.explained(as_json, new, lambda: NamedSource("the failed script", report.base)):
        client.post(run_path(run, "resume"), RunReport, request, timeout=None)
        ended = attending.attend(client, run)
    if as_json:
        say_json({"repair": report, "plan": plan, "run": ended})
    else:
        say(reports.run_summary(ended))
    return ended.exit_code


def _given_up(report: WritingReport) -> int:
    note(rewrites.verdicts(report))
    note(_asked(report))
    error = report.error or ErrorInfo(NoCandidateError.code, "no script was accepted", f"tally show {report.run}")
    report_error(TallyError(error.message, hint=error.hint, code=error.code), as_json=False)
    return _status(report)


def _status(report: WritingReport) -> int:
    if report.source is not None:
        return 0
    return exit_code_of(report.error.code if report.error is not None else NoCandidateError.code)


def _asked(report: WritingReport) -> str:
    spent = sum(one.cost_usd or 0.0 for one in report.candidates)
    unpriced = sum(one.cost_usd is None for one in report.candidates)
    tokens = sum(one.tokens or 0 for one in report.candidates)
    parts = [f"{count(len(report.candidates), 'answer')} of {report.model or 'the model'}"]
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts.append((f"at least {money(spent)}, {unpriced} of unknown price") if unpriced else money(spent))
    return ", ".join(parts)
