"""Replies that come later than handle returns."""

import gc
import weakref

import anyio
import pytest

from kernel_support import (
    Boom,
    Wrong,
    beside,
    boom,
    give,
    puppet,
    run_task,
    settle_later,
    stage,
    wrong,
)
from tallystick.kernel import (
    ActorDiedError,
    Deferred,
)


async def test_a_deferred_reply_leaves_the_actor_free_for_others() -> None:
    child, deferred = puppet(), Deferred[int]()
    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(settle_later(deferred)))
        assert await child.ref.ask(give("meanwhile")) == "meanwhile"
        assert not asked.done()
        deferred.resolve(7)
        await on.clock.advance(0)
        assert asked.value == 7


async def test_one_deferred_answers_every_request_it_was_returned_for() -> None:
    child, deferred = puppet(), Deferred[int]()
    async with stage(child) as on, beside() as start:
        asked = [start(child.ref.ask(settle_later(deferred))) for _ in range(2)]
        await on.clock.advance(0)
        deferred.resolve(7)
        asked.append(start(child.ref.ask(settle_later(deferred))))
        await on.clock.advance(0)
        assert [outcome.value for outcome in asked] == [7, 7, 7]


async def test_a_deferred_may_fail_and_its_first_outcome_stands() -> None:
    child, deferred = puppet(), Deferred[int]()
    deferred.fail(Wrong("first"))
    deferred.resolve(2)
    async with stage(child) as on:
        with pytest.raises(Wrong, match="first"):
            await child.ref.ask(settle_later(deferred))
        assert on.reports == []


async def test_a_deferred_returned_to_a_tell_answers_nobody() -> None:
    child, deferred = puppet(), Deferred[int]()
    async with stage(child) as on:
        child.ref.tell(settle_later(deferred))
        await on.clock.advance(0)
        deferred.fail(Boom())
        assert await child.ref.ask(give(1)) == 1


async def test_a_late_outcome_of_a_deferred_is_dropped() -> None:
    child, deferred = puppet(), Deferred[int]()
    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(settle_later(deferred), deadline=1))
        await on.clock.advance(1)
        deferred.resolve(1)
        assert asked.error is not None
        assert await child.ref.ask(give("alive")) == "alive"


async def test_the_result_of_a_deferring_task_is_the_reply() -> None:
    child = puppet()

    async def fetch() -> str:
        await anyio.lowlevel.checkpoint()
        return "fetched"

    async with stage(child) as on:
        assert await child.ref.ask(run_task(fetch, reply=True)) == "fetched"
        with pytest.raises(Wrong):
            await child.ref.ask(run_task(wrong, reply=True))
        assert on.reports == []
        with pytest.raises(ActorDiedError):
            await child.ref.ask(run_task(boom, reply=True))
        await on.clock.advance(0)
        assert on.decisions == [("root/puppet", "restart")]


async def test_a_deferred_that_is_settled_is_forgotten() -> None:
    class Value:
        pass

    child, deferred, value = puppet(), Deferred[Value](), Value()
    trace = weakref.ref(value)
    async with stage(child) as on, beside() as start:
        asked = start(child.ref.ask(settle_later(deferred)))
        await on.clock.advance(0)
        deferred.resolve(value)
        await on.clock.advance(0)
        assert asked.value is value
        child.ref.tell(give(None))
        await on.clock.advance(0)
        del deferred, value, asked
        gc.collect()
        assert trace() is None
