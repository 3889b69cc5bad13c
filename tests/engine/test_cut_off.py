"""What the journal says of a launch that was cut off."""

from typing import Any, Literal

from tallystick.contract.capability import Effect, Envelope
from tallystick.contract.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    Committed,
    LaunchEnded,
    LaunchStarted,
    Record,
    RevisionAdded,
    RunCreated,
    Stored,
)
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.engine.recovery import cut_off

RUN = "run-1"


def launched(number: int) -> LaunchStarted:
    return LaunchStarted(run=RUN, at=1.0, launch=number, revision=0, driver="memory", envelope=Envelope())


def started(number: int, launch: int, effect: Effect = "side_effecting") -> AttemptStarted:
    return AttemptStarted(
        run=RUN,
        at=2.0,
        attempt=number,
        launch=launch,
        revision=0,
        identity=Identity("orchestrate/#1", (number,), 0),
        capability="image.generate",
        effect=effect,
        fingerprint="f",
        digest="d",
        payload={},
        effect_key="k",
        reserved=0,
    )


def ended(number: int, outcome: Literal["failed", "unknown", "unusable"]) -> AttemptEnded:
    return AttemptEnded(run=RUN, at=3.0, attempt=number, outcome=outcome)


def committed(attempt: AttemptStarted) -> Committed:
    facts: dict[str, Any] = {
        name: getattr(attempt, name) for name in ("identity", "capability", "fingerprint", "digest")
    }
    record = Record(**facts, result=Stored(), revision=0, launch=attempt.launch, attempt=attempt.attempt)
    return Committed(run=RUN, at=3.0, record=record)


def history_of(*events: AnyEvent) -> History:
    begin: list[AnyEvent] = [
        RunCreated(run=RUN, at=0.0, name="shots", envelope=Envelope()),
        RevisionAdded(run=RUN, at=0.0, revision=0, digest="d", source="", args=None, sites=()),
    ]
    return History.fold(RUN, [*begin, *events])


def end_of_launch(history: History) -> LaunchEnded:
    (end,) = [event for event in cut_off(history, 9.0, "it was killed") if isinstance(event, LaunchEnded)]
    return end


def test_a_launch_that_was_cut_off_counts_what_it_came_to() -> None:
    attempts = [started(number, 1) for number in range(5)]
    read = started(5, 1, "read_only")
    end = end_of_launch(
        history_of(
            launched(1),
            *attempts,
            read,
            committed(attempts[0]),
            committed(attempts[1]),
            ended(2, "failed"),
            ended(3, "unusable"),
            ended(5, "unknown"),
        )
    )
    assert (end.launch, end.status, end.executed, end.failed) == (1, "interrupted", 2, 3)


def test_what_an_earlier_launch_did_is_not_counted_again() -> None:
    first, second = started(1, 1), started(2, 2)
    orderly = LaunchEnded(run=RUN, at=4.0, launch=1, status="failed", executed=1)
    end = end_of_launch(
        history_of(launched(1), first, committed(first), orderly, launched(2), second, committed(second))
    )
    assert (end.launch, end.executed, end.failed) == (2, 1, 0)


def test_what_was_still_in_flight_is_neither_executed_nor_failed() -> None:
    history = history_of(launched(1), started(1, 1))
    end = end_of_launch(history)
    assert (end.executed, end.failed) == (0, 0)
    for event in cut_off(history, 9.0, "it was killed"):
        history.apply(event)
    assert [attempt.state for attempt in history.attempts.values()] == ["unresolved"]
