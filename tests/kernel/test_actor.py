"""How an actor works beside its mailbox, dies, starts and stops."""

from typing import Any

import anyio
import pytest

from kernel_support import (
    Boom,
    Do,
    Puppet,
    Wrong,
    beside,
    boom,
    forever,
    give,
    hold,
    puppet,
    run_task,
    settle_later,
    stage,
    throw,
    wrong,
)
from tallystick.kernel import (
    Actor,
    ActorDiedError,
    ActorStoppedError,
    ChildSpec,
    Deferred,
    Request,
    ShutdownTimeError,
    StartError,
    StrayCancellationError,
)

# --- death ------------------------------------------------------------------------------------------------------------


async def test_a_crash_answers_everybody_who_waits() -> None:
    child, release = puppet(mailbox=2, when_full="wait"), anyio.Event()

    async def crash(_: Puppet) -> None:
        await release.wait()
        raise Boom("the disk is gone")

    async with stage(child) as on, beside() as start:
        deferred = start(child.ref.ask(settle_later(Deferred())))
        await on.clock.advance(0)
        in_hand = start(child.ref.ask(Do(crash)))
        await on.clock.advance(0)
        child.ref.tell(give("dropped"))
        queued = start(child.ref.ask(give(1)))
        waiting = start(child.ref.ask(give(1)))
        sending = start(child.ref.send(give(1)))
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(0)
        for outcome in (deferred, in_hand, queued, waiting, sending):
            assert isinstance(outcome.error, ActorDiedError)
            assert isinstance(outcome.error.__cause__, Boom)
        assert str(in_hand.error).startswith("root/puppet died (Boom('the disk is gone'));")


async def test_an_expected_error_that_nobody_would_hear_is_a_crash() -> None:
    child = puppet()
    async with stage(child) as on:
        child.ref.tell(throw(Wrong()))
        await on.clock.advance(0)
        assert on.decisions == [("root/puppet", "restart")]
        assert isinstance(on.reports[0].error, Wrong)


async def test_a_message_left_during_the_back_off_is_handled_after_the_restart() -> None:
    child, log = puppet(), list[str]()
    async with stage(child) as on, beside() as start:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        assert on.statuses == {"puppet": "restarting"}
        asked = start(child.ref.ask(give("from the next life")))
        await on.clock.advance(0)
        assert not asked.done()
        await on.clock.advance(0.1)
        assert asked.value == "from the next life"
    assert log == []


@pytest.mark.parametrize("when_full", ["reject", "wait"])
async def test_while_a_dead_actor_is_cleared_away_messages_are_refused(when_full: str) -> None:
    release = anyio.Event()

    async def slow(_: Puppet) -> None:
        await release.wait()

    child = puppet(end=slow, when_full=when_full)
    async with stage(child) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        with pytest.raises(ActorDiedError):
            child.ref.tell(give(1))
        with pytest.raises(ActorDiedError):
            await child.ref.ask(give(1))
        release.set()


async def test_on_stop_runs_once_after_a_crash_when_the_tasks_are_gone() -> None:
    log: list[str] = []

    async def task() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            log.append("task cancelled")

    child = puppet(log=log, restart="temporary")
    async with stage(child):
        await child.ref.ask(run_task(task))
        await anyio.lowlevel.checkpoint()
        with pytest.raises(ActorDiedError):
            await child.ref.ask(throw(Boom()))
    assert log == ["+puppet", "task cancelled", "-puppet"]


async def test_on_stop_is_not_cut_off_when_a_task_fails_just_as_a_message_is_done() -> None:
    log: list[str] = []
    release = anyio.Event()

    async def fail() -> None:
        await release.wait()
        raise Boom

    async def end(_: Puppet) -> None:
        await anyio.lowlevel.checkpoint()
        log.append("released")

    child = puppet(log=log, end=end, restart="temporary")
    async with stage(child) as on, beside() as start:
        await child.ref.ask(run_task(fail))
        await on.clock.advance(0)
        asked = start(child.ref.ask(hold(release)))
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(0)
        assert isinstance(asked.error, ActorDiedError)
        assert log == ["+puppet", "-puppet", "released"]


async def test_what_fails_after_a_crash_is_noted_on_it() -> None:
    async def fail(_: Puppet) -> None:
        raise ValueError("and the lock is stuck")

    child = puppet(end=fail, restart="temporary")
    async with stage(child) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        error = on.reports[0].error
        assert isinstance(error, Boom)
        assert error.__notes__ == ["root/puppet then failed with ValueError('and the lock is stuck') too"]


