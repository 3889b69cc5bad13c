"""`check`, `gate`, `plan` and `rules`: verdicts on a script, with nothing started and nothing spent."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options

REFUSED = 3


def check(
    script: options.Script,
    *,
    grant: options.Grant = None,
    envelope: options.EnvelopeFile = None,
    as_json: options.Json = False,
) -> int:
    """Check a script against the rules, without running it.

    Grants and limits are checked too where they are given.
    """
    from tallystick.cli import inputs, spawn
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import CheckReport, CheckRequest

    source = inputs.read_script(script)
    limits = None if grant is None and envelope is None else inputs.limits(grant=grant, envelope=envelope)
    report = spawn.connect().post("/v1/check", CheckReport, CheckRequest(source=source, limits=limits))
    if as_json:
        say_json(report)
    else:
        from tallystick.cli import findings

        for violation in report.violations:
            say(findings.violation(violation, findings.NamedSource(str(script), source)))
            say("")
        say(findings.verdict(report.violations))
    return 0 if report.valid else REFUSED


def gate(
    run: options.Run,
    script: Annotated[Path | None, typer.Argument(metavar="SCRIPT", help="The rewrite.")] = None,
    *,
    script_option: options.ScriptOption = None,
    as_json: options.Json = False,
) -> int:
    """Ask whether the source of a rewrite keeps every committed call.

    What the calls are given is compared by `tally plan`.
    """
    from rich.text import Text

    from tallystick.cli import attending, findings, inputs, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.findings import NamedSource
    from tallystick.cli.terminal import count, say, say_json
    from tallystick.contract.errors import UsageError
    from tallystick.engine.messages import GateReport, GateRequest

    rewrite = inputs.one_script(script, script_option)
    if rewrite is None:
        raise UsageError("Missing argument 'SCRIPT'", hint=f"name the rewrite: tally gate {run} REPAIRED.py")
    candidate = NamedSource(str(rewrite), inputs.read_script(rewrite))
    client = spawn.connect()
    report = client.post(run_path(run, "gate"), GateReport, GateRequest(source=candidate.text))
    if as_json:
        say_json(report)
        return 0 if report.accepted else REFUSED
    for violation in report.violations:
        say(findings.violation(violation, candidate))
        say("")
    if report.counterexamples:
        committed = attending.committed_source(client, run)
        for counterexample in report.counterexamples:
            say(findings.counterexample(counterexample, committed, candidate))
            say("")
    frozen = count(report.frozen, "committed site")
    if report.accepted:
        say(Text.assemble(("accepted", "bold green"), f": {frozen} compared, the source keeps every committed call"))
        say(f"the values that the calls are given are compared by `tally plan {run} {rewrite}`")
        return 0
    say(Text.assemble(("stopped", "bold red"), f": {frozen} compared; nothing was started, nothing was spent"))
    return REFUSED


def plan(
    run: options.Run,
    script: options.OtherScript = None,
    *,
    script_option: options.ScriptOption = None,
    args: options.Args = None,
    grant: options.Grant = None,
    envelope: options.EnvelopeFile = None,
    max_calls: options.MaxCalls = None,
    repeats: options.Repeats = None,
    as_json: options.Json = False,
) -> int:
    """Say what a resume would replay, pay for and leave out.

    Exits as the resume would, as far as that is known before anything new is paid.
    """
    from tallystick.cli import arguments, attending, inputs, plans, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.findings import NamedSource
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine.messages import PlanReport, PlanRequest

    rewrite = inputs.one_script(script, script_option)
    candidate = None if rewrite is None else NamedSource(str(rewrite), inputs.read_script(rewrite))
    given = arguments.read(args)
    request = PlanRequest(
        source=None if candidate is None else candidate.text,
        args=given.value,
        limits=inputs.limits(envelope=envelope, grant=grant, max_calls=max_calls, repeats=repeats),
    )
    client = spawn.connect()
    request = arguments.with_files(client, request, given, lambda: attending.own_args(client, run))
    with attending.explained(as_json, candidate, lambda: attending.committed_source(client, run)):
        report = client.post(run_path(run, "plan"), PlanReport, request, timeout=None)
    if as_json:
        say_json(report)
    else:
        say(plans.plan(report, candidate or attending.committed_source(client, run)))
        attending.note_other_args(client, run, request.args, report)
    return plans.exit_code(report)


def rules(
    name: Annotated[str | None, typer.Argument(metavar="[RULE]", help="A rule's code or name: R03.")] = None,
    *,
    as_json: options.Json = False,
) -> int:
    """List the checker's rules, or explain one of them."""
    from tallystick.cli import rulebook
    from tallystick.cli.terminal import say, say_json

    found = rulebook.chosen(name)
    if as_json:
        say_json({"rules": found})
    else:
        say(rulebook.listing(found) if name is None else rulebook.page(*found))
    return 0
