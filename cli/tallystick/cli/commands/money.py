"""`approve`, `cost`, `gc`: money before it is spent and after, and what files take."""

from typing import Annotated

import typer

from tallystick.cli import options


def approve(
    run: options.Run,
    call: Annotated[
        str | None,
        typer.Argument(metavar="[CALL]", help="One call that waits, in quotes, as reports show it; else all in turn."),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Decide on every call that waits, with one answer.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Deny what is shown: it is not made, the run stops.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: what is shown is decided.")] = False,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the log.")] = "",
    detach: options.Detach = False,
    as_json: options.Json = False,
) -> int:
    """Show exactly what a waiting call would send, approve of it, and go on with the run.

    An approval is for this call as it is shown, once: with another payload it must be approved of again.
    """
    import getpass

    from tallystick.cli import approving, attending, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import say_json
    from tallystick.engine.messages import ResumeRequest, RunReport

    client = spawn.connect()
    chosen = approving.chosen(client, run, call, every=every, unasked=yes)
    decided = approving.decide(
        client, run, chosen, approving.Word(not deny, getpass.getuser(), why), unasked=yes, at_once=every
    )
    if not deny and decided:
        request = ResumeRequest(who=getpass.getuser())
        return attending.see_through(
            client,
            lambda: client.post(run_path(run, "resume"), RunReport, request, timeout=None),
            detach=detach,
            as_json=as_json,
        )
    report = client.get(run_path(run), RunReport)
    if as_json:
        say_json(report)
    else:
        approving.tell(report, decided)
    return 0


def cost(run: options.Run, *, as_json: options.Json = False) -> int:
    """Show what a run has cost, by capability, site, outcome and launch, and what replay has saved."""
    from tallystick.cli import spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.money_messages import CostReport

    found = spawn.connect().get(run_path(run, "cost"), CostReport)
    if as_json:
        say_json(found)
    else:
        from tallystick.cli import costs

        say(costs.report(found))
    return 0


def gc(
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Leave files that were touched since then.")
    ] = "24h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: options.Json = False,
) -> int:
    """Remove files that nothing names: no record, no payload, no args, no kept answer."""
    from tallystick.cli import inputs, spawn
    from tallystick.cli.terminal import count, say, say_json
    from tallystick.engine.money_messages import SweepReport, SweepRequest

    request = SweepRequest(inputs.duration(older_than, "--older-than"), dry_run)
    # no timeout: all of the journal is read
    swept = spawn.connect().post("/v1/sweep", SweepReport, request, timeout=None)
    if as_json:
        say_json(swept)
    else:
        done = "would go" if dry_run else "removed"
        say(f"{count(swept.removed, 'file')} {done}, {swept.bytes:,} bytes; everything that a run names is kept")
    return 0
