"""A run's history is a fold over its events: what could not have happened is refused, the money adds up."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.capability import Effect, Envelope
from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import (
    AnyEvent,
    AttemptAnswered,
    AttemptDecided,
    AttemptEnded,
    AttemptFound,
    AttemptPriced,
    AttemptStarted,
    AttemptSubmitted,
    Committed,
    FailureRetried,
    LaunchEnded,
    LaunchStarted,
    RaceDecided,
    Record,
    RevisionAdded,
    RunCreated,
    Stored,
)
from tallystick.contract.history import History
from tallystick.contract.identity import Identity, Schemes
from tallystick.contract.prefix import check_schemes

RUN = "run-1"
HERE = Identity("orchestrate/#1", (), 0)


def created() -> RunCreated:
    return RunCreated(run=RUN, at=1.0, name="r", envelope=Envelope())


def revised(number: int) -> RevisionAdded:
    return RevisionAdded(run=RUN, at=1.0, revision=number, digest=str(number), source="", args=None, sites=())


def launched(number: int) -> LaunchStarted:
    return LaunchStarted(run=RUN, at=1.0, launch=number, revision=0, driver="memory", envelope=Envelope())


def over(number: int) -> LaunchEnded:
    return LaunchEnded(run=RUN, at=9.0, launch=number, status="failed")


def started(
    number: int, identity: Identity = HERE, *, effect: Effect = "side_effecting", survived: tuple[int, ...] = ()
) -> AttemptStarted:
    return AttemptStarted(
        run=RUN,
        at=2.0,
        attempt=number,
        launch=1,
        revision=0,
        identity=identity,
        capability="image.generate",
        effect=effect,
        fingerprint="f",
        digest="d",
        payload={},
        effect_key=f"k{number}",
        reserved=20,
        survived=survived,
    )


def ended(number: int, outcome: Any, cost: int | None = None) -> AttemptEnded:
    return AttemptEnded(run=RUN, at=3.0, attempt=number, outcome=outcome, cost=cost)


def record(number: int, identity: Identity = HERE, **changes: Any) -> Record:
    fields: dict[str, Any] = {"capability": "image.generate", "digest": "d", "cost": 7, **changes}
    return Record(identity=identity, fingerprint="f", result=Stored(), revision=0, launch=1, attempt=number, **fields)


def committed(number: int, identity: Identity = HERE, **changes: Any) -> Committed:
    return Committed(run=RUN, at=4.0, record=record(number, identity, **changes))


def decided(number: int, decision: Any) -> AttemptDecided:
    return AttemptDecided(run=RUN, at=5.0, attempt=number, decision=decision, who="me", why="so")


def again(number: int, earlier: int, key: str = "") -> AttemptStarted:
    return msgspec.structs.replace(started(number), resends=earlier, effect_key=key or f"k{earlier}")


def found(number: int, outcome: Any, cost: int | None = 5) -> AttemptFound:
    return AttemptFound(run=RUN, at=5.0, attempt=number, outcome=outcome, cost=cost)


def priced(number: int, cost: int) -> AttemptPriced:
    return AttemptPriced(run=RUN, at=6.0, attempt=number, cost=cost, who="me", why="so")


def answered(number: int, cost: int | None) -> AttemptAnswered:
    return AttemptAnswered(run=RUN, at=2.5, attempt=number, raw=Stored(inline="raw"), cost=cost)


def race(winner: int) -> RaceDecided:
    return RaceDecided(run=RUN, at=1.0, launch=1, revision=0, identity=HERE, fingerprint="f", width=2, winner=winner)


IMPOSSIBLE: dict[str, tuple[list[AnyEvent], str]] = {
    "created twice": ([created(), created()], "created twice"),
    "a revision left out": ([revised(1)], "revision 1 is out of order"),
    "a revision twice": ([revised(0), revised(0)], "revision 0 is out of order"),
    "a launch left out": ([launched(2)], "launch 2 is out of order"),
    "a launch twice": ([launched(1), launched(1)], "launch 1 is out of order"),
    "an end without a launch": ([over(1)], "launch 1 goes on or ends without having started"),
    "a launch that ends twice": ([launched(1), over(1), over(1)], "launch 1 ends"),
    "an attempt twice": ([started(1), started(1)], "attempt 1 starts twice"),
    "an end without an attempt": ([ended(1, "failed")], "attempt 1 is not in the journal"),
    "an attempt that ends twice": ([started(1), ended(1, "failed"), ended(1, "failed")], "attempt 1 ends twice"),
    "an end of a committed attempt": ([started(1), committed(1), ended(1, "failed")], "attempt 1 ends twice"),
    "a record without its attempt": ([committed(1)], "attempt 1 is not in the journal"),
    "a second record": ([started(1), committed(1), committed(1)], "has two records"),
    "a record of another digest": ([started(1), committed(1, digest="e")], "not what attempt 1 asked for"),
    "a record of another capability": ([started(1), committed(1, capability="x")], "not what attempt 1 asked for"),
    "a record of another take": ([started(1), committed(1, take="two")], "not what attempt 1 asked for"),
    "a record of another identity": (
        [started(1), committed(1, Identity("orchestrate/#2", (), 0))],
        "not what attempt 1 asked for",
    ),
    "an attempt at a committed identity": ([started(1), committed(1), started(2)], "is for a committed identity"),
    "an attempt beside one in flight": ([started(1), started(2)], "is for an identity that is held"),
    "an attempt past an unresolved one": (
        [started(1), ended(1, "unknown"), started(2)],
        "is for an identity that is held",
    ),
    "a decision without an attempt": ([decided(1, "abandon")], "attempt 1 is not in the journal"),
    "a decision on one in flight": ([started(1), decided(1, "abandon")], "decided while in_flight"),
    "a decision on a failed one": ([started(1), ended(1, "failed"), decided(1, "abandon")], "decided while failed"),
    "a second decision": (
        [started(1), ended(1, "unknown"), decided(1, "abandon"), decided(1, "abandon")],
        "decided while abandoned",
    ),
    "a decision on a read-only one": (
        [started(1, effect="read_only"), ended(1, "unknown"), decided(1, "abandon")],
        "decided while unknown",
    ),
    "a failure survived that is not there": ([started(1, survived=(9,))], "attempt 9 is not in the journal"),
    "a retry of what nobody had seen failing": (
        [started(1), ended(1, "failed"), FailureRetried(run=RUN, at=1.0, attempt=1, who="me")],
        "attempt 1 is retried",
    ),
    "a record of one that was sent again": (
        [started(1), ended(1, "unknown"), again(2, 1), committed(1)],
        "has a record and is resent",
    ),
    "another key for the same call": ([started(1), ended(1, "unknown"), again(2, 1, "k9")], "that is held"),
    "a failed call sent again": ([started(1), ended(1, "failed"), again(2, 1)], "which is another call"),
    "one sent again that never was": ([again(2, 1)], "which is another call"),
    "a look-up of one in flight": ([started(1), found(1, "failed")], "looked up while in_flight"),
    "a look-up of a failed one": ([started(1), ended(1, "failed"), found(1, "failed")], "looked up while failed"),
    "a price beside the provider's": ([started(1), committed(1), priced(1, 3)], "was given a price and has one"),
    "a price before an end": ([started(1), ended(1, "unknown"), priced(1, 3)], "was given a price and has one"),
    "two winners": ([race(0), race(1)], "two winners"),
}


@pytest.mark.parametrize("story", IMPOSSIBLE)
def test_what_could_not_have_happened_is_refused(story: str) -> None:
    events, said = IMPOSSIBLE[story]
    with pytest.raises(StoreCorruptError, match=said) as refused:
        History.fold(RUN, events)
    assert RUN in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("events", "state", "spent", "held", "unpriced"),
    [
        ([], "in_flight", 0, 0, 0),
        ([committed(1)], "committed", 7, 0, 0),
        ([committed(1, cost=None)], "committed", 0, 20, 1),
        ([ended(1, "failed", 0)], "failed", 0, 0, 0),
        ([ended(1, "failed", None)], "failed", 0, 20, 1),
        ([ended(1, "unusable", 9)], "unusable", 9, 0, 0),
        ([ended(1, "unknown")], "unresolved", 0, 20, 1),
        ([ended(1, "unknown", 3)], "unresolved", 3, 0, 0),
        ([ended(1, "unknown"), decided(1, "abandon")], "abandoned", 20, 0, 0),
        ([ended(1, "unknown", 3), decided(1, "abandon")], "abandoned", 3, 0, 0),
        ([ended(1, "unusable", 9), decided(1, "abandon")], "abandoned", 9, 0, 0),
        ([ended(1, "unknown"), decided(1, "commit"), committed(1)], "committed", 7, 0, 0),
        ([ended(1, "unknown"), found(1, "failed")], "failed", 5, 0, 0),
        ([ended(1, "unknown"), found(1, "unusable", None)], "unusable", 0, 20, 1),
        ([ended(1, "unknown"), found(1, "committed"), committed(1)], "committed", 7, 0, 0),
        ([answered(1, 4), ended(1, "unknown")], "unresolved", 4, 0, 0),
        ([ended(1, "unknown"), answered(1, 4)], "unresolved", 4, 0, 0),
        ([committed(1, cost=None), priced(1, 3)], "committed", 3, 0, 0),
        ([committed(1, cost=None), priced(1, 3), priced(1, 4)], "committed", 4, 0, 0),
        ([ended(1, "failed", None), priced(1, 0)], "failed", 0, 0, 0),
        ([ended(1, "unknown"), decided(1, "abandon"), priced(1, 0)], "abandoned", 0, 0, 0),
    ],
)
def test_an_attempt_has_one_state_and_one_price(
    events: list[AnyEvent], state: str, spent: int, held: int, unpriced: int
) -> None:
    history = History.fold(RUN, [started(1), *events])
    assert history.attempts[1].state == state
    assert (history.spent, history.held, history.unpriced) == (spent, held, unpriced)
    assert history.held_in_flight == (20 if state == "in_flight" else 0)


def test_an_attempt_that_sends_another_again_answers_for_both() -> None:
    lost: list[AnyEvent] = [started(1), AttemptSubmitted(run=RUN, at=2.0, attempt=1, job="j"), ended(1, "unknown")]
    history = History.fold(RUN, [*lost, again(2, 1)])
    assert [(each.state, each.cost, each.job) for each in history.attempts.values()] == [
        ("resent", 0, "j"),
        ("in_flight", None, None),
    ]
    assert (history.held, history.held_in_flight, history.unpriced, history.unresolved) == (0, 20, 0, [])
    history.apply(ended(2, "unknown"))
    assert [each.started.attempt for each in history.unresolved] == [2]
    history.apply(committed(2))
    assert (history.spent, history.held, history.unpriced) == (7, 0, 0)


def test_an_unknown_read_only_outcome_is_not_held() -> None:
    history = History.fold(RUN, [started(1, effect="read_only"), ended(1, "unknown"), started(2, effect="read_only")])
    assert history.attempts[1].state == "unknown"
    assert (history.unresolved, history.latest_attempt[HERE].started.attempt) == ([], 2)


def test_an_abandoned_attempt_permits_one_more() -> None:
    history = History.fold(RUN, [started(1), ended(1, "unknown"), decided(1, "abandon"), started(2), committed(2)])
    assert (history.decisions[HERE], history.executions["image.generate"]) == (1, 2)
    assert history.records[HERE].attempt == 2


_ENDS = ["none", "failed", "unusable", "unknown", "abandoned", "reconciled", "committed"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(_ENDS),
            st.one_of(st.none(), st.integers(0, 50)),
            st.sampled_from(["side_effecting", "read_only"]),
        ),
        max_size=12,
    )
)
def test_the_sums_are_those_of_the_attempts(stories: list[tuple[str, int | None, Effect]]) -> None:
    history = History(RUN)
    for number, (end, cost, effect) in enumerate(stories, 1):
        identity = Identity("orchestrate/#1", (number,), 0)
        events: list[AnyEvent] = [started(number, identity, effect=effect)]
        if end in ("failed", "unusable", "unknown"):
            events.append(ended(number, end, cost))
        if end in ("abandoned", "reconciled"):
            events.append(ended(number, "unusable", cost))
            events.append(decided(number, "abandon" if end == "abandoned" else "commit"))
        if end in ("committed", "reconciled"):
            events.append(committed(number, identity, cost=cost))
        for event in events:
            history.apply(event)
    attempts = list(history.attempts.values())
    settled = [attempt for attempt in attempts if attempt.state != "in_flight"]
    assert history.spent == sum(attempt.cost or 0 for attempt in attempts)
    assert history.held == sum(attempt.held for attempt in settled)
    assert history.held_in_flight == sum(attempt.held for attempt in attempts if attempt.state == "in_flight")
    assert history.unpriced == sum(attempt.cost is None for attempt in settled)
    assert set(history.records) == {attempt.started.identity for attempt in attempts if attempt.state == "committed"}


def test_a_record_of_a_scheme_from_elsewhere_is_refused_and_never_paid_again() -> None:
    history = History.fold(RUN, [started(1), committed(1, schemes=Schemes(site="s9"))])
    with pytest.raises(StoreCorruptError, match="s9"):
        check_schemes(history)
    check_schemes(History.fold(RUN, [started(1), committed(1)]))
