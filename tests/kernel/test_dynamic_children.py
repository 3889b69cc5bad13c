"""Children that come and go while their supervisor runs."""

import anyio
import pytest

from kernel_support import Boom, Do, Puppet, beside, forever, give, hold, last, puppet, stage, throw
from tallystick.kernel import (
    ActorDiedError,
    ActorStoppedError,
    ChildSpecError,
    RestartBudget,
    StartChild,
    StartError,
    StopChild,
    SupervisorSpec,
)


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
