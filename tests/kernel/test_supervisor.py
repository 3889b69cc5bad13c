"""How supervisors start, restart, give up and stop."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kernel_support import Act, Boom, Do, Puppet, beside, forever, give, hold, puppet, stage, throw
from tallystick.kernel import (
    ActorDiedError,
    ActorStoppedError,
    ChildSpec,
    ChildSpecError,
    RestartBudget,
    RestartBudgetError,
    StartChild,
    StartError,
    StopChild,
    SupervisorSpec,
)


def fails(times: int, error: type[Exception] = Boom) -> Act:
    """Fail that many times from the second call on: a puppet that starts well and restarts badly."""
    calls = 0

    async def begin(_: Puppet) -> None:
        nonlocal calls
        calls += 1
        if 1 < calls <= times + 1:
            raise error(f"call {calls}")

    return begin


def second_start(act: Callable[[], Any]) -> Act:
    """Do something in the second start only."""
    calls = 0

    async def begin(_: Puppet) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            await act()

    return begin


async def last(actor: Puppet) -> None:
    actor.stop()


# --- start and stop --------------------------------------------------------------------------------------------------


async def test_children_start_in_order_each_after_the_one_before_and_stop_in_reverse() -> None:
    log: list[str] = []

    async def slow(actor: Puppet) -> None:
        await anyio.lowlevel.checkpoint()
        log.append(f"{actor.name} is up")

    inner = SupervisorSpec(id="inner", children=(puppet("b", log, begin=slow), puppet("c", log)))
    async with stage(puppet("a", log, begin=slow), inner, puppet("d", log)):
        assert log == ["+a", "a is up", "+b", "b is up", "+c", "+d"]
        log.clear()
    assert log == ["-d", "-c", "-b", "-a"]


async def test_a_failing_start_stops_what_had_started_in_reverse_and_raises() -> None:
    log: list[str] = []

    async def fail(_: Puppet) -> None:
        raise Boom("no disk")

    with pytest.raises(StartError, match=r"root/c did not start: Boom: no disk") as caught:
        async with stage(puppet("a", log), puppet("b", log), puppet("c", log, begin=fail), puppet("d", log)):
            log.append("never reached")
    assert log == ["+a", "+b", "+c", "-b", "-a"]
    cause = caught.value.__cause__
    assert isinstance(cause, StartError)
    assert isinstance(cause.__cause__, Boom)


async def test_a_failing_factory_is_a_failing_start() -> None:
    def factory() -> Puppet:
        raise Boom

    child: ChildSpec[Do] = ChildSpec(id="a", factory=factory)
    with pytest.raises(StartError, match="root/a did not start"):
        async with stage(child):
            pass


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
async def test_a_child_that_crashes_while_its_siblings_start_fails_the_start(strategy: str) -> None:
    log: list[str] = []
    first = puppet("a", log)

    async def ask_the_first(_: Puppet) -> None:
        first.ref.tell(throw(Boom()))
        await anyio.sleep_forever()

    with pytest.raises(StartError, match="root/a did not start: it ended before its siblings had started"):
        async with stage(first, puppet("b", log, begin=ask_the_first), strategy=strategy):
            pass
    assert log in (["+a", "-a", "+b"], ["+a", "+b", "-a"])


async def test_a_temporary_child_may_end_while_its_siblings_start() -> None:
    first = puppet("a", restart="temporary")

    async def ask_the_first(_: Puppet) -> None:
        with pytest.raises(ActorDiedError):
            await first.ref.ask(throw(Boom()))
        await anyio.lowlevel.checkpoint()

    async with stage(first, puppet("b", begin=ask_the_first)) as on:
        await on.clock.advance(0)
        assert on.statuses == {"b": "running"}
        assert on.decisions == [("root/a", "remove")]


async def test_a_child_may_ask_an_earlier_one_while_it_starts() -> None:
    first, heard = puppet("a"), list[object]()

    async def ask(_: Puppet) -> None:
        heard.append(await first.ref.ask(give("hello")))

    async with stage(first, puppet("b", begin=ask)):
        assert heard == ["hello"]


# --- restarts --------------------------------------------------------------------------------------------------------


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

    second = puppet("b", log, begin=second_start(crash_the_first))
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

    children = puppet("a", log), puppet("b", log, begin=second_start(never), shutdown=1), puppet("c", log)
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


# --- giving up -------------------------------------------------------------------------------------------------------


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

    children = puppet("a", log), puppet("b", log, begin=second_start(slow)), puppet("c", log)
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


# --- dynamic children ------------------------------------------------------------------------------------------------


async def test_a_dynamic_child_is_started_used_stopped_and_forgotten() -> None:
    log: list[str] = []
    async with stage(puppet("fixed", log)) as on:
        ref = await on.root.ref.ask(StartChild(puppet("run-1", log)))
        assert await ref.ask(give("at work")) == "at work"
        assert on.statuses == {"fixed": "running", "run-1": "running"}
        assert await on.root.ref.ask(StopChild("run-1"))
        assert on.statuses == {"fixed": "running"}
        with pytest.raises(ActorStoppedError):
            await ref.ask(give(1))
        assert not await on.root.ref.ask(StopChild("run-1"))
        await on.root.ref.ask(StartChild(puppet("run-1", log)))
        log.clear()
    assert log == ["-run-1", "-fixed"]


async def test_a_dynamic_child_that_ends_is_forgotten() -> None:
    child = puppet("run-1", restart="temporary")
    async with stage() as on:
        await on.root.ref.ask(StartChild(child))
        await child.ref.ask(Do(last))
        await on.clock.advance(0)
        assert on.statuses == {}


async def test_a_dynamic_child_that_does_not_start_is_forgotten_and_its_starter_told() -> None:
    async def fail(_: Puppet) -> None:
        raise Boom

    async with stage() as on:
        with pytest.raises(StartError, match="root/run-1 did not start: Boom"):
            await on.root.ref.ask(StartChild(puppet("run-1", begin=fail)))
        assert (on.statuses, on.reports) == ({}, [])


async def test_starting_one_child_does_not_hold_up_another() -> None:
    release = anyio.Event()

    async with stage() as on, beside() as start:
        slow = start(on.root.ref.ask(StartChild(puppet("slow", begin=lambda _: release.wait()))))
        await on.root.ref.ask(StartChild(puppet("quick")))
        assert on.statuses == {"slow": "starting", "quick": "running"}
        release.set()
        await on.clock.advance(0)
        assert slow.done()
        assert on.statuses == {"slow": "running", "quick": "running"}


async def test_stopping_one_child_does_not_hold_up_another() -> None:
    busy, release = puppet("busy"), anyio.Event()
    async with stage() as on, beside() as start:
        await on.root.ref.ask(StartChild(busy))
        busy.ref.tell(hold(release))
        await on.clock.advance(0)
        stopped = start(on.root.ref.ask(StopChild("busy")))
        again = start(on.root.ref.ask(StopChild("busy")))
        await on.root.ref.ask(StartChild(puppet("quick")))
        assert on.statuses == {"busy": "stopping", "quick": "running"}
        release.set()
        await on.clock.advance(0)
        assert (stopped.value, again.value) == (True, True)


async def test_a_child_that_is_stopped_while_it_starts_tells_its_starter() -> None:
    async with stage() as on, beside() as start:
        starting = start(on.root.ref.ask(StartChild(puppet("slow", begin=lambda _: anyio.sleep_forever(), shutdown=1))))
        await on.clock.advance(0)
        stopping = start(on.root.ref.ask(StopChild("slow")))
        await on.clock.advance(1)
        assert isinstance(starting.error, StartError)
        assert "it was stopped first" in str(starting.error)
        assert stopping.value is True


async def test_a_child_that_comes_up_after_its_stop_goes_down_again() -> None:
    up, down = anyio.Event(), anyio.Event()
    async with stage() as on, beside() as start:
        slow = puppet("slow", begin=lambda _: up.wait(), end=lambda _: down.wait())
        starting = start(on.root.ref.ask(StartChild(slow)))
        await on.clock.advance(0)
        stopping = start(on.root.ref.ask(StopChild("slow")))
        await on.clock.advance(0)
        up.set()
        await on.clock.advance(0)
        assert (starting.value, on.statuses) == (slow.ref, {"slow": "stopping"})
        down.set()
        await on.clock.advance(0)
        assert (stopping.value, on.statuses) == (True, {})


async def test_a_child_stopped_during_its_back_off_is_not_restarted() -> None:
    log: list[str] = []
    child = puppet("run-1", log=log)
    async with stage() as on, beside() as start:
        await on.root.ref.ask(StartChild(child))
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        asked = start(child.ref.ask(give(1)))
        await on.clock.advance(0)
        assert await on.root.ref.ask(StopChild("run-1"))
        await on.clock.advance(1)
        assert isinstance(asked.error, ActorStoppedError)
        assert log == ["+run-1", "-run-1"]


async def test_dynamic_children_have_no_order_and_stop_at_once() -> None:
    log: list[str] = []
    runs = [puppet(f"run-{number}", log, shutdown=4) for number in range(3)]
    async with beside() as start, stage(puppet("fixed", log)) as on:
        for run in runs:
            await on.root.ref.ask(StartChild(run))
            run.ref.tell(forever())
        await on.clock.advance(0)
        log.clear()
        start(on.clock.advance(4))
    assert on.clock.monotonic() == 4
    assert sorted(log[:3]) == ["-run-0", "-run-1", "-run-2"]
    assert log[3:] == ["-fixed"]
    assert len(on.reports) == 3


async def test_an_id_is_taken_until_its_child_is_gone() -> None:
    async with stage(puppet("taken")) as on:
        with pytest.raises(ChildSpecError, match="root has a child taken already"):
            await on.root.ref.ask(StartChild(puppet("taken")))


async def test_a_specification_in_use_is_refused() -> None:
    fixed = puppet("fixed")
    inner = SupervisorSpec(id="inner")
    async with stage(fixed, inner) as on:
        with pytest.raises(ChildSpecError, match="fixed runs already"):
            await inner.ref.ask(StartChild(fixed))
        assert on.statuses == {"fixed": "running", "inner": "running"}


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_only_one_for_one_takes_dynamic_children(strategy: str) -> None:
    async with stage(strategy=strategy) as on:
        with pytest.raises(ChildSpecError, match=f"root is {strategy}: only one_for_one"):
            await on.root.ref.ask(StartChild(puppet("run-1")))


async def test_dynamic_children_are_gone_when_their_supervisor_is_restarted() -> None:
    fixed, run = puppet("fixed"), puppet("run-1")
    inner = SupervisorSpec(id="inner", children=(fixed,), budget=RestartBudget(intensity=0))
    async with stage(inner) as on:
        await inner.ref.ask(StartChild(run))
        fixed.ref.tell(throw(Boom()))
        await on.clock.advance(1)
        assert await fixed.ref.ask(give("back")) == "back"
        with pytest.raises(ActorStoppedError):
            await run.ref.ask(give(1))
        assert await (await inner.ref.ask(StartChild(run))).ask(give("anew")) == "anew"


async def test_a_message_that_is_none_of_its_own_is_a_fault() -> None:
    inner = SupervisorSpec(id="inner", children=(puppet("worker"),))
    async with stage(inner) as on:
        with pytest.raises(ActorDiedError):
            await inner.ref.ask(give(1))
        await on.clock.advance(1)
        assert on.decisions == [("root/inner", "restart")]
        assert on.statuses == {"inner": "running"}


# --- specifications --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: puppet(""), "a child's id is a name without a slash, not ''"),
        (lambda: puppet("a/b"), "a child's id is a name without a slash, not 'a/b'"),
        (lambda: puppet(restart="always"), "restart is permanent, transient or temporary, not 'always'"),
        (lambda: puppet(when_full="drop"), "when_full is reject or wait, not 'drop'"),
        (lambda: puppet(mailbox=0), "a mailbox holds at least 1 message"),
        (lambda: puppet(shutdown=-1), "a shutdown time is not negative"),
        (lambda: SupervisorSpec(id="s", strategy="all"), "s: no such strategy: 'all'"),  # type: ignore[arg-type]  # what it refuses
        (lambda: SupervisorSpec(id="s", children=(puppet("a"), puppet("b"), puppet("a"))), "s: .* same id: a"),
        (lambda: RestartBudget(intensity=-1), "an intensity from 0 to 100, not -1"),
        (lambda: RestartBudget(period=0), "a positive period"),
    ],
)
def test_a_specification_that_makes_no_sense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ChildSpecError, match=message):
        make()
