"""Tell, send and ask: order, room, deadlines, and what a caller hears when there is nobody."""

import gc
import weakref
from typing import Any

import anyio
import pytest

from kernel_support import Do, Outcome, Puppet, Wrong, beside, forever, give, hold, note, puppet, stage, throw
from tallystick.kernel import (
    ActorStoppedError,
    ChildSpecError,
    DeadlineError,
    MailboxFullError,
    ManualClock,
    Ref,
    SupervisorSpec,
    open_tree,
)


async def test_messages_are_handled_one_at_a_time_in_the_order_they_came() -> None:
    child, log = puppet(), list[str]()

    def step(name: str) -> Do:
        async def act(_: Puppet) -> None:
            log.append(f"{name} begins")
            await anyio.lowlevel.checkpoint()
            log.append(f"{name} ends")

        return Do(act)

    async with stage(child):
        child.ref.tell(step("first"))
        await child.ref.send(step("second"))
        await child.ref.ask(step("third"))
    assert log == [f"{name} {end}" for name in ("first", "second", "third") for end in ("begins", "ends")]


async def test_an_ask_returns_what_handle_returned() -> None:
    child = puppet()
    async with stage(child):
        assert await child.ref.ask(give({"any": "value"})) == {"any": "value"}


async def test_an_expected_error_is_an_answer_and_the_actor_lives_on() -> None:
    log: list[str] = []
    child = puppet(log=log)
    async with stage(child) as on:
        with pytest.raises(Wrong, match="no such page"):
            await child.ref.ask(throw(Wrong("no such page")))
        assert await child.ref.ask(give(1)) == 1
        assert (log, on.reports) == (["+puppet"], [])


async def test_a_full_mailbox_refuses_and_what_it_accepted_is_handled() -> None:
    child, release, log = puppet(mailbox=2), anyio.Event(), list[int]()
    async with stage(child) as on:
        child.ref.tell(hold(release))
        await on.clock.advance(0)
        child.ref.tell(note(log, 1))
        await child.ref.send(note(log, 2))
        for leave in (child.ref.send, child.ref.ask):
            with pytest.raises(MailboxFullError, match=r"root/puppet is full \(2 messages\); this message was not"):
                await leave(note(log, 3))
        with pytest.raises(MailboxFullError):
            child.ref.tell(note(log, 3))
        release.set()
        await on.clock.advance(0)
    assert log == [1, 2]


async def test_with_the_policy_wait_senders_wait_their_turn() -> None:
    child, release, log = puppet(mailbox=1, when_full="wait"), anyio.Event(), list[int]()
    async with stage(child) as on, beside() as start:
        child.ref.tell(hold(release))
        await on.clock.advance(0)
        child.ref.tell(note(log, 0))
        senders = [start(child.ref.send(note(log, 1))), start(child.ref.ask(note(log, 2)))]
        senders += [start(child.ref.send(note(log, 3)))]
        await on.clock.advance(0)
        with pytest.raises(MailboxFullError):
            child.ref.tell(note(log, 4))
        assert [sender.done() for sender in senders] == [False, False, False]
        release.set()
        await on.clock.advance(0)
        assert all(sender.done() and sender.error is None for sender in senders)
    assert log == [0, 1, 2, 3]


async def test_a_sender_waits_only_until_its_message_is_in() -> None:
    child, first, second = puppet(mailbox=1, when_full="wait"), anyio.Event(), anyio.Event()
    async with stage(child) as on, beside() as start:
        child.ref.tell(hold(first))
        await on.clock.advance(0)
        child.ref.tell(hold(second))
        sender = start(child.ref.send(give(None)))
        await on.clock.advance(0)
        assert not sender.done()
        first.set()
        await on.clock.advance(0)
        assert sender.done()
        second.set()


async def test_who_gives_up_waiting_for_room_leaves_no_message() -> None:
    child, release, log = puppet(mailbox=1, when_full="wait"), anyio.Event(), list[Any]()
    async with stage(child) as on, beside() as start:
        child.ref.tell(hold(release))
        await on.clock.advance(0)
        child.ref.tell(note(log, "in"))
        late = start(child.ref.ask(note(log, "late"), deadline=1))
        with anyio.CancelScope() as scope:
            on.clock.call_later(1, scope.cancel)
            start(on.clock.advance(1))
            await child.ref.send(note(log, "cancelled"))
        patient = start(child.ref.ask(note(log, "patient")))
        await on.clock.advance(0)
        assert isinstance(late.error, DeadlineError)
        release.set()
        await on.clock.advance(0)
        assert patient.done()
    assert log == ["in", "patient"]


async def test_who_gives_up_in_the_moment_room_comes_leaves_no_message() -> None:
    child, release, log = puppet(mailbox=1, when_full="wait"), anyio.Event(), list[Any]()
    async with stage(child) as on, beside() as start:
        child.ref.tell(hold(release))
        await on.clock.advance(0)
        child.ref.tell(note(log, "in"))
        with anyio.CancelScope() as scope:

            def at_once() -> None:
                release.set()
                scope.cancel()

            on.clock.call_later(1, at_once)
            start(on.clock.advance(1))
            await child.ref.send(note(log, "late"))
        await on.clock.advance(0)
    assert log == ["in"]


