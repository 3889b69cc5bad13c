"""What a launch ended in: its last word, its guest's exit, the gravest stop."""

import pytest

from engine_launch import IDENTITY, STOP, Table
from tallystick.contract.runtime_rule import Stop
from tallystick.engine.launch import LOG_LIMIT
from tallystick.engine.steps import INTERRUPTED, Note
from tallystick.sandbox.frames import Crash, Done, Log
from tallystick.sandbox.protocol import Exit


def test_a_result_completes_the_run_and_names_what_was_skipped() -> None:
    table = Table()
    table.commit(1)
    table.launch.on_frame(Done(nonce="n", value={"a": 1}))
    ending = table.launch.ending()
    assert (ending.status, ending.result, ending.orphans, ending.not_reached) == (
        "completed",
        {"a": 1},
        (IDENTITY,),
        (),
    )


def test_orphans_fail_the_run_where_the_policy_says_so() -> None:
    table = Table(orphan_policy="stop")
    table.commit(1)
    table.launch.on_frame(Done(nonce="n", value=1))
    ending = table.launch.ending()
    assert ending.error is not None
    assert (ending.status, ending.error.code, ending.orphans, ending.result) == ("failed", "TS-R003", (IDENTITY,), 1)


@pytest.mark.parametrize(
    ("stop", "status"),
    [(STOP, "cancelled"), (Stop(INTERRUPTED, "m", "h"), "interrupted"), (Stop("TS-P007", "m", "h"), "stopped")],
)
def test_a_launch_that_is_stopped_reports_what_was_not_reached(stop: Stop, status: str) -> None:
    table = Table()
    table.commit(1)
    table.launch.halt(stop)
    ending = table.launch.ending()
    assert (ending.status, ending.orphans, ending.not_reached, ending.has_result) == (status, (), (IDENTITY,), False)


@pytest.mark.parametrize(
    ("crash", "code", "said"),
    [
        (
            Crash(nonce="n", kind="ValueError", text="bad", where=((3, "orchestrate"),)),
            "TS-R001",
            "ValueError at line 3 in orchestrate: bad",
        ),
        (
            Crash(nonce="n", kind="CapabilityError", text="unavailable: no", capability_error=1),
            "TS-R002",
            "unavailable: no",
        ),
    ],
)
def test_a_script_that_raises_fails_the_run_with_its_line(crash: Crash, code: str, said: str) -> None:
    table = Table()
    table.launch.on_frame(crash)
    error = table.launch.ending().error
    assert error is not None
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("last", "exit_", "code"),
    [
        (Done(nonce="n"), Exit(cause="exit", code=0), None),
        (Done(nonce="n"), Exit(cause="exit", code=1), "TS-R004"),
        (Done(nonce="n"), Exit(cause="killed"), "TS-R004"),
        (Done(nonce="n"), Exit(cause="memory", code=3), "TS-R005"),
        (Crash(nonce="n", kind="ValueError", text=""), Exit(cause="exit", code=1), None),
        (Crash(nonce="n", kind="MemoryError", text=""), Exit(cause="memory", code=3), "TS-R005"),
        (None, Exit(cause="exit", code=0), "TS-R004"),
        (None, Exit(cause="cpu", signal=24), "TS-R005"),
    ],
)
def test_how_a_guest_exits_is_judged_with_what_it_said(
    last: Done | Crash | None, exit_: Exit, code: str | None
) -> None:
    table = Table()
    if last is not None:
        table.launch.on_frame(last)
    table.launch.on_exit(exit_)
    assert (table.launch.stop.code if table.launch.stop else None) == code


def test_an_exit_does_not_cover_the_reason_that_the_guest_was_killed_for() -> None:
    table = Table()
    table.launch.halt(STOP)
    table.launch.on_exit(Exit(cause="killed"))
    assert table.launch.stop == STOP


def test_prints_are_kept_up_to_a_limit() -> None:
    table = Table()
    assert table.launch.on_frame(Log(nonce="n", text="one")) == Note("one")
    table.launch.on_frame(Log(nonce="n", text="two"))
    assert table.launch.logs == "one\ntwo"
    for _ in range(LOG_LIMIT // 10_000 + 2):
        table.launch.on_frame(Log(nonce="n", text="x" * 10_000))
    assert len(table.launch.logs) <= LOG_LIMIT
    assert table.launch.on_frame(Log(nonce="n", text="more")) is None
