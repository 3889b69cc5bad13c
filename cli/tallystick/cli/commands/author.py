"""`skill`, `author`, `repair`: scripts that a model writes and repairs."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options

Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file, never over another.")
]


def skill(*, output: Output = None, as_json: options.Json = False) -> int:
    """Print the document that a model needs to write scripts."""
    from tallystick.cli import inputs, spawn
    from tallystick.cli.terminal import note, say_json
    from tallystick.engine.authoring.messages import SkillDocument

    inputs.require_free(output)
    document = spawn.connect().get("/v1/skill", SkillDocument)
    if as_json:
        say_json(document)
    elif output is None:
        typer.echo(document.text, nl=False)
    if output is not None:
        inputs.write_new(output, document.text)
        note(f"{output}: at most {document.tokens:,} tokens")
    return 0


def author(
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="What the script is to do, in your words.")],
    *,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    provider: options.ModelProvider = None,
    attempts: options.Attempts = None,
    output: Output = None,
    draft: Annotated[
        Path | None, typer.Option("--draft", metavar="SCRIPT", help="A script that exists and is to be corrected.")
    ] = None,
    args: options.Args = None,
    grant: options.Grant = None,
    envelope: options.EnvelopeFile = None,
    budget: options.Budget = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    wall_clock: options.WallClock = None,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; the request's by default.")] = None,
    as_json: options.Json = False,
) -> int:
    """Have a model write a script, checked within your limits; `tally resume` runs it.

    What it costs counts in the budget of the run that the script belongs to.
    """
    from tallystick.cli import arguments, inputs, spawn, writing
    from tallystick.engine.authoring.choices import ModelChoice
    from tallystick.engine.authoring.messages import AuthorRequest, WritingReport

    inputs.require_free(output)
    given = arguments.read(args)
    asked = AuthorRequest(
        request=request,
        args=given.or_none(),
        name=name or "",
        limits=inputs.limits(
            envelope=envelope,
            grant=grant,
            budget=budget,
            concurrency=concurrency,
            max_calls=max_calls,
            wall_clock=wall_clock,
        ),
        model=ModelChoice(model, base_url, provider),
        attempts=attempts,
        draft=None if draft is None else inputs.read_script(draft),
    )
    client = spawn.connect()
    asked = arguments.with_files(client, asked, given)
    report = writing.see_through(client, client.post("/v1/author", WritingReport, asked, timeout=None))
    return writing.tell_author(report, output, as_json=as_json)


def repair(
    run: options.Run,
    *,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    provider: options.ModelProvider = None,
    attempts: options.Attempts = None,
    wish: Annotated[
        str, typer.Option("--wish", metavar="TEXT", help="What you want changed, in words for the model.")
    ] = "",
    candidate: Annotated[
        int | None,
        typer.Option("--candidate", metavar="N", min=1, help="Take this one, which was accepted; nobody is asked."),
    ] = None,
    budget: options.Budget = None,
    output: Output = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Show what the repaired script would replay and pay for, then resume.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Have a model repair the script of a run that stopped, and show the change.

    A rewrite that would move or change a call that was paid for is not accepted. Nothing runs without --apply.
    """
    from tallystick.cli import inputs, spawn, writing
    from tallystick.cli.client import run_path
    from tallystick.engine.authoring.choices import ModelChoice
    from tallystick.engine.authoring.messages import RepairRequest, WritingReport

    inputs.require_free(output)
    limits = inputs.limits(budget=budget)
    client = spawn.connect()
    if candidate is None:
        asked = RepairRequest(
            model=ModelChoice(model, base_url, provider), attempts=attempts, wish=wish, budget_usd=limits.budget_usd
        )
        started = client.post(run_path(run, "repair"), WritingReport, asked, timeout=None)
        report = writing.see_through(client, started)
    else:
        report = writing.kept(client, run, candidate)
    return writing.tell_repair(client, report, output, limits, apply=apply, as_json=as_json)
