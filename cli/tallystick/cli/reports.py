"""Reports of the daemon as people read them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tallystick.cli.fields import Fields, Labelled
from tallystick.cli.next_steps import next_step
from tallystick.cli.terminal import amount, count, money, plain
from tallystick.cli.values import compact, holds_artifacts, pretty
from tallystick.contract.identity import Identity
from tallystick.engine.authoring.choices import AutoRepairReport
from tallystick.engine.messages import (
    Artifact,
    AttemptReport,
    Calls,
    CapabilityInfo,
    CertificateReport,
    DoctorReport,
    Explanation,
    LaunchReport,
    RunLine,
    RunReport,
    Spend,
    Status,
)
from tallystick.engine.money_messages import WaitingCall

#: Characters of a payload or a reason in a table.
MAX_CELL = 60
MAX_IDENTITIES = 20

_STYLES = {
    "completed": "bold green",
    "committed": "green",
    "running": "bold cyan",
    "draft": "bold cyan",
    "in_flight": "cyan",
    "waiting": "bold yellow",
    "unresolved": "bold yellow",
}


def run_summary(report: RunReport) -> RenderableType:
    """Say how a run stands: status, why, calls, spend, what is open, and what to do next."""
    rows: list[tuple[str, str]] = []
    if report.error is not None:
        rows.append(("error", report.error.message))
        # of an unfinished run the hint only says how to go on: with unresolved attempts that is not the next step
        if not (report.unresolved and report.status in ("interrupted", "cancelled")):
            rows.append(("hint", report.error.hint))
    rows += [("calls", calls(report.calls)), ("spend", spend(report.spend))]
    rows += [("warning", warning) for warning in report.warnings]
    if report.auto_repair is not None:
        rows.append(("auto-repair", auto_repair(report.auto_repair)))
    rows += [("orphans", identities(report.orphans)), ("not reached", identities(report.not_reached))]
    if report.result is not None:
        rows.append(("result", pretty(report.result)))
    if holds_artifacts(report.result):
        rows.append(("files", f"tally artifacts {report.run} --export DIR writes them out"))
    rows += [("waits", waiting(call)) for call in report.waiting]
    if report.status not in ("running", "completed") and report.phase != "writing":
        rows.append(("next", next_step(report)))
    parts: list[RenderableType] = [headline(report), Fields(rows)]
    if report.unresolved:
        parts += [
            Text("\nunresolved attempts: paid or not, nobody knows yet", "bold yellow"),
            attempts(report.unresolved),
        ]
    return Group(*parts)


def auto_repair(of: AutoRepairReport) -> str:
    """Say how the unattended repair of a run stands."""
    text = f"{of.rewrites} of at most {count(of.allowed, 'rewrite')}"
    return text if of.why is None else f"{text}; it stopped: [{of.why.code}] {of.why.message}"


def run_details(report: RunReport) -> RenderableType:
    """Add the launches and what the script printed to the summary."""
    parts: list[RenderableType] = [run_summary(report)]
    if report.launches:
        parts += [Text(), launches(report.launches, report.unresolved)]
    if report.logs:
        parts += [Text("\nprinted by the script", "bold"), Text(plain(report.logs.rstrip("\n")))]
    return Group(*parts)


def headline(report: RunReport) -> Text:
    """Return ``run ID (name) completed``, with the error's code and the phase where there is more to say."""
    text = Text.assemble("run ", (report.run, "bold"), f" ({plain(report.name)}) " if report.name else " ")
    text.append(report.status, _STYLES.get(report.status, "bold red"))
    if report.reason:
        text.append(f" [{report.reason}]")
    if report.status == "running" and report.phase not in ("running", "idle"):
        text.append(f", {report.phase}")
    if report.revision:
        text.append(f", revision {report.revision}", "dim")
    return text


def waiting(call: WaitingCall) -> str:
    """Return one call that waits for a person, in a line."""
    decision = f", {call.decision} by {call.who}" if call.decision is not None else ""
    asked = f"{call.capability} {call.identity}, {money(call.estimate_usd)} expected{decision}"
    return f"{asked}\n{compact(call.payload, MAX_CELL)}"


def calls(of: Calls) -> str:
    """Return the counts that are not zero, executed and replayed always."""
    parts = [f"{of.executed} executed", f"{of.replayed} replayed"]
    parts += [f"{n} {name}" for name in ("failed", "unresolved", "denied") if (n := getattr(of, name))]
    return ", ".join(parts)


def spend(of: Spend) -> str:
    """Return the spend; a call without a known price makes it a lower bound."""
    text = amount(of.usd, of.unpriced)
    if of.reserved_usd:
        text += f", {money(of.reserved_usd)} reserved"
    if of.models_usd:
        text += f", {money(of.models_usd)} of it for models"
    saved = amount(of.replay_saved_usd, of.replay_unpriced)
    return text + (f"; replay saved {saved}" if of.replay_saved_usd or of.replay_unpriced else "")


def runs(lines: Iterable[RunLine]) -> Table:
    """Return the table of runs, newest first as the daemon lists them."""
    table = table_of("run", "name", "status", "spent", "created", "updated")
    for line in lines:
        status = Text(line.status, _STYLES.get(line.status, "bold red"))
        spent = amount(line.usd, line.unpriced)
        table.add_row(line.run, plain(line.name), status, spent, moment(line.created), moment(line.updated))
    return table


