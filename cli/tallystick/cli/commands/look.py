"""`runs`, `show`, `attempts`, `artifacts`, `explain`, `certificate`, `capabilities`, `doctor`: only looking."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options

UNHEALTHY = 1
DIFFERENT = 1


def runs(
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many, newest first.")] = 20,
    before: Annotated[
        str | None, typer.Option("--before", metavar="RUN", help="Only runs older than this one.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """List runs, newest first."""
    from tallystick.cli import spawn
    from tallystick.cli.terminal import note, say, say_json
    from tallystick.engine.messages import RunLine

    found = spawn.connect().get("/v1/runs", tuple[RunLine, ...], limit=limit, before=before)
    if as_json:
        say_json({"runs": found})
    elif found:
        from tallystick.cli import reports

        say(reports.runs(found))
    else:
        note("no runs; `tally run SCRIPT` starts one")
    return 0


def show(run: options.Run, *, as_json: options.Json = False) -> int:
    """Show how a run stands: calls, spend, launches, result."""
    from tallystick.cli import spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import RunReport

    client = spawn.connect()
    report = client.get(run_path(run), RunReport)
    if as_json:
        say_json(report)
    else:
        from tallystick.cli import attending, reports

        say(reports.run_details(report))
        if report.candidates:
            from tallystick.cli import rewrites

            say("")
            say(rewrites.candidates(report.candidates))
        attending.note_missing_args(client, report)
    return 0


def attempts(
    run: options.Run,
    *,
    unsettled: Annotated[bool, typer.Option("--open", help="Only those in flight, unresolved or unusable.")] = False,
    as_json: options.Json = False,
) -> int:
    """List a run's attempts: how each ended, what it cost."""
    from tallystick.cli import spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import note, say, say_json
    from tallystick.engine.messages import AttemptReport

    found = spawn.connect().get(run_path(run, "attempts"), tuple[AttemptReport, ...])
    if unsettled:
        found = tuple(attempt for attempt in found if attempt.state in ("in_flight", "unresolved", "unusable"))
    if as_json:
        say_json({"attempts": found})
    elif found:
        from tallystick.cli import reports

        say(reports.attempts(found))
    else:
        note("no open attempts" if unsettled else "no attempts: nothing was dispatched, nothing was spent")
    return 0


def artifacts(
    run: Annotated[str, typer.Argument(metavar="RUN|add", help="A run, as elsewhere; or `add`, to bring files in.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="With `add`: the files to bring in.")
    ] = None,
    *,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write them there, never over another file.")
    ] = None,
    media_type: Annotated[
        str | None,
        typer.Option(
            "--type", metavar="TYPE", help="With `add`: what the files are; by default their first bytes say."
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """List the pictures and other files of a run, or write them out; or bring in files of your own.

    A file is named by the call that made it, and its type: `orchestrate.draw-1_2_0.png` is that of
    `orchestrate.draw/#1 [2] 0`. A file that was brought in is printed as a script's payload refers to it; `tally run
    SCRIPT --args picture=@FILE` brings one in and passes it on at once.
    """
    from tallystick.cli import exports
    from tallystick.contract.errors import UsageError

    if run == "add":
        if not files or export is not None:
            raise UsageError("`tally artifacts add` takes the files to bring in", hint="tally artifacts add lamp.png")
        return exports.bring_in(files, media_type, as_json=as_json)
    if files or media_type is not None:
        raise UsageError(f"files are for `tally artifacts add`, not for the run {run}")
    return exports.list_or_write(run, export, as_json=as_json)


def explain(
    run: options.Run,
    identity: Annotated[str, typer.Argument(metavar="IDENTITY", help="A call, in quotes, as reports show it.")],
    *,
    as_json: options.Json = False,
) -> int:
    """Say what became of one call of a run, and why."""
    from tallystick.cli import inputs, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import Explanation

    wanted = inputs.identity(identity, "IDENTITY")
    found = spawn.connect().get(run_path(run, "explain"), Explanation, identity=str(wanted))
    if as_json:
        say_json(found)
    else:
        from tallystick.cli import reports

        say(reports.explanation(found))
    return 0


def certificate(
    run: options.Run,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute every certificate of the run; exit 1 on a difference.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Show what a run's records were certified to be, and whether they still are."""
    from tallystick.cli import spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import CertificateReport

    report = spawn.connect().get(run_path(run, "certificate"), CertificateReport, verify="true" if verify else None)
    if as_json:
        say_json(report)
    else:
        from tallystick.cli import reports

        say(reports.certificate(report))
    return DIFFERENT if report.differences else 0


def capabilities(*, as_json: options.Json = False) -> int:
    """List what scripts can call, and what it costs."""
    from tallystick.cli import spawn
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import CapabilityInfo

    found = spawn.connect().get("/v1/capabilities", tuple[CapabilityInfo, ...])
    if as_json:
        say_json({"capabilities": found})
    else:
        from tallystick.cli import reports

        say(reports.capabilities(found))
    return 0


def doctor(*, as_json: options.Json = False) -> int:
    """Say what is wrong with the installation, if anything."""
    from tallystick.cli import spawn
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import DoctorReport

    report = spawn.connect().get("/v1/doctor", DoctorReport)
    if as_json:
        say_json(report)
    else:
        from tallystick.cli import reports

        say(reports.doctor(report))
    return 0 if report.healthy else UNHEALTHY
