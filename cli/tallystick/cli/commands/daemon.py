"""`daemon start|stop|status|logs`."""

from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli import options

if TYPE_CHECKING:
    from tallystick.cli.client import Client


def start(*, as_json: options.Json = False) -> int:
    """Start the daemon, unless it runs."""
    from tallystick.cli import spawn

    _print(spawn.connect(), as_json=as_json)
    return 0


def stop(*, as_json: options.Json = False) -> int:
    """Stop the daemon, once the calls in flight have settled."""
    from tallystick.cli import spawn
    from tallystick.cli.terminal import count, say, say_json

    client = spawn.running()
    status = None if client is None else spawn.stop(client)
    if as_json:
        say_json({"stopped": status})
    elif status is None:
        say("no daemon was running")
    else:
        say(f"stopped (process {status.pid})")
        if status.live:
            say(
                f"{count(status.live, 'live run')} interrupted: the next tally command starts the daemon again, and "
                "what was interrupted goes on, and costs (unless daemon.auto_resume is off); "
                "`tally cancel RUN` ends a run for good"
            )
    return 0


def status(*, as_json: options.Json = False) -> int:
    """Show how the daemon stands; exit with 7 when none runs."""
    from tallystick.cli import spawn
    from tallystick.contract.errors import DaemonError
    from tallystick.engine import paths

    client = spawn.running()
    if client is None:
        raise DaemonError(f"no daemon is running for {paths.home()}", hint="`tally daemon start` starts it")
    _print(client, as_json=as_json)
    return 0


def logs(
    *,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=1, help="How many, from the end.")] = 50,
    as_json: options.Json = False,
) -> int:
    """Show the end of the daemon's log."""
    from tallystick.cli import spawn
    from tallystick.cli.terminal import note, plain, say, say_json
    from tallystick.engine import paths

    path = paths.daemon_log_path()
    tail = spawn.log_tail(path, lines)
    if as_json:
        say_json({"path": str(path), "lines": tail})
        return 0
    note(f"{path}:" if tail else f"{path} is empty or missing")
    for line in tail:
        say(plain(line))
    return 0


def _print(client: "Client", *, as_json: bool) -> None:
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import Status

    found = client.get("/v1/status", Status)
    if as_json:
        say_json(found)
    else:
        from tallystick.cli import reports

        say(reports.status(found))