def launches(of: Sequence[LaunchReport], unresolved: Sequence[AttemptReport] = ()) -> Table:
    """Return the table of a run's launches, each with those of its attempts that are unresolved."""
    table = table_of("launch", "revision", "status", "started", "took", "calls")
    for launch in of:
        took = "" if launch.ended is None else f"{launch.ended - launch.started:.1f} s"
        status = Text(launch.status, _STYLES.get(launch.status, "bold red"))
        status.append(f" [{launch.reason}]" if launch.reason else "", "default")
        open_ones = [str(attempt.attempt) for attempt in unresolved if attempt.launch == launch.launch]
        made = calls(launch.calls) + (f", unresolved: attempt {', '.join(open_ones)}" if open_ones else "")
        table.add_row(str(launch.launch), str(launch.revision), status, moment(launch.started), took, made)
    return table


def attempts(of: Iterable[AttemptReport]) -> Table:
    """Return the table of attempts: what was asked, how it ended and why, what it cost."""
    table = table_of("attempt", "identity", "capability", "state", "cost", "payload")
    for column in table.columns[:-1]:
        column.no_wrap = True  # a narrow terminal takes its room from the payload
    for attempt in of:
        identity = plain(str(attempt.identity)) + (f"\ntake: {plain(attempt.take)}" if attempt.take else "")
        unknown = "" if attempt.state == "in_flight" else "unknown"
        why = [": ".join(part for part in (attempt.kind, attempt.text) if part), attempt.decision or ""]
        table.add_row(
            str(attempt.attempt),
            identity,
            attempt.capability,
            Text(attempt.state, _STYLES.get(attempt.state, "red")),
            unknown if attempt.cost_usd is None else money(attempt.cost_usd),
            Text(
                "\n".join([compact(attempt.payload, MAX_CELL), *(plain(line) for line in why if line)]),
                no_wrap=True,
                overflow="ellipsis",
            ),
        )
    return table


def capabilities(of: Iterable[CapabilityInfo]) -> Text:
    """Return the catalogue: a line for each capability, and its payload and result below."""
    text = Text()
    for info in of:
        text.append(f"{info.name:<16}", "bold").append(f"  {info.effect.replace('_', '-'):<14}")
        text.append(f"  {money(info.estimate_usd):<7}  ", "cyan")
        text.append(info.provider or "no provider configured", "" if info.provider else "yellow")
        text.append(f"\n    {plain(info.description)}\n    {plain(info.payload)}\n    -> {plain(info.result)}\n", "dim")
    text.right_crop(1)
    return text


def doctor(report: DoctorReport) -> Table:
    """Return what was looked at, with the remedy of what does not hold."""
    table = table_of("", "looked at", "found")
    for check in report.checks:
        mark = Text("ok", "green") if check.ok else Text("FAIL", "bold red")
        found = plain(check.detail) + (f"\n{plain(check.hint)}" if check.hint and not check.ok else "")
        table.add_row(mark, plain(check.name), found)
    return table


def certificate(report: CertificateReport) -> RenderableType:
    """Return what a run's records were certified to be and, where that was verified, what differs today."""
    frozen = [f"{site}  {capability}" for site, (capability, _) in report.frozen.items()]
    rows = [
        ("launch", f"{report.launch}, ended {moment(report.at)}"),
        ("records", f"{report.entries}, up to sequence {report.cut} of the log"),
        ("chain", report.chain),
        ("frozen", "\n".join(frozen)),
        ("certificates", str(report.certificates)),
    ]
    parts: list[RenderableType] = [Text.assemble("certificate of run ", (report.run, "bold")), Fields(rows)]
    if report.differences:
        differences = table_of("launch", "what", "record")
        for found in report.differences:
            differences.add_row(str(found.launch), Text(found.kind, "bold red"), plain(found.message))
        many = count(len(report.differences), "difference")
        parts += [differences, Text(f"{many}: the records are not what was certified", "bold red")]
    elif report.differences is not None:
        many = count(report.certificates, "certificate")
        parts.append(Text.assemble(("verified", "bold green"), f": {many} recomputed, no difference"))
    return Group(*parts)


def artifacts(of: Iterable[Artifact]) -> Table:
    """Return the table of a run's artifacts: the call that made each, its type, its bytes, its hash."""
    table = table_of("identity", "type", "bytes", "sha256")
    for artifact in of:
        table.add_row(plain(str(artifact.identity)), plain(artifact.media_type), str(artifact.size), artifact.sha256)
    return table


def explanation(of: Explanation) -> RenderableType:
    """Return what became of one call: its state, then the events in their order."""
    headline = Text.assemble((plain(str(of.identity)), "bold"), " ")
    headline.append(of.state, _STYLES.get(of.state, "bold red"))
    return Group(headline, *(Labelled(Text("  "), Text(plain(line))) for line in of.lines))


def status(of: Status) -> Fields:
    """Return how the daemon stands."""
    return Fields(
        [
            ("daemon", f"running, version {of.version}, process {of.pid}, since {moment(of.started)}"),
            ("home", of.home),
            ("store", of.store),
            ("sandbox", f"{of.driver}, {plain(of.why_driver)}" if of.why_driver else of.driver),
            ("image", of.image),
            ("runs", f"{of.runs} in the store, {of.live} live, {of.queued} queued"),
        ]
    )


def moment(at: float) -> str:
    """Show Unix seconds in the local time zone."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def identities(of: Sequence[Identity]) -> str:
    """Return identities, one a line, and no more than a screenful."""
    shown = [plain(str(identity)) for identity in of[:MAX_IDENTITIES]]
    if len(of) > len(shown):
        shown.append(f"... {len(of) - len(shown)} more")
    return "\n".join(shown)


def table_of(*columns: str) -> Table:
    """Return an empty table with these headings, as every report has it."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
