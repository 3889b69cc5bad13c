"""`run` and `resume`: what starts a launch."""

from typing import Annotated

import typer

from tallystick.cli import options


def run(
    script: options.Script,
    *,
    args: options.Args = None,
    grant: options.Grant = None,
    envelope: options.EnvelopeFile = None,
    budget: options.Budget = None,
    budget_tokens: options.BudgetTokens = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    wall_clock: options.WallClock = None,
    repeats: options.Repeats = None,
    orphans: options.Orphans = None,
    fail: options.Fail = None,
    latency: options.Latency = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the run's samples.")] = 0,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; the file's by default.")] = None,
    auto_repair: options.AutoRepair = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    provider: options.ModelProvider = None,
    detach: options.Detach = False,
    as_json: options.Json = False,
) -> int:
    """Check a script, run it in a sandbox, follow it to its end."""
    from tallystick.cli import arguments, attending, inputs, spawn
    from tallystick.cli.findings import NamedSource
    from tallystick.engine.messages import RunReport, RunRequest

    source = inputs.read_script(script)
    given = arguments.read(args)
    request = RunRequest(
        source=source,
        args=given.or_none(),
        name=script.stem if name is None else name,
        limits=inputs.limits(
            envelope=envelope,
            grant=grant,
            budget=budget,
            budget_tokens=budget_tokens,
            concurrency=concurrency,
            max_calls=max_calls,
            wall_clock=wall_clock,
            repeats=repeats,
            orphans=orphans,
        ),
        seed=seed,
        faults=tuple(fail or ()),
        latency=0.0 if latency is None else inputs.duration(latency, "--latency"),
        auto_repair=inputs.auto_repair(auto_repair, model=model, base_url=base_url, provider=provider),
    )
    client = spawn.connect()
    request = arguments.with_files(client, request, given)
    with attending.explained(as_json, NamedSource(str(script), source)):
        return attending.see_through(
            client, lambda: client.post("/v1/runs", RunReport, request), detach=detach, as_json=as_json
        )


def resume(
    run: options.Run,
    script: options.OtherScript = None,
    *,
    script_option: options.ScriptOption = None,
    args: options.Args = None,
    grant: options.Grant = None,
    envelope: options.EnvelopeFile = None,
    budget: options.Budget = None,
    budget_tokens: options.BudgetTokens = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    wall_clock: options.WallClock = None,
    repeats: options.Repeats = None,
    orphans: options.Orphans = None,
    proceed: Annotated[
        bool, typer.Option("--proceed", help="Go on up to the attempts whose outcome is unknown.")
    ] = False,
    allow_repeats: Annotated[
        bool, typer.Option("--allow-repeats", help="Pay again wherever the repeat policy would deny it.")
    ] = False,
    allow_repeat: Annotated[
        list[str] | None,
        typer.Option("--allow-repeat", metavar="IDENTITY", help="Pay again for this call; may be given again."),
    ] = None,
    retry_failed: Annotated[
        list[str] | None,
        typer.Option(
            "--retry-failed",
            metavar="IDENTITY",
            help="Make this call again, which failed and which the script survived; may be given again.",
        ),
    ] = None,
    no_preflight: Annotated[
        bool, typer.Option("--no-preflight", help="Start a new revision without planning it first.")
    ] = False,
    fail: options.Fail = None,
    latency: options.Latency = None,
    auto_repair: options.AutoRepair = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    provider: options.ModelProvider = None,
    detach: options.Detach = False,
    as_json: options.Json = False,
) -> int:
    """Go on with a run; what it has paid for replays for free."""
    import getpass
    from functools import partial

    from tallystick.cli import arguments, attending, inputs, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.findings import NamedSource
    from tallystick.engine.messages import ResumeRequest, RunReport

    rewrite = inputs.one_script(script, script_option)
    source = None if rewrite is None else inputs.read_script(rewrite)
    given = arguments.read(args)
    request = ResumeRequest(
        source=source,
        args=given.value,
        limits=inputs.limits(
            envelope=envelope,
            grant=grant,
            budget=budget,
            budget_tokens=budget_tokens,
            concurrency=concurrency,
            max_calls=max_calls,
            wall_clock=wall_clock,
            repeats=repeats,
            orphans=orphans,
        ),
        proceed=proceed,
        allow_repeats=allow_repeats,
        allowed_repeats=tuple(inputs.identity(text, "--allow-repeat") for text in allow_repeat or ()),
        retry_failed=tuple(inputs.identity(text, "--retry-failed") for text in retry_failed or ()),
        preflight=not no_preflight,
        who=getpass.getuser(),
        faults=None if fail is None else tuple(fail),
        latency=None if latency is None else inputs.duration(latency, "--latency"),
        auto_repair=inputs.auto_repair(auto_repair, model=model, base_url=base_url, provider=provider),
    )
    client = spawn.connect()
    request = arguments.with_files(client, request, given, partial(attending.own_args, client, run))
    candidate = None if source is None else NamedSource(str(rewrite), source)
    committed = partial(attending.committed_source, client, run)
    other_args = partial(attending.note_other_args, client, run, request.args)
    with attending.explained(as_json, candidate, committed, other_args):
        return attending.see_through(
            client,
            # no timeout: calls that an earlier launch left in flight settle first
            lambda: client.post(run_path(run, "resume"), RunReport, request, timeout=None),
            detach=detach,
            as_json=as_json,
        )
