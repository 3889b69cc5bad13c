"""`watch`, `cancel`, `reconcile`, `retire`: acting on a run that exists."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options


def watch(run: options.Run, *, as_json: options.Json = False) -> int:
    """Follow a live run to its end and print its report."""
    from tallystick.cli import attending, spawn
    from tallystick.cli.client import run_path
    from tallystick.engine.messages import RunReport

    client = spawn.connect()
    return attending.see_through(client, lambda: client.get(run_path(run), RunReport), detach=False, as_json=as_json)


def cancel(run: options.Run, *, as_json: options.Json = False) -> int:
    """End a run; calls in flight settle and are kept."""
    from tallystick.cli import attending, spawn
    from tallystick.cli.client import run_path
    from tallystick.engine.messages import RunReport

    client = spawn.connect()
    status = attending.see_through(
        client,
        lambda: client.post(run_path(run, "cancel"), RunReport, timeout=None),
        detach=False,
        as_json=as_json,
    )
    return status if status == attending.INTERRUPTED else 0


def reconcile(
    run: options.Run,
    attempt: Annotated[
        str | None, typer.Argument(metavar="[ATTEMPT]", help="Its number, as `tally attempts` shows it.")
    ] = None,
    *,
    result: Annotated[
        Path | None, typer.Option("--result", metavar="FILE", help="It was done: the JSON result that is known of it.")
    ] = None,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give it up: the call may be executed, and paid, once more.")
    ] = False,
    reprocess: Annotated[
        bool, typer.Option("--reprocess", help="Read the answer that was kept of it again, without a new call.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="With --abandon: every attempt of the run whose outcome is unknown.")
    ] = False,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, for the log; --abandon needs it.")
    ] = "",
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost",
            metavar="DOLLARS",
            help="What it has cost; alone: the price of a call that came without one. Unpriced calls keep their "
            "reservation.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Settle a call whose outcome is unknown or unusable, or price one that came without a price.

    The JSON of --result is what the call would have answered (`tally capabilities` shows its shape). A file in it is
    written {"$file": "NAME"}, its name looked up beside FILE. For image.generate:

    {"images": [{"$file": "picture.png"}], "width": 512, "height": 512}

    Accepted are png, jpeg, gif, webp, avif, heic, wav, mp3, ogg, flac, m4a, mp4, webm and mov, by their first bytes;
    add "media_type": "TYPE" beside "$file" for another. All files together may have 5 MiB.
    """
    import getpass

    import msgspec

    from tallystick.cli import deciding, inputs, spawn
    from tallystick.cli.terminal import say_json
    from tallystick.engine.messages import ReconcileRequest

    deciding.require_decision(result, cost, why, abandon=abandon, reprocess=reprocess)
    number = deciding.chosen(run, attempt, every=every, abandon=abandon)
    request = ReconcileRequest(
        abandon=abandon,
        reprocess=reprocess,
        result=msgspec.UNSET if result is None else inputs.result_file(result, "--result"),
        cost_usd=None if cost is None else inputs.dollars(cost, "--cost"),
        who=getpass.getuser(),
        why=why,
    )
    client = spawn.connect()
    found = deciding.decide(client, run, number, request)
    if as_json:
        say_json({"attempts": found} if every else found[0])
    else:
        deciding.tell(client, run, found, why)
    return 0


def retire(
    run: options.Run,
    site: Annotated[str, typer.Argument(metavar="SITE", help="A frozen site: `orchestrate.draw/#1`.")],
    *,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the log.")],
    as_json: options.Json = False,
) -> int:
    """Release a committed call, so that later rewrites may leave it out.

    Its records stay, and what they paid for is not paid again unasked.
    """
    import getpass

    from tallystick.cli import spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.terminal import plain, say, say_json
    from tallystick.contract.errors import UsageError
    from tallystick.engine.messages import RetireRequest, RunReport

    if not why.strip():
        raise UsageError("--why is empty: who reads the log later will want the reason", hint="--why 'not wanted'")
    request = RetireRequest(site, getpass.getuser(), why)
    report = spawn.connect().post(run_path(run, "retire"), RunReport, request, timeout=None)
    if as_json:
        say_json(report)
    else:
        say(f"{plain(site)} of run {report.run} is retired: the gate no longer asks for it, its records stay")
    return 0
