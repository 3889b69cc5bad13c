"""Whom a crash restarts, when, and what happens when that does not help."""

import anyio
import pytest

from kernel_support import Boom, Do, Puppet, beside, fails, forever, give, last, puppet, second_time, stage, throw
from tallystick.kernel import (
    ActorDiedError,
    ActorStoppedError,
    RestartBudget,
    RestartBudgetError,
    StartChild,
    StopChild,
    SupervisorSpec,
)


async def test_a_restart_is_a_new_actor_under_the_same_ref() -> None:
    child = puppet()

    async def identity(actor: Puppet) -> object:
        return actor

    async with stage(child) as on:
        before = await child.ref.ask(Do(identity))
        child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        after = await child.ref.ask(Do(identity))
        assert before is not after
        assert on.tree.tree().children[0].restarts == 1


@pytest.mark.parametrize(
    ("restart", "after_a_crash", "after_an_end"),
    [
        ("permanent", {"puppet": "running"}, {"puppet": "running"}),
        ("transient", {"puppet": "running"}, {}),
        ("temporary", {}, {}),
    ],
)
async def test_the_restart_policy_decides_who_comes_back(
    restart: str, after_a_crash: dict[str, str], after_an_end: dict[str, str]
) -> None:
    for act, expected in ((throw(Boom()), after_a_crash), (Do(last), after_an_end)):
        child = puppet(restart=restart)
        async with stage(child) as on:
            child.ref.tell(act)
            await on.clock.advance(1)
            assert on.statuses == expected
            if not expected:
                with pytest.raises(ActorStoppedError):
                    await child.ref.ask(give(1))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("one_for_one", ["-b", "+b"]),
        ("one_for_all", ["-b", "-d", "-c", "-a", "+a", "+b", "+c"]),
        ("rest_for_one", ["-b", "-d", "-c", "+b", "+c"]),
    ],
)
async def test_the_strategy_decides_whom_a_crash_takes_along(strategy: str, expected: list[str]) -> None:
    log: list[str] = []
    children = [puppet(name, log) for name in "abc"] + [puppet("d", log, restart="temporary")]
    async with stage(*children, strategy=strategy) as on:
        log.clear()
        children[1].ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert log == expected
        assert [await child.ref.ask(give(child.id)) for child in children[:3]] == ["a", "b", "c"]


async def test_restarts_wait_longer_each_time_within_the_period() -> None:
    log: list[str] = []
    child = puppet(log=log)
    budget = RestartBudget(intensity=4, period=100, backoff=1, backoff_limit=4)
    async with stage(child, budget=budget) as on:
        for wait in (1, 2, 4, 4):
            log.clear()
            child.ref.tell(throw(Boom()))
            await on.clock.advance(wait - 0.01)
            assert log == ["-puppet"]
            await on.clock.advance(0.01)
            assert log == ["-puppet", "+puppet"]
        assert [report.delay for report in on.reports] == [1, 2, 4, 4]
        await on.clock.advance(100)
        child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert on.statuses == {"puppet": "running"}


async def test_a_restart_that_fails_counts_against_the_budget_too() -> None:
    child = puppet(begin=fails(2))
    async with stage(child) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert await child.ref.ask(give("third time")) == "third time"
        assert [report.delay for report in on.reports] == pytest.approx([0.1, 0.2, 0.4])


async def test_who_waits_across_a_failed_restart_is_answered() -> None:
    child = puppet(begin=fails(1))
    async with stage(child) as on, beside() as start:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        asked = start(child.ref.ask(give(1)))
        await on.clock.advance(0.1)
        assert isinstance(asked.error, ActorDiedError)


async def test_in_one_for_all_a_crash_during_the_recovery_begins_it_anew() -> None:
    log: list[str] = []
    first = puppet("a", log)

    async def crash_the_first() -> None:
        first.ref.tell(throw(Boom("again")))
        await anyio.sleep_forever()

    second = puppet("b", log, begin=second_time(crash_the_first))
    async with stage(first, second, strategy="one_for_all") as on:
        log.clear()
        first.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert log == ["-a", "-b", "+a", "+b", "-a", "+a", "+b"]
        assert await second.ref.ask(give("up")) == "up"
        assert [report.decision for report in on.reports] == ["restart", "restart"]


async def test_in_rest_for_one_a_failed_restart_begins_anew_from_there() -> None:
    log: list[str] = []
    children = puppet("a", log), puppet("b", log), puppet("c", log, begin=fails(1)), puppet("d", log)
    async with stage(*children, strategy="rest_for_one") as on:
        log.clear()
        children[1].ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert log == ["-b", "-d", "-c", "+b", "+c", "+c", "+d"]


async def test_in_rest_for_one_two_crashes_at_once_restart_from_the_first() -> None:
    children = [puppet(name) for name in "abc"]
    async with stage(*children, strategy="rest_for_one") as on:
        for child in children[:2]:
            child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert on.statuses == {"a": "running", "b": "running", "c": "running"}


