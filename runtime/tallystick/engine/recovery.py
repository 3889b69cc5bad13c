"""After a crash: name what was cut off, and let runs go on that lost nothing but time (contract.md, section 6.2)."""

from collections import Counter

from tallystick.contract.events import AnyEvent, AttemptEnded, CandidateJudged, ErrorInfo, LaunchEnded
from tallystick.contract.history import History
from tallystick.engine.steps import INTERRUPTED

#: A run that was cut off so many times in a row is not started again by itself: it may be the cause.
MAX_INTERRUPTIONS = 3


def without_end(history: History, now: float, why: str) -> list[AttemptEnded]:
    """Return the ends of the attempts that have none, though nothing is in flight: their outcomes are unknown."""
    return [
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


def cut_off(history: History, now: float, why: str) -> list[AnyEvent]:
    """Return the ends of everything in a run that has none: attempts become unknown, a launch interrupted.

    The launch counts what the journal knows that it executed and failed; its replays left no trace.
    """
    events: list[AnyEvent] = [*without_end(history, now, why), *_unanswered(history, now, why)]
    launch = history.launch
    if launch is not None and launch.ended is None:
        number = launch.started.launch
        states = Counter(each.state for each in history.latest_attempt.values() if each.started.launch == number)
        events.append(
            LaunchEnded(
                run=history.run,
                at=now,
                launch=number,
                status="interrupted",
                reason=INTERRUPTED,
                executed=states["committed"],
                failed=states["failed"] + states["unusable"] + states["unknown"],
                error=ErrorInfo(
                    INTERRUPTED,
                    f"the launch was cut off: {why}; {len(history.records)} committed call(s) are kept",
                    "tally resume goes on from here; what is committed replays for free",
                ),
            )
        )
    return events


def _unanswered(history: History, now: float, why: str) -> list[CandidateJudged]:
    """Return the ends of model calls that have none: perhaps billed, so that their reservations stay set aside."""
    return [
        CandidateJudged(run=history.run, at=now, candidate=number, outcome="unknown", text=why)
        for number, candidate in history.candidates.items()
        if candidate.judged is None
    ]


def obstacle(history: History, *, asked: bool = False) -> str | None:
    """Say why a run may not go on by itself, None when it may.

    It may when its latest launch was interrupted and nothing of it is unresolved, or when the providers of what is are
    going to be ``asked``. An orderly stop of the daemon does not count towards the interruptions in a row.
    """
    ends = [launch.ended for launch in history.launches.values()]
    if not ends or ends[-1] is None or ends[-1].status != "interrupted":
        return "it was not interrupted"
    if history.unresolved and not asked:
        return f"{len(history.unresolved)} call(s) are unresolved"
    recent = ends[-MAX_INTERRUPTIONS:]
    if [ended is not None and ended.reason == INTERRUPTED for ended in recent] == [True] * MAX_INTERRUPTIONS:
        return f"its last {MAX_INTERRUPTIONS} launches were all cut off"
    return None
