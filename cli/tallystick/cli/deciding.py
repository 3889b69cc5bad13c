"""Decisions on attempts whose outcome is unknown: which ones, what was decided, what comes next."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from tallystick.cli import reports
from tallystick.cli.client import Client, run_path
from tallystick.cli.fields import Fields
from tallystick.cli.next_steps import next_step
from tallystick.cli.terminal import money, note, say
from tallystick.contract.errors import UsageError
from tallystick.engine.messages import AttemptReport, ReconcileRequest, RunReport


def require_decision(result: Path | None, cost: str | None, why: str, *, abandon: bool, reprocess: bool) -> None:
    """Refuse what is no decision.

    Raises:
        UsageError: none or several of result, abandonment, reprocessing and price, or an abandonment without a reason.
    """
    ways = (abandon, reprocess, result is not None)
    if sum(ways) > 1 or not (any(ways) or cost is not None):
        raise UsageError(
            "say what became of the attempt: --result FILE, --abandon or --reprocess; or --cost alone, what it cost",
            hint="ask the provider first; an abandoned call may be paid twice",
        )
    if abandon and not why.strip():
        raise UsageError("--abandon needs --why: it permits one more payment", hint="--why 'not on the invoice'")


def chosen(run: str, text: str | None, *, every: bool, abandon: bool) -> int | None:
    """Return the number of the attempt that is meant, None for all that are unresolved.

    Raises:
        UsageError: no number, or one and ``--all``, or ``--all`` without ``--abandon``.
    """
    lists = f"`tally attempts {run} --open` lists those that wait for a decision, with their numbers"
    if every:
        if text is not None or not abandon:
            raise UsageError(
                "--all is for --abandon, and stands in place of an attempt's number",
                hint=f"tally reconcile {run} --all --abandon --why '...'; a result belongs to one attempt",
            )
        return None
    if text is None:
        raise UsageError("Missing argument 'ATTEMPT'", hint=lists)
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"ATTEMPT {text!r} is not the number of an attempt", hint=lists)
    return int(text)


def decide(client: Client, run: str, number: int | None, request: ReconcileRequest) -> tuple[AttemptReport, ...]:
    """Settle one attempt, or with None each unresolved one; errors as ``Client.post``.

    Raises:
        UsageError: all are to be settled, and none is unresolved.
    """
    if number is not None:
        return (_settle(client, run, number, request),)
    known = client.get(run_path(run, "attempts"), tuple[AttemptReport, ...])
    unresolved = [each.attempt for each in known if each.state == "unresolved"]
    if not unresolved:
        raise UsageError("no attempt of the run is unresolved; nothing was changed", hint=f"tally show {run}")
    return tuple(_settle(client, run, each, request) for each in unresolved)


def tell(client: Client, run: str, decided: Sequence[AttemptReport], why: str) -> None:
    """Say what was decided and why, warn of what stays without a price, name the next step."""
    say(reports.attempts(decided))
    report = client.get(run_path(run), RunReport)
    say(Fields([("why", why), ("next", next_step(report))]))
    for each in decided:
        if each.decision == "commit" and each.cost_usd is None:
            note(
                Text(
                    f"attempt {each.attempt} was committed without --cost: it counts as unpriced, and its reservation "
                    f"of {money(each.reserved_usd)} stays set aside in the budget",
                    "yellow",
                )
            )


def _settle(client: Client, run: str, number: int, request: ReconcileRequest) -> AttemptReport:
    # no timeout: what an earlier launch left in flight settles first
    path = run_path(run, "attempts", number, "reconcile")
    return client.post(path, AttemptReport, request, timeout=None)
