"""The host is the wall: whatever a guest sends is checked here, and a forged frame ends its launch."""

from typing import Any

import pytest

from engine_launch import PLAN, SHOT, Table
from tallystick.contract.identity import Identity
from tallystick.engine.launch import Launch
from tallystick.engine.steps import (
    Dispatch,
    Fail,
    FailedCall,
    Finished,
    Halt,
    Serve,
)
from tallystick.sandbox.frames import WINDOW, Crash, Done, Ready


def assert_breach(step: Any, launch: Launch, said: str) -> None:
    assert isinstance(step, Halt)
    assert step.stop.code == "TS-R004"
    assert said in step.stop.message
    assert not launch.accepts_work
    assert launch.ending().status == "failed"


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ({"site": "orchestrate/#9"}, "orchestrate/#9"),
        ({"site": PLAN}, "where the script calls 'storyboard.plan'"),
        ({"capability": "video.generate"}, "where the script calls 'image.generate'"),
        ({"occurrence": 1}, "the host counts occurrence 0"),
        ({"id": 2}, "call id 2 after 0"),
        ({"id": 3}, "call id 3 after 0"),
    ],
)
def test_a_forged_call_is_a_breach_and_not_dispatched(forged: dict[str, Any], said: str) -> None:
    table = Table()
    assert_breach(table.call(**forged), table.launch, said)
    assert (table.launch.pending, table.launch.invoked) == ({}, set())


def test_an_id_may_not_come_twice() -> None:
    table = Table()
    assert isinstance(table.call((0,)), Dispatch)
    assert_breach(table.call((1,), id=1), table.launch, "call id 1 after 1")


def test_a_site_and_path_serve_one_call_at_a_time() -> None:
    table = Table()
    table.call((0,))
    assert_breach(table.call((0,), occurrence=1), table.launch, "their order would be chance")


def test_occurrences_are_counted_for_each_path_on_the_hosts_side() -> None:
    table = Table()
    for path in ((0,), (1,)):
        for occurrence in range(3):
            step = table.call(path, occurrence=occurrence)
            assert isinstance(step, Dispatch)
            assert step.request.identity == Identity(SHOT, path, occurrence)
            table.launch.on_settled(step.call, FailedCall("unavailable", "no"))
    assert_breach(table.call((0,), occurrence=2), table.launch, "the host counts occurrence 3")


def test_an_identity_is_invoked_once_per_launch_though_it_replays() -> None:
    table = Table()
    table.commit(1)
    assert isinstance(table.call((0,)), Serve)
    assert_breach(table.call((0,), occurrence=0), table.launch, "the host counts occurrence 1")


def test_no_more_calls_than_the_window_are_in_flight() -> None:
    table = Table()
    for number in range(WINDOW):
        assert isinstance(table.call((number,)), Dispatch)
    assert_breach(table.call((WINDOW,)), table.launch, f"more than {WINDOW} calls")


@pytest.mark.parametrize("last", [Done(nonce="n", value=1), Crash(nonce="n", kind="ValueError", text="x")])
def test_nothing_may_come_after_the_last_word(last: Done | Crash) -> None:
    table = Table()
    assert isinstance(table.launch.on_frame(last), Finished)
    assert not table.launch.accepts_work
    assert_breach(table.call(), table.launch, "after the guest's last word")


def test_the_last_word_may_not_come_while_a_call_is_in_flight() -> None:
    table = Table()
    table.call()
    assert_breach(table.launch.on_frame(Done(nonce="n", value=1)), table.launch, "with 1 calls in flight")


def test_a_guest_is_ready_once() -> None:
    table = Table()
    assert_breach(table.launch.on_frame(Ready(nonce="n")), table.launch, "Ready")


def test_a_payload_that_cannot_be_hashed_is_a_failed_call() -> None:
    table = Table()
    step = table.call(payload={"prompt": "x", "seed": float("nan")})
    assert isinstance(step, Fail)
    assert (step.kind, table.launch.pending) == ("invalid_request", {})
    assert "payload.seed" in step.text
    assert isinstance(table.call((0,), occurrence=1), Dispatch)
