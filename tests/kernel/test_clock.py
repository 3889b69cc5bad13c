"""The manual clock moves time exactly as far as it is told; the system's clock is the system's."""

import ast
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_support import beside
from tallystick import kernel
from tallystick.kernel import ManualClock, SystemClock, cancel_after


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock, woken = ManualClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with beside() as start:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("middle", 2.0), ("after", 9.0)):
            start(sleeper(name, seconds))
        await clock.advance(3)
    assert woken == [("early", 1.0), ("middle", 2.0), ("late", 3.0)]


async def test_a_sleep_that_begins_on_the_way_ends_within_the_same_advance() -> None:
    clock, ticks = ManualClock(), list[float]()

    async def ticker() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    async with beside() as start:
        start(ticker())
        await clock.advance(35)
    assert ticks == [10, 20, 30]
    assert clock.monotonic() == 35


async def test_unix_time_and_monotonic_time_move_together() -> None:
    clock = ManualClock(start=1000.0)
    await clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (1002.5, 2.5)


async def test_callbacks_of_one_instant_run_in_the_order_they_were_set() -> None:
    clock, calls = ManualClock(), list[int]()
    for number in range(5):
        clock.call_later(1, partial(calls.append, number))
    await clock.advance(1)
    assert calls == [0, 1, 2, 3, 4]


async def test_a_cancelled_callback_never_runs() -> None:
    clock, calls = ManualClock(), list[str]()
    clock.call_later(1, lambda: calls.append("cancelled")).cancel()
    clock.call_later(1, lambda: calls.append("kept"))
    await clock.advance(5)
    assert calls == ["kept"]


async def test_a_cancelled_sleeper_leaves_nothing_behind() -> None:
    clock = ManualClock()
    with anyio.CancelScope() as scope:
        clock.call_later(1, scope.cancel)
        async with beside() as start:
            start(clock.advance(1))
            await clock.sleep(2)
    await clock.advance(5)
    assert scope.cancelled_caught


async def test_sleeping_for_no_time_lets_others_run_once() -> None:
    clock, order = ManualClock(), list[str]()

    async def other() -> None:
        order.append("other")

    async with beside() as start:
        start(other())
        await clock.sleep(0)
        order.append("sleeper")
    assert order == ["other", "sleeper"]


async def test_a_body_that_takes_too_long_is_cancelled() -> None:
    clock = ManualClock()
    async with beside() as start:
        start(clock.advance(4))
        with cancel_after(clock, 4) as scope:
            await anyio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.parametrize("seconds", [4.0, None])
async def test_a_body_that_ends_in_time_is_left_alone(seconds: float | None) -> None:
    clock = ManualClock()
    with cancel_after(clock, seconds) as scope:
        await clock.advance(3)
    await clock.advance(9)
    assert not scope.cancel_called


@given(st.lists(st.floats(0.001, 100), max_size=20), st.lists(st.floats(0, 30), max_size=10))
async def test_however_time_is_cut_every_callback_runs_at_its_own_instant(due: list[float], steps: list[float]) -> None:
    clock, ran = ManualClock(), list[tuple[float, float]]()

    def callback(seconds: float) -> None:
        ran.append((seconds, clock.monotonic()))

    for seconds in due:
        clock.call_later(seconds, partial(callback, seconds))
    for step in steps:
        await clock.advance(step)
    assert ran == [(seconds, seconds) for seconds in sorted(due) if seconds <= clock.monotonic()]


async def test_the_system_clock_goes_forward_and_calls_back() -> None:
    clock, called = SystemClock(), anyio.Event()
    before = clock.monotonic(), clock.now()
    clock.call_later(0, called.set)
    await called.wait()
    await clock.sleep(0)
    assert clock.monotonic() >= before[0]
    assert clock.now() > 1_700_000_000


def test_only_the_clock_imports_time() -> None:
    importers = set()
    for file in Path(kernel.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if "time" in names or (isinstance(node, ast.ImportFrom) and node.module == "time"):
                importers.add(file.name)
    assert importers == {"clock.py"}
