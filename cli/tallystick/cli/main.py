"""The command `tally`: its table of commands, and the one place where errors become messages and exit statuses.

Every command takes `--json`; exit statuses are listed in architecture.md, section 7. What loads here loads for
`tally --help`, so this module and the commands' signatures import typer and the error tree alone.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tallystick.cli.commands import (
    author,
    bench,
    budget,
    config,
    daemon,
    demo,
    judge,
    launch,
    look,
    money,
    sandbox,
    steer,
)
from tallystick.contract.errors import TallyError, UsageError

FAILED = 1
USAGE = 2

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
image_app = typer.Typer(rich_markup_mode=None, help="Build the image of the docker sandbox.")
sandbox_app = typer.Typer(rich_markup_mode=None, help="Try the walls that scripts run behind.")
config_app = typer.Typer(rich_markup_mode=None, help="Look at the daemon's configuration.")
daemon_app = typer.Typer(rich_markup_mode=None, help="Start, stop and look at the daemon.")

for command in (
    launch.run,
    judge.check,
    judge.gate,
    judge.plan,
    launch.resume,
    author.author,
    author.repair,
    look.runs,
    look.show,
    steer.watch,
    look.attempts,
    look.artifacts,
    look.explain,
    steer.reconcile,
    steer.retire,
    steer.cancel,
    money.approve,
    money.cost,
    money.gc,
    budget.budget,
    look.certificate,
    look.capabilities,
    judge.rules,
    author.skill,
    look.doctor,
    demo.demo,
):
    app.command()(command)
app.command(context_settings=bench.PASSED_ON)(bench.bench)
for command in (daemon.start, daemon.stop, daemon.status, daemon.logs):
    daemon_app.command()(command)
image_app.command()(sandbox.build)
sandbox_app.command()(sandbox.acceptance)
app.add_typer(image_app, name="image")
app.add_typer(sandbox_app, name="sandbox")
config_app.command()(config.check)
config_app.command()(config.show)
app.add_typer(config_app, name="config")
app.add_typer(daemon_app, name="daemon")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Run workflow scripts written by models; pay for each call once, however often the script is rewritten."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"tallystick {version_of('tallystick')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; nothing that goes wrong ends in a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    try:
        status = _run(arguments, as_json="--json" in arguments)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # typer and rich turn a closed pipe into an exit of their own
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    return status


def _run(arguments: list[str], *, as_json: bool) -> int:
    try:
        # without standalone mode typer returns what the command returned, or the status of its own exits
        return int(app(arguments, prog_name="tally", standalone_mode=False) or 0)
    except TallyError as error:
        return _report(error, as_json=as_json)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        asked = context.command_path if context else "tally"
        return _report(UsageError(error.format_message(), hint=f"see `{asked} --help`"), as_json=as_json)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: a person gets a line, the file the traceback
        return _report_internal(error, as_json=as_json)


def _report(error: TallyError, *, as_json: bool) -> int:
    from tallystick.cli.terminal import report_error

    report_error(error, as_json=as_json)
    return error.exit_code


def _report_internal(error: Exception, *, as_json: bool) -> int:
    """Report a mistake of our own with the standard library alone: what is broken may be anything else."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="tally-error-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    message = f"internal error, {type(error).__name__}: {error}"
    hint = f"please report it; the traceback is in {file.name}"
    sys.stderr.write(f"{message}; {hint}\n")
    if as_json:
        import json

        body = {"error": {"code": TallyError.code, "message": message, "hint": hint}, "details": None}
        sys.stdout.write(json.dumps(body) + "\n")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
