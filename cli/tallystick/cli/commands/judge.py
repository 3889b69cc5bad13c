"""`check` and `gate`: verdicts on a script, with nothing started and nothing spent."""

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


def gate(run: options.Run, script: options.Script, *, as_json: options.Json = False) -> int:
    """Ask whether a rewrite may replace a run's script."""
    from rich.text import Text

    from tallystick.cli import attending, findings, inputs, spawn
    from tallystick.cli.client import run_path
    from tallystick.cli.findings import NamedSource
    from tallystick.cli.terminal import count, say, say_json
    from tallystick.engine.messages import GateReport, GateRequest

    candidate = NamedSource(str(script), inputs.read_script(script))
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
        say(Text.assemble(("accepted", "bold green"), f": {frozen} compared, none would be paid again"))
        return 0
    say(Text.assemble(("stopped", "bold red"), f": {frozen} compared; nothing was started, nothing was spent"))
    return REFUSED
