"""After a crash: name what was cut off, and let runs go on that lost nothing but time (contract.md, section 6.2)."""

from tallystick.contract.events import AnyEvent, AttemptEnded, ErrorInfo, LaunchEnded
from tallystick.contract.history import History
from tallystick.engine.launch import INTERRUPTED

#: A run that was cut off so many times in a row is not started again by itself: it may be the cause.
MAX_INTERRUPTIONS = 3


def cut_off(history: History, now: float, why: str) -> list[AnyEvent]:
    """Return the ends of everything in a run that has none: attempts become unknown, a launch interrupted."""
    events: list[AnyEvent] = [
        AttemptEnded(
            run=history.run,
            at=now,
            attempt=attempt.started.attempt,
            outcome="unknown",
            kind="timeout",
            text=why,
        )
        for attempt in history.in_flight
    ]
    launch = history.launch
    if launch is not None and launch.ended is None:
        events.append(
            LaunchEnded(
                run=history.run,
                at=now,
                launch=launch.started.launch,
                status="interrupted",
                reason=INTERRUPTED,
                error=ErrorInfo(
                    INTERRUPTED,
                    f"the launch was cut off: {why}; {len(history.records)} committed call(s) are kept",
                    "tally resume goes on from here; what is committed replays for free",
                ),
            )
        )
    return events


def goes_on_by_itself(history: History) -> bool:
    """Whether an interrupted run may be resumed without asking: nothing unresolved, and not cut off again and again."""
    launches = list(history.launches.values())
    recent = launches[-MAX_INTERRUPTIONS:]
    interrupted = [launch.ended is not None and launch.ended.status == "interrupted" for launch in recent]
    return (
        bool(interrupted) and interrupted[-1] and not history.unresolved and interrupted.count(True) < MAX_INTERRUPTIONS
    )