async def test_in_rest_for_one_a_child_that_is_leaving_takes_nobody_along() -> None:
    log: list[str] = []
    release = anyio.Event()
    children = puppet("a", log, end=lambda _: release.wait()), puppet("b", log), puppet("c", log)
    async with stage(*children, strategy="rest_for_one") as on, beside() as start:
        start(on.root.ref.ask(StopChild("a")))
        await on.clock.advance(0)
        log.clear()
        children[2].ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert log == ["-c", "+c"]
        release.set()
        await on.clock.advance(0)
        assert on.statuses == {"b": "running", "c": "running"}


async def test_a_child_stopped_during_a_recovery_stays_away() -> None:
    log: list[str] = []
    children = [puppet(name, log) for name in "abc"]
    async with stage(*children, strategy="one_for_all") as on:
        log.clear()
        children[0].ref.tell(throw(Boom()))
        await on.clock.advance(0)
        assert await on.root.ref.ask(StopChild("b"))
        await on.clock.advance(1)
        assert log == ["-a", "-c", "-b", "+a", "+c"]


async def test_a_child_stopped_while_a_recovery_stops_it_stays_away() -> None:
    log: list[str] = []
    release = anyio.Event()
    children = puppet("a", log), puppet("b", log, end=lambda _: release.wait())
    async with stage(*children, strategy="one_for_all") as on, beside() as start:
        log.clear()
        children[0].ref.tell(throw(Boom()))
        await on.clock.advance(0)
        stopped = start(on.root.ref.ask(StopChild("b")))
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(1)
        assert stopped.value is True
        assert log == ["-a", "-b", "+a"]
        with pytest.raises(ActorStoppedError):
            await children[1].ref.ask(give(1))


async def test_a_child_stopped_in_the_middle_of_its_restart_does_not_hold_up_its_siblings() -> None:
    log: list[str] = []

    async def never() -> None:
        await anyio.sleep_forever()

    children = puppet("a", log), puppet("b", log, begin=second_time(never), shutdown=1), puppet("c", log)
    async with stage(*children, strategy="one_for_all") as on, beside() as start:
        children[0].ref.tell(throw(Boom()))
        await on.clock.advance(0.1)
        assert on.statuses == {"a": "running", "b": "starting", "c": "restarting"}
        log.clear()
        stopped = start(on.root.ref.ask(StopChild("b")))
        await on.clock.advance(1)
        assert stopped.value is True
        assert log == ["+c"]
        assert on.statuses == {"a": "running", "c": "running"}


async def test_a_crash_in_the_moment_a_sibling_fails_to_restart_leaves_nobody_out() -> None:
    ready, release = anyio.Event(), anyio.Event()

    async def end_slowly() -> None:
        await release.wait()
        await anyio.lowlevel.checkpoint()

    async def fail_late() -> None:
        await ready.wait()
        await release.wait()
        raise Boom

    first, third = puppet("a", end=second_time(end_slowly)), puppet("c", begin=second_time(fail_late))
    async with stage(first, puppet("b"), third, puppet("d"), strategy="one_for_all") as on:
        first.ref.tell(throw(Boom()))
        await on.clock.advance(0.1)
        first.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        ready.set()
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(1)
        assert on.statuses == {"a": "running", "b": "running", "c": "running", "d": "running"}
        assert on.decisions == [("root/a", "restart"), ("root/a", "restart")]


async def test_a_crash_in_the_moment_a_recovery_begins_leaves_nobody_out() -> None:
    children = [puppet(name) for name in "abcd"]
    async with stage(*children, strategy="rest_for_one") as on, beside() as start:
        start(children[0].ref.ask(throw(Boom())))
        start(on.root.ref.ask(StopChild("a")))
        start(children[3].ref.ask(throw(Boom())))
        await on.clock.advance(1)
        assert on.statuses == {"b": "running", "c": "running", "d": "running"}


# --- giving up ---------------------------------------------------------------------------------------------------------


async def test_when_the_budget_is_spent_the_tree_is_stopped_in_order_and_fails() -> None:
    log: list[str] = []
    child = puppet("b", log)

    async def crash_twice() -> None:
        for _ in range(2):
            child.ref.tell(throw(Boom()))
            await on.clock.advance(1)
        await anyio.sleep_forever()

    message = r"root gave up on b: its budget of 1 restarts in 5 s is spent"
    with pytest.raises(RestartBudgetError, match=message) as e:
        async with stage(puppet("a", log), child, puppet("c", log), budget=RestartBudget(intensity=1)) as on:
            await crash_twice()
    assert isinstance(e.value.__cause__, Boom)
    assert log == ["+a", "+b", "+c", "-b", "+b", "-b", "-c", "-a"]
    assert on.decisions == [("root/b", "restart"), ("root/b", "escalate")]
    with pytest.raises(ActorStoppedError):
        await child.ref.ask(give(1))