async def test_a_clean_up_that_takes_too_long_is_cut_off() -> None:
    ends = [anyio.Event(), anyio.Event()]
    ends[1].set()

    async def slow_at_first(_: Puppet) -> None:
        await ends.pop(0).wait()

    child = puppet(end=slow_at_first, shutdown=3.0)
    async with stage(child) as on:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(2.9)
        assert on.reports == []
        await on.clock.advance(0.1)
        error = on.reports[0].error
        assert isinstance(error, Boom)
        assert "did not stop within 3 s" in error.__notes__[0]
        await on.clock.advance(0.1)
        assert await child.ref.ask(give("again")) == "again"


async def test_a_cancellation_that_nobody_asked_for_is_a_crash() -> None:
    child = puppet()

    async def stray(_: Puppet) -> None:
        raise anyio.get_cancelled_exc_class()

    async with stage(child) as on:
        with pytest.raises(ActorDiedError, match="was cancelled, but not by its supervisor") as caught:
            await child.ref.ask(Do(stray))
        assert isinstance(caught.value.__cause__, StrayCancellationError)
        await on.clock.advance(1)
        assert on.statuses == {"puppet": "running"}


async def test_a_stray_cancellation_in_a_task_is_a_crash_too() -> None:
    child = puppet()

    async def stray() -> None:
        raise anyio.get_cancelled_exc_class()

    async with stage(child):
        with pytest.raises(ActorDiedError):
            await child.ref.ask(run_task(stray, reply=True))


# --- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [boom, wrong])
async def test_a_failing_task_crashes_its_actor_even_in_the_middle_of_a_message(task: Any) -> None:
    child, release = puppet(), anyio.Event()

    async def fail() -> None:
        await release.wait()
        await task()

    async with stage(child) as on, beside() as start:
        await child.ref.ask(run_task(fail))
        asked = start(child.ref.ask(forever()))
        await on.clock.advance(0)
        release.set()
        await on.clock.advance(0)
        assert isinstance(asked.error, ActorDiedError)
        assert on.decisions == [("root/puppet", "restart")]


async def test_a_task_may_change_its_actors_state_and_end() -> None:
    log: list[str] = []
    child = puppet(log=log)

    async def write(actor: Puppet) -> None:
        async def task(word: str) -> None:
            actor.log.append(word)

        actor.spawn(task, "written")

    async with stage(child) as on:
        await child.ref.ask(Do(write))
        await on.clock.advance(0)
        assert (log, on.reports) == (["+puppet", "written"], [])


async def test_an_actor_may_let_its_calls_settle_while_it_stops() -> None:
    settle = anyio.Event()

    async def call() -> str:
        await settle.wait()
        return "settled"

    log: list[str] = []
    child = puppet(log=log, end=lambda actor: actor.drain())
    async with beside() as start:
        async with stage(child) as on:
            asked = [start(child.ref.ask(run_task(call, reply=True))) for _ in range(2)]
            await on.clock.advance(0)
            await child.ref.ask(give(None))
            on.clock.call_later(4, settle.set)
            start(on.clock.advance(4))
        await on.clock.advance(0)
        assert [outcome.value for outcome in asked] == ["settled", "settled"]
        assert (log, on.reports) == (["+puppet", "-puppet"], [])


async def test_a_drain_waits_for_tasks_begun_after_others_had_ended() -> None:
    release = anyio.Event()

    async def twice(actor: Puppet) -> None:
        async def task(log: list[str], word: str) -> None:
            await release.wait()
            log.append(word)

        for word in ("one", "two"):
            actor.spawn(task, actor.log, word)
            await actor.drain()
        await actor.drain()

    log: list[str] = []
    child = puppet(log=log)
    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(Do(twice)))
        for _ in ("one", "two"):
            await on.clock.advance(0)
            assert not asked.done()
            release.set()
            release = anyio.Event()
        await on.clock.advance(0)
        assert asked.done()
    assert log == ["+puppet", "one", "two", "-puppet"]


async def test_tasks_that_are_not_drained_are_cancelled_by_the_stop() -> None:
    child = puppet()
    async with beside() as start:
        async with stage(child) as on:
            asked = start(child.ref.ask(run_task(anyio.sleep_forever, reply=True)))
            await on.clock.advance(0)
        await on.clock.advance(0)
        assert isinstance(asked.error, ActorStoppedError)
        assert on.reports == []