async def test_a_message_given_up_is_freed_while_the_actor_is_still_busy() -> None:
    child = puppet(mailbox=1, when_full="wait")

    async def act(_: Puppet) -> None:
        raise AssertionError

    trace = weakref.ref(act)
    async with stage(child) as on:
        release = anyio.Event()
        child.ref.tell(hold(release))
        await on.clock.advance(0)
        child.ref.tell(give(None))
        async with beside() as start:
            start(child.ref.ask(Do(act), deadline=1))
            del act
            await on.clock.advance(1)
        gc.collect()
        assert trace() is None
        release.set()


async def test_a_deadline_ends_the_wait_and_the_late_reply_is_dropped() -> None:
    child, release = puppet(), anyio.Event()
    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(hold(release, "late"), deadline=2.5))
        await on.clock.advance(2.4)
        assert not asked.done()
        await on.clock.advance(0.1)
        assert isinstance(asked.error, DeadlineError)
        assert str(asked.error) == "puppet did not answer within 2.5 s; it may still act on the message"
        release.set()
        assert await child.ref.ask(give("next")) == "next"
        assert on.reports == []


async def test_a_late_error_is_dropped_too() -> None:
    child, release = puppet(), anyio.Event()

    async def wrong(_: Puppet) -> None:
        await release.wait()
        raise Wrong

    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(Do(wrong), deadline=1))
        await on.clock.advance(1)
        assert isinstance(asked.error, DeadlineError)
        release.set()
        assert await child.ref.ask(give("next")) == "next"
        assert on.reports == []


async def test_a_deadline_that_is_met_leaves_no_timer_behind() -> None:
    class Value:
        pass

    child = puppet()

    async def made(_: Puppet) -> Value:
        return Value()

    async with stage(child):
        trace = weakref.ref(await child.ref.ask(Do(made), deadline=5))
        await child.ref.ask(give(None))
        gc.collect()
        assert trace() is None


async def test_an_asker_that_is_cancelled_harms_nobody() -> None:
    child, release, log = puppet(), anyio.Event(), list[int]()
    async with stage(child) as on:
        async with beside() as start:
            start(child.ref.ask(hold(release)))
            start(child.ref.ask(note(log, 1)))
            await on.clock.advance(0)
        release.set()
        assert await child.ref.ask(give("next")) == "next"
        assert (log, on.reports) == ([1], [])


async def test_an_actor_that_never_started_refuses_at_once() -> None:
    child = puppet()
    for leave in (child.ref.send, child.ref.ask):
        with pytest.raises(ActorStoppedError, match="puppet is not running"):
            await leave(give(1))
    with pytest.raises(ActorStoppedError):
        child.ref.tell(give(1))
    with pytest.raises(ActorStoppedError):
        await child.ref.ask(give(1), deadline=1)


@pytest.mark.parametrize("when_full", ["reject", "wait"])
async def test_an_actor_that_has_stopped_refuses_at_once(when_full: str) -> None:
    child = puppet(when_full=when_full)
    async with stage(child):
        pass
    for leave in (child.ref.send, child.ref.ask):
        with pytest.raises(ActorStoppedError):
            await leave(give(1))


async def test_an_actor_with_a_full_mailbox_lets_other_tasks_run() -> None:
    child, handled = puppet(), list[int]()
    async with stage(child) as on, beside() as start:
        for number in range(200):
            child.ref.tell(note(handled, number))
        seen = list[int]()

        async def other() -> None:
            while len(handled) < 200:
                seen.append(len(handled))
                await anyio.lowlevel.checkpoint()

        start(other())
        await on.clock.advance(0)
    assert len([count for count in seen if 0 < count < 200]) > 3


async def test_a_specification_runs_one_child_at_a_time() -> None:
    child = puppet()
    root = SupervisorSpec(id="other", children=(child,))
    async with stage(child):
        with pytest.raises(Exception, match="puppet runs already: a child specification is good for one") as caught:
            async with open_tree(root, clock=ManualClock()):
                pass
        assert isinstance(caught.value.__cause__, ChildSpecError)
        assert await child.ref.ask(give("untouched")) == "untouched"
    async with open_tree(root, clock=ManualClock()):
        assert await child.ref.ask(give("later")) == "later"


async def test_a_ref_says_whose_it_is() -> None:
    ref: Ref[Do] = puppet("journal").ref
    assert (repr(ref), ref.name) == ("Ref('journal')", "journal")


async def test_all_who_wait_hear_of_a_stop() -> None:
    child = puppet(mailbox=1, when_full="wait")
    async with beside() as start:
        async with stage(child) as on:
            in_hand = start(child.ref.ask(forever()))
            await on.clock.advance(0)
            waiting: list[Outcome] = [start(child.ref.ask(give(1))) for _ in range(2)]
            waiting.append(start(child.ref.send(give(1))))
            await on.clock.advance(0)
            start(on.clock.advance(60))
        await on.clock.advance(0)
        for outcome in [in_hand, *waiting]:
            assert isinstance(outcome.error, ActorStoppedError)
