"""One launch decides about each call, and takes the broker's last word on it."""

from typing import Any

import pytest

from engine_launch import IDENTITY, SHOT, STOP, Table, dispatched, record_of
from tallystick.contract.events import AttemptEnded
from tallystick.contract.identity import Identity
from tallystick.contract.payload import digest
from tallystick.contract.runtime_rule import Stop
from tallystick.engine.steps import (
    CommittedCall,
    Dispatch,
    DroppedCall,
    Fail,
    FailedCall,
    Halt,
    Serve,
    StoppedCall,
)
from tallystick.providers import catalogue


def test_what_is_committed_is_served() -> None:
    table = Table()
    record = table.commit(1)
    step = table.call()
    assert step == Serve(1, record, replayed=True)
    assert (table.launch.counts, table.launch.saved) == ({"replayed": 1}, 7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"payload": {"prompt": "other"}}, "payload.prompt: 'shot' -> 'other'"), ({"take": "two"}, "take: None -> 'two'")],
)
def test_what_is_committed_diverges_for_another_call(changes: dict[str, Any], said: str) -> None:
    table = Table()
    table.commit(1)
    step = table.call(**changes)
    assert isinstance(step, Halt)
    assert (step.stop.code, step.stop.identity) == ("TS-D001", IDENTITY)
    assert said in step.stop.message
    assert table.launch.ending().status == "stopped"


def test_after_a_divergence_nothing_is_served_or_dispatched() -> None:
    table = Table()
    table.commit(1)
    table.commit(2, Identity(SHOT, (1,), 0))
    table.call(payload={"prompt": "other"})
    assert table.call((1,)) is None
    assert table.call((2,)) is None
    assert (table.launch.pending, table.launch.counts["replayed"]) == ({}, 0)


def test_an_unresolved_attempt_stops_the_launch() -> None:
    table = Table()
    started = table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="unknown", text="reset"))
    step = table.call()
    assert isinstance(step, Halt)
    assert step.stop.code == "TS-A001"
    assert started.effect_key in step.stop.hint


def test_an_unusable_answer_is_the_same_failure_again() -> None:
    table = Table()
    table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="unusable", kind="unusable", text="half"))
    assert table.call() == Fail(1, IDENTITY, "image.generate", "unusable", "half", replayed=True)
    assert table.launch.counts == {"replayed": 1}
    assert isinstance(Table().call(), Dispatch)


def test_new_work_is_dispatched_with_what_the_broker_needs() -> None:
    table = Table()
    step = table.call(take="second")
    assert isinstance(step, Dispatch)
    request = step.request
    assert (request.identity, request.capability, request.take) == (IDENTITY, "image.generate", "second")
    assert request.fingerprint == table.fingerprints[SHOT]
    assert request.digest == digest({"prompt": "shot"})
    assert step.execute.estimate == catalogue.spec("image.generate").estimate


@pytest.mark.parametrize(
    ("limits", "code"),
    [({"grants": ()}, "TS-P001"), ({"max_calls": 2}, "TS-P003"), ({"max_calls_per_site": 2}, "TS-P003")],
)
def test_a_limit_denies_the_call_and_the_others_go_on_settling(limits: dict[str, Any], code: str) -> None:
    table = Table(**limits)
    steps = [table.call((number,)) for number in range(3)]
    denied = next(step for step in steps if isinstance(step, Halt))
    assert (denied.stop.code, table.launch.counts["denied"]) == (code, 1)
    assert table.launch.ending().status == "stopped"


def test_replays_do_not_count_towards_a_ceiling() -> None:
    table = Table(max_calls=1)
    table.commit(1)
    assert isinstance(table.call((0,)), Serve)
    assert isinstance(table.call((1,)), Dispatch)
    assert isinstance(table.call((2,)), Halt)


def test_a_payload_against_the_schema_fails_without_an_attempt() -> None:
    table = Table()
    step = table.call(payload={"prompt": 1})
    assert isinstance(step, Fail)
    assert (step.kind, table.launch.counts, table.launch.pending) == ("invalid_request", {"failed": 1}, {})


def test_a_committed_call_is_served_and_its_place_is_free_again() -> None:
    table = Table()
    call = dispatched(table)
    record = record_of(table.start(1))
    assert table.launch.on_settled(call, CommittedCall(record)) == Serve(call, record, replayed=False)
    assert (table.launch.counts, table.launch.pending) == ({"executed": 1}, {})
    assert isinstance(table.call((0,), occurrence=1), Dispatch)


def test_a_failed_call_is_told() -> None:
    table = Table()
    call = dispatched(table)
    step = table.launch.on_settled(call, FailedCall("rate_limited", "later"))
    assert step == Fail(call, IDENTITY, "image.generate", "rate_limited", "later")
    assert table.launch.accepts_work


@pytest.mark.parametrize(("unresolved", "code"), [(True, "TS-A002"), (False, "TS-P002"), (False, "TS-S002")])
def test_a_stopped_call_ends_the_launch_and_is_counted_for_what_it_is(unresolved: bool, code: str) -> None:
    table = Table()
    call = dispatched(table)
    stop = Stop(code, "because", "do", IDENTITY)
    assert table.launch.on_settled(call, StoppedCall(stop, unresolved=unresolved)) == Halt(stop)
    counts = table.launch.counts
    assert (counts["unresolved"], counts["denied"]) == (unresolved, code.startswith("TS-P"))


def test_a_dropped_call_was_not_reached() -> None:
    table = Table()
    call = dispatched(table)
    table.launch.halt(STOP)
    assert table.launch.on_settled(call, DroppedCall()) is None
    assert table.launch.invoked == set()


@pytest.mark.parametrize(
    ("codes", "gravest"),
    [
        (["TS-N006", "TS-S002", "TS-P002", "TS-A002", "TS-D001"], "TS-D001"),
        (["TS-N006", "TS-R009", "TS-P002", "TS-A002", "TS-D001"], "TS-R009"),
    ],
    ids=["a divergence comes first", "but for a cancel, which somebody wanted"],
)
def test_of_several_stops_the_gravest_is_the_reason_whatever_the_order(codes: list[str], gravest: str) -> None:
    for order in (codes, codes[::-1], [*codes[3:], *codes[:3]]):
        table = Table()
        for code in order:
            assert table.launch.halt(Stop(code, "m", "h")).stop.code == code
        assert table.launch.stop is not None
        assert table.launch.stop.code == gravest


def test_failures_that_a_branch_has_seen_are_marked_until_an_attempt_has_done_it() -> None:
    table = Table()
    first = dispatched(table)
    table.start(1)
    table.history.apply(AttemptEnded(run="r", at=2.0, attempt=1, outcome="failed", kind="unavailable", text="no"))
    table.launch.on_settled(first, FailedCall("unavailable", "no", 1))
    for path in ((1,), (2,)):
        step = table.call(path, seen=(first,))
        assert isinstance(step, Dispatch)
        assert step.survived == (1,)  # the one before may never be sent
    table.start(2, Identity(SHOT, (1,), 0), survived=(1,))
    step = table.call((3,), seen=(first,))
    assert isinstance(step, Dispatch)
    assert step.survived == ()


def test_a_forged_list_of_seen_failures_marks_nothing() -> None:
    table = Table()
    step = table.call(seen=(1, 2, 99))
    assert isinstance(step, Dispatch)
    assert step.survived == ()
