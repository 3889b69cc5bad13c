"""Reports of a run for clients, read off its history: pure functions."""

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.events import ErrorInfo, RunStatus
from tallystick.contract.history import History, Launch
from tallystick.contract.plan import Plan
from tallystick.contract.runtime_rule import DIVERGED
from tallystick.engine.live_run import LiveRun, spend_of
from tallystick.engine.messages import (
    Artifact,
    AttemptReport,
    Calls,
    LaunchReport,
    PlannedCall,
    PlannedStop,
    PlanReport,
    RunLine,
    RunReport,
    Spend,
)
from tallystick.engine.waiting import denied, waiting_calls
from tallystick.store.protocol import RunRow

INTERRUPTED_HINT = "tally resume goes on from here; what is committed replays for free"


def dollars(micros: int | None) -> float | None:
    """Turn micro-dollars into dollars; unknown stays unknown."""
    return None if micros is None else micros / MICROS_PER_USD


def attempt_report(attempt: Attempt) -> AttemptReport:
    """Report one attempt."""
    started = attempt.started
    return AttemptReport(
        attempt=started.attempt,
        identity=started.identity,
        capability=started.capability,
        effect=started.effect,
        state=attempt.state,
        revision=started.revision,
        launch=started.launch,
        started=started.at,
        payload=started.payload,
        take=started.take,
        effect_key=started.effect_key,
        kind=attempt.kind,
        text=attempt.text,
        cost_usd=dollars(attempt.cost),
        reserved_usd=attempt.held / MICROS_PER_USD,
        job=attempt.job,
        decision=attempt.decided.decision if attempt.decided is not None else None,
    )


def run_report(history: History, live: LiveRun | None = None) -> RunReport:
    """Report a whole run but for its result and its logs, which may be files; ``live`` adds what its actors know."""
    launch = history.launch
    ended = launch.ended if launch is not None else None
    unresolved = history.unresolved
    error = _error(history, live)
    return RunReport(
        run=history.run,
        status=_status(history, live),
        reason=error.code if error is not None else None,
        calls=live.calls if live is not None else _calls(launch, len(unresolved)),
        spend=_spend(history, live),
        orphans=ended.orphans if ended is not None else (),
        unresolved=tuple(map(attempt_report, unresolved)),
        waiting=waiting_calls(history) if live is None else (),
        error=error,
        name=history.created.name if history.created is not None else "",
        phase=live.phase if live is not None else "idle",
        revision=launch.started.revision if launch is not None else 0,
        launch=launch.started.launch if launch is not None else 0,
        created=history.created.at if history.created is not None else 0.0,
        updated=history.updated,
        not_reached=ended.not_reached if ended is not None else (),
        warnings=ended.warnings if ended is not None else (),
        launches=tuple(_launch_report(each) for each in history.launches.values()),
    )


def _spend(history: History, live: LiveRun | None) -> Spend:
    if live is not None:
        return spend_of(history, live.saved, live.saved_unpriced)
    ended = history.launch.ended if history.launch is not None else None
    return spend_of(history, ended.saved, ended.saved_unpriced) if ended is not None else spend_of(history)


def plan_report(plan: Plan) -> PlanReport:
    """Report a plan."""
    stops = [PlannedStop(stop.code, stop.message, stop.hint, stop.identity) for stop in plan.stops]
    return PlanReport(
        state=plan.state,
        replay=len(plan.replay),
        new=tuple(
            PlannedCall(call.identity, call.capability, call.estimate / MICROS_PER_USD, call.warning)
            for call in plan.new
        ),
        diverge=tuple(stop for stop in stops if stop.code == DIVERGED),
        stops=tuple(stop for stop in stops if stop.code != DIVERGED),
        orphans=plan.orphans,
        unknown=plan.unknown,
        estimate_usd=plan.estimate / MICROS_PER_USD,
        error=plan.error,
    )


def artifacts(history: History) -> list[Artifact]:
    """List the files that the run's records name, in the order of their identities."""
    records = sorted(history.records.values(), key=lambda record: record.identity.sort_key)
    return [
        Artifact(record.identity, record.capability, file.sha256, file.media_type, file.size)
        for record in records
        for file in record.artifacts
    ]


def run_line(row: RunRow, live: LiveRun | None = None) -> RunLine:
    """Turn an index line into a line of a listing; a live run knows better what it has spent."""
    spent, unpriced = (row.spent, row.unpriced) if live is None else (live.history.spent, live.history.unpriced)
    return RunLine(
        run=row.run,
        name=row.name,
        status=row.status,
        created=row.created,
        updated=row.updated,
        usd=spent / MICROS_PER_USD,
        unpriced=unpriced,
    )


def _status(history: History, live: LiveRun | None) -> RunStatus:
    launch = history.launch
    if live is not None:
        return "running"
    if denied(history) is not None:
        return "stopped"
    if launch is None or launch.ended is None:
        return "interrupted"
    return launch.ended.status


def _error(history: History, live: LiveRun | None) -> ErrorInfo | None:
    launch = history.launch
    if live is not None:
        return None
    if launch is None or launch.ended is None:
        return ErrorInfo("TS-N003", "the latest launch has no end in the journal: it was cut off", INTERRUPTED_HINT)
    return denied(history) or launch.ended.error


def _calls(launch: Launch | None, unresolved: int) -> Calls:
    ended = launch.ended if launch is not None else None
    if ended is None:
        return Calls(unresolved=unresolved)
    return Calls(
        executed=ended.executed,
        replayed=ended.replayed,
        failed=ended.failed,
        unresolved=unresolved,
        denied=ended.denied,
    )


def _launch_report(launch: Launch) -> LaunchReport:
    started, ended = launch.started, launch.ended
    return LaunchReport(
        launch=started.launch,
        revision=started.revision,
        started=started.at,
        ended=ended.at if ended is not None else None,
        status=ended.status if ended is not None else "running",
        reason=ended.reason if ended is not None else None,
        calls=_calls(launch, 0),
        driver=started.driver,
        image=launch.image,
    )
