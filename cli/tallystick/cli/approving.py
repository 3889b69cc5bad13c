"""Calls that wait for a person: which ones, exactly what each would send, and what was decided."""

import sys
from collections.abc import Sequence

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tallystick.cli import inputs
from tallystick.cli.client import Client, run_path
from tallystick.cli.fields import Fields
from tallystick.cli.next_steps import next_step
from tallystick.cli.terminal import count, money, note, plain, say
from tallystick.contract.errors import UsageError
from tallystick.engine.messages import RunReport
from tallystick.engine.money_messages import ApprovalRequest, WaitingCall


class Word(msgspec.Struct, frozen=True):
    """What is decided, by whom and why."""

    approve: bool
    who: str
    why: str


def chosen(client: Client, run: str, call: str | None, *, every: bool, unasked: bool) -> list[WaitingCall]:
    """Return the calls that are to be decided: the one that is named, else all that nobody has decided.

    Raises:
        UsageError: nothing waits, or not what is named; one is named together with ``--all``; or several are to be
            decided unasked, and nobody has said that all of them are meant.
    """
    if call is not None and every:
        raise UsageError("--all stands in place of a CALL", hint="name one call, or decide on all of them")
    waiting = client.get(run_path(run, "approvals"), tuple[WaitingCall, ...])
    if call is None:
        undecided = [one for one in waiting if one.decision is None]
        if not undecided:
            raise UsageError(
                f"no call of run {run} waits for an approval", hint=f"tally show {run} says how the run stands"
            )
        if unasked and not every and len(undecided) > 1:
            raise UsageError(
                f"{count(len(undecided), 'call')} of run {run} wait; nothing was decided",
                hint=f"name one, '{undecided[0].identity}' say, or decide on all of them with --all",
            )
        return undecided
    wanted = inputs.identity(call, "CALL")
    found = [one for one in waiting if one.identity == wanted]
    if not found:
        names = ", ".join(f"'{one.identity}'" for one in waiting) or "nothing"
        raise UsageError(f"{wanted} does not wait for an approval in run {run}", hint=f"what waits: {names}")
    return found


def decide(
    client: Client, run: str, calls: Sequence[WaitingCall], word: Word, *, unasked: bool, at_once: bool
) -> list[WaitingCall]:
    """Show each call and ask about it, unless told not to; return those that were decided.

    Raises:
        UsageError: somebody is to be asked and nobody is there.
    """
    if unasked or at_once:
        for call in calls:
            note(shown(call))
        agreed = unasked or _asked(word, f"{count(len(calls), 'call')}, {_together(calls)}")
        return [_settle(client, run, call, word) for call in calls] if agreed else []
    decided = []
    for call in calls:
        note(shown(call))
        if _asked(word, "this call"):
            decided.append(_settle(client, run, call, word))
    return decided


def shown(call: WaitingCall) -> RenderableType:
    """Return a call as it would be made: all of its payload, nothing shortened."""
    payload = msgspec.json.format(msgspec.json.encode(call.payload), indent=2).decode()
    rows = [
        ("capability", call.capability),
        ("price", f"{money(call.estimate_usd)} expected"),
        ("take", call.take or ""),
        ("digest", call.digest),
        ("payload", payload),
    ]
    if call.decision is not None:
        rows.append(("before", f"{call.decision} by {call.who}" + (f": {call.why}" if call.why else "")))
    return Group(Text(plain(str(call.identity)), "bold"), Fields(rows))


def tell(report: RunReport, decided: Sequence[WaitingCall]) -> None:
    """Say what was denied, or that nothing was decided, and the next step."""
    for call in decided:
        say(Text.assemble(plain(str(call.identity)), (f" {call.decision}", "bold yellow"), "; it was not made"))
    if not decided:
        note("nothing was decided: the run waits as before")
    say(Fields([("next", next_step(report))]))


def _together(calls: Sequence[WaitingCall]) -> str:
    return f"{money(sum(call.estimate_usd for call in calls))} expected"


def _asked(word: Word, what: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "nobody is there to be asked: standard input is no terminal; nothing was decided",
            hint="look at what is shown, then add --yes",
        )
    return typer.confirm(f"{'approve of' if word.approve else 'deny'} {what}?", err=True)


def _settle(client: Client, run: str, call: WaitingCall, word: Word) -> WaitingCall:
    request = ApprovalRequest(
        identity=call.identity, digest=call.digest, approve=word.approve, who=word.who, why=word.why
    )
    return client.post(run_path(run, "approvals"), WaitingCall, request, timeout=None)