async def test_a_supervisor_that_gives_up_is_restarted_by_its_own() -> None:
    log: list[str] = []
    child = puppet("worker", log)
    inner = SupervisorSpec(id="inner", children=(child,), budget=RestartBudget(intensity=0))
    async with stage(puppet("other", log), inner) as on:
        log.clear()
        child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert on.decisions == [("root/inner/worker", "escalate"), ("root/inner", "restart")]
        assert isinstance(on.reports[1].error, RestartBudgetError)
        assert log == ["-worker", "+worker"]
        assert await child.ref.ask(give("the ref still holds")) == "the ref still holds"


async def test_a_supervisor_that_gives_up_takes_no_more_children() -> None:
    child, release = puppet("worker"), anyio.Event()
    slow = puppet("slow", end=lambda _: release.wait())
    inner = SupervisorSpec(id="inner", children=(slow, child), budget=RestartBudget(intensity=0))
    async with stage(inner) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        with pytest.raises(ActorStoppedError, match="root/inner is not running"):
            await inner.ref.ask(StartChild(puppet("late")))
        release.set()


async def test_a_supervisor_that_gives_up_lets_another_crash_pass() -> None:
    child, release = puppet("worker"), anyio.Event()
    slow = puppet("slow", end=lambda _: release.wait())
    other = puppet("other")
    inner = SupervisorSpec(id="inner", children=(other, slow, child), budget=RestartBudget(intensity=0))
    async with stage(inner) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        other.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(1)
        assert on.decisions == [
            ("root/inner/worker", "escalate"),
            ("root/inner/other", "stop"),
            ("root/inner", "restart"),
        ]


async def test_of_two_crashes_at_once_one_spends_the_budget() -> None:
    children = puppet("a"), puppet("b")
    inner = SupervisorSpec(id="inner", children=children, budget=RestartBudget(intensity=0))
    async with stage(inner) as on:
        for child in children:
            child.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert on.decisions == [("root/inner/a", "escalate"), ("root/inner/b", "stop"), ("root/inner", "restart")]


async def test_who_waits_for_a_restart_hears_when_it_is_given_up() -> None:
    first, second = puppet("a"), puppet("b")
    inner = SupervisorSpec(id="inner", children=(first, second), budget=RestartBudget(intensity=1, backoff=4))
    async with stage(inner) as on, beside() as start:
        first.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        asked = start(first.ref.ask(give(1)))
        await on.clock.advance(0)
        second.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        assert isinstance(asked.error, ActorStoppedError)


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_stop_in_the_middle_of_a_recovery_restarts_nobody(strategy: str) -> None:
    log: list[str] = []
    release = anyio.Event()
    children = puppet("a", log), puppet("b", log), puppet("c", log, end=lambda _: release.wait())
    async with beside() as start:
        async with stage(*children, strategy=strategy) as on:
            children[0].ref.tell(throw(Boom()))
            await on.clock.advance(0)
            log.clear()
            waiting = start(children[0].ref.ask(give(1)))
            await on.clock.advance(0)
            on.clock.call_later(0, release.set)
            start(on.clock.advance(0))
        await on.clock.advance(0)
        assert isinstance(waiting.error, ActorStoppedError)
        assert log == ["-b"]
    for child in children:
        with pytest.raises(ActorStoppedError):
            await child.ref.ask(give(1))


async def test_a_stop_while_a_child_is_being_restarted_waits_for_it_and_starts_no_more() -> None:
    log: list[str] = []
    release = anyio.Event()

    async def slow() -> None:
        await release.wait()

    children = puppet("a", log), puppet("b", log, begin=second_time(slow)), puppet("c", log)
    async with beside() as start, stage(*children, strategy="one_for_all") as on:
        children[0].ref.tell(throw(Boom()))
        await on.clock.advance(0.1)
        log.clear()
        on.clock.call_later(1, release.set)
        start(on.clock.advance(1))
    assert log == ["-b", "-a"]


async def test_a_supervisor_that_is_cut_off_while_it_stops_leaves_nobody_waiting() -> None:
    children = puppet("a"), puppet("b")
    inner = SupervisorSpec(id="inner", children=children, shutdown=1, budget=RestartBudget(backoff=30))
    async with stage(inner) as on, beside() as start:
        stuck = start(children[1].ref.ask(forever()))
        children[0].ref.tell(throw(Boom()))
        await on.clock.advance(0)
        waiting = start(children[0].ref.ask(give(1)))
        await on.clock.advance(0)
        stopped = start(on.root.ref.ask(StopChild("inner")))
        await on.clock.advance(1)
        assert stopped.value is True
        assert isinstance(stuck.error, ActorStoppedError)
        assert isinstance(waiting.error, ActorStoppedError)
        assert on.decisions == [("root/inner/a", "restart"), ("root/inner", "stop")]
