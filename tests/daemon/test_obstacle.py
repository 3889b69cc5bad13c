"""Which interrupted runs may go on without asking: the rule alone, over histories."""

import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.events import (
    AttemptStarted,
    ErrorInfo,
    LaunchEnded,
    LaunchStarted,
    RunCreated,
    RunStatus,
)
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.engine.recovery import cut_off, obstacle
from tallystick.engine.steps import CANCELLED, INTERRUPTED, STOPPING

RUN = "1m4v0q7xk2ab3c"


def history(*reasons: str | None) -> History:
    """A run whose launches ended so; None has no end."""
    found = History.fold(RUN, [RunCreated(run=RUN, at=0.0, name="shots", envelope=Envelope())])
    for number, reason in enumerate(reasons, 1):
        found.apply(LaunchStarted(run=RUN, at=number, launch=number, revision=0, driver="memory", envelope=Envelope()))
        if reason is not None:
            found.apply(ended(number, reason))
    return found


def ended(number: int, reason: str) -> LaunchEnded:
    status: RunStatus = "cancelled" if reason == CANCELLED else "interrupted"
    return LaunchEnded(
        run=RUN, at=number, launch=number, status=status, reason=reason, error=ErrorInfo(reason, "over", "go on")
    )


@pytest.mark.parametrize(
    "reasons",
    [
        [INTERRUPTED],
        [STOPPING],
        [INTERRUPTED, INTERRUPTED],
        [INTERRUPTED, INTERRUPTED, STOPPING, INTERRUPTED],
        [INTERRUPTED, INTERRUPTED, CANCELLED, INTERRUPTED, INTERRUPTED],
        [STOPPING] * 9,
    ],
)
def test_an_interrupted_run_may_go_on(reasons: list[str]) -> None:
    assert obstacle(history(*reasons)) is None


@pytest.mark.parametrize("before", [[], [STOPPING], [CANCELLED] * 4])
def test_three_launches_in_a_row_that_were_cut_off_are_an_obstacle(before: list[str]) -> None:
    assert "last 3 launches" in str(obstacle(history(*before, *[INTERRUPTED] * 3)))


@pytest.mark.parametrize("reasons", [[], [None], [INTERRUPTED, CANCELLED]])
def test_a_run_that_was_not_interrupted_does_not_go_on(reasons: list[str | None]) -> None:
    assert "not interrupted" in str(obstacle(history(*reasons)))


@pytest.mark.parametrize(("effect", "stays"), [("side_effecting", True), ("read_only", False)])
def test_only_an_unresolved_call_holds_it_up(effect: str, stays: bool) -> None:
    run = history(None)
    run.apply(
        AttemptStarted(
            run=RUN,
            at=1.0,
            attempt=1,
            launch=1,
            revision=0,
            identity=Identity("orchestrate/#1", (), 0),
            capability="image.generate",
            effect="side_effecting" if effect == "side_effecting" else "read_only",
            fingerprint="f",
            digest="d",
            payload={},
            effect_key="k",
            reserved=1,
        )
    )
    for event in cut_off(run, 2.0, "the daemon ended"):
        run.apply(event)
    assert (obstacle(run) is not None) is stays
    assert cut_off(run, 3.0, "again") == [], "what was ended once has its end"