# --- stopping ---------------------------------------------------------------------------------------------------------


async def test_a_stop_finishes_the_message_in_hand_and_refuses_the_rest() -> None:
    child, release = puppet(), anyio.Event()
    async with beside() as start:
        async with stage(child) as on:
            in_hand = start(child.ref.ask(hold(release, "finished")))
            await on.clock.advance(0)
            queued = start(child.ref.ask(give(1)))
            await on.clock.advance(0)
            on.clock.call_later(4, release.set)
            start(on.clock.advance(4))
        await on.clock.advance(0)
        assert in_hand.value == "finished"
        assert isinstance(queued.error, ActorStoppedError)


async def test_an_actor_that_does_not_stop_in_time_is_cancelled() -> None:
    log: list[str] = []

    async def end(_: Puppet) -> None:
        log.append("released at once")
        await anyio.lowlevel.checkpoint()
        log.append("never reached")

    child = puppet(log=log, end=end, shutdown=2.5)
    async with beside() as start:
        async with stage(child) as on:
            asked = start(child.ref.ask(forever()))
            await on.clock.advance(0)
            start(on.clock.advance(2.5))
        await on.clock.advance(0)
        assert isinstance(asked.error, ActorStoppedError)
        assert [str(report.error) for report in on.reports] == [
            "root/puppet did not stop within 2.5 s and was cancelled"
        ]
    assert log == ["+puppet", "-puppet", "released at once"]


async def test_a_shutdown_time_of_none_waits_for_as_long_as_it_takes() -> None:
    child, release = puppet(shutdown=None), anyio.Event()
    async with beside() as start:
        async with stage(child) as on:
            asked = start(child.ref.ask(hold(release, "finished")))
            await on.clock.advance(0)
            on.clock.call_later(1e6, release.set)
            start(on.clock.advance(1e6))
        await on.clock.advance(0)
        assert (asked.value, on.reports) == ("finished", [])


async def test_a_failing_on_stop_is_reported_and_stops_nobody_else() -> None:
    async def fail(_: Puppet) -> None:
        raise Boom

    log: list[str] = []
    async with stage(puppet("a", log), puppet("b", log, end=fail)) as on:
        pass
    assert on.decisions == [("root/b", "stop")]
    assert log == ["+a", "+b", "-b", "-a"]


async def test_an_actor_may_end_itself() -> None:
    async def last(actor: Puppet) -> str:
        actor.stop()
        return "last words"

    log: list[str] = []
    child = puppet(log=log, restart="transient")
    async with stage(child) as on:
        assert await child.ref.ask(Do(last)) == "last words"
        await on.clock.advance(0)
        with pytest.raises(ActorStoppedError):
            await child.ref.ask(give(1))
        assert (log, on.statuses, on.reports) == (["+puppet", "-puppet"], {}, [])


async def test_an_actor_that_ends_itself_has_its_shutdown_time_too() -> None:
    async def last(actor: Puppet) -> None:
        actor.stop()

    child = puppet(end=lambda _: anyio.sleep_forever(), restart="transient", shutdown=2)
    async with stage(child) as on:
        await child.ref.ask(Do(last))
        await on.clock.advance(2)
        assert isinstance(on.reports[0].error, ShutdownTimeError)


# --- starting ---------------------------------------------------------------------------------------------------------


async def test_a_task_that_fails_before_on_start_returned_fails_the_start() -> None:
    async def begin(actor: Puppet) -> None:
        actor.spawn(boom)
        await anyio.sleep_forever()

    with pytest.raises(StartError, match="root did not start: StartError: root/puppet did not start: Boom"):
        async with stage(puppet(begin=begin)):
            pass


async def test_an_actor_knows_its_ref_and_its_clock() -> None:
    async def look(actor: Puppet) -> object:
        return actor.ref, actor.clock

    child = puppet()
    async with stage(child) as on:
        assert await child.ref.ask(Do(look)) == (child.ref, on.clock)


async def test_an_actor_without_handle_dies_of_its_first_message() -> None:
    class Ping(Request[None], frozen=True):
        pass

    child: ChildSpec[Ping] = ChildSpec(id="bare", factory=Actor[Ping], restart="temporary")
    async with stage(child):
        with pytest.raises(ActorDiedError, match="NotImplementedError"):
            await child.ref.ask(Ping())
