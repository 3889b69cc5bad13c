"""`budget`: another budget for a run that exists."""

from typing import Annotated

import typer

from tallystick.cli import options


def budget(
    run: options.Run,
    dollars: Annotated[
        str, typer.Argument(metavar="DOLLARS", help="What the whole run may spend, what it has spent included.")
    ],
    *,
    as_json: options.Json = False,
) -> int:
    """Set another budget for a run, live or not: it holds from the next call on.

    Calls in flight go on. A call that does not fit any more is refused before it is sent, and the run can be resumed
    with more.
    """
    import getpass

    from tallystick.cli import inputs, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import money, say, say_json
    from tallystick.engine.messages import BudgetRequest, RunReport

    request = BudgetRequest(inputs.dollars(dollars, "DOLLARS"), getpass.getuser())
    report = spawn.connect().post(run_path(run, "budget"), RunReport, request)
    if as_json:
        say_json(report)
    else:
        spent = f"{money(report.spend.usd)} spent, {money(report.spend.reserved_usd)} set aside"
        say(f"run {report.run} may spend {money(request.budget_usd)} in all; {spent}")
    return 0
