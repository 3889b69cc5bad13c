"""The tree as a whole: read as data, ended by its body, by its root, or by a cancellation from outside."""

import asyncio
import logging
from typing import assert_type

import anyio
import msgspec
import pytest

from kernel_support import Boom, Do, Puppet, beside, forever, give, puppet, stage, throw
from tallystick import kernel
from tallystick.kernel import (
    Actor,
    ActorStoppedError,
    ChildReport,
    ChildSpec,
    ManualClock,
    Node,
    Ref,
    Request,
    RestartBudget,
    RestartBudgetError,
    StartChild,
    SupervisorSpec,
    open_tree,
)


async def test_the_live_tree_is_data() -> None:
    inner = SupervisorSpec(id="inner", children=(puppet("b"),))
    async with stage(puppet("a"), inner) as on:
        await on.root.ref.ask(StartChild(puppet("run-1")))
        tree = on.tree.tree()
        assert tree == Node(
            id="root",
            kind="supervisor",
            status="running",
            restarts=0,
            children=(
                Node("a", "worker", "running", 0),
                Node("inner", "supervisor", "running", 0, (Node("b", "worker", "running", 0),)),
                Node("run-1", "worker", "running", 0),
            ),
        )
        assert msgspec.json.decode(msgspec.json.encode(tree), type=Node) == tree


async def test_an_error_of_the_body_stops_the_tree_in_order_and_comes_out_as_it_is() -> None:
    log: list[str] = []
    with pytest.raises(Boom):
        async with stage(puppet("a", log), puppet("b", log)):
            raise Boom
    assert log == ["+a", "+b", "-b", "-a"]


async def test_the_error_of_the_tree_comes_before_that_of_a_body_it_broke() -> None:
    child = puppet()

    async def body() -> None:
        child.ref.tell(throw(Boom()))
        try:
            await anyio.sleep_forever()
        finally:
            with pytest.raises(ActorStoppedError):
                child.ref.tell(give(1))
            raise ValueError

    with pytest.raises(RestartBudgetError) as caught:
        async with stage(child, budget=RestartBudget(intensity=0)):
            await body()
    assert caught.value.__notes__ == ["the body around which the tree ran failed with ValueError()"]


async def test_a_root_that_gives_up_while_the_body_ends_is_heard() -> None:
    child, release = puppet(), anyio.Event()
    slow = puppet("slow", end=lambda _: release.wait())

    async def body() -> None:
        child.ref.tell(throw(Boom()))
        await on.clock.advance(0)
        on.clock.call_later(1, release.set)
        start(on.clock.advance(1))

    async with beside() as start:
        with pytest.raises(RestartBudgetError):
            async with stage(child, slow, budget=RestartBudget(intensity=0)) as on:
                await body()


async def test_a_cancellation_from_outside_ends_everything_at_once() -> None:
    log: list[str] = []
    release: list[str] = []

    async def end(actor: Puppet) -> None:
        release.append(actor.name)
        await anyio.sleep_forever()

    children = [puppet("b", log), puppet("a", log, end=end)]
    async with beside() as start:
        with anyio.CancelScope() as scope:
            async with stage(*children) as on:
                waiting = start(children[1].ref.ask(forever()))
                children[0].ref.tell(throw(Boom()))
                await on.clock.advance(0)
                queued = start(children[0].ref.ask(give(1)))
                await on.clock.advance(0)
                scope.cancel()
        await on.clock.advance(0)
        assert isinstance(waiting.error, ActorStoppedError)
        assert isinstance(queued.error, ActorStoppedError)
    assert release == ["a"]


async def test_a_task_that_asyncio_cancels_still_stops_its_tree_in_order() -> None:
    log: list[str] = []
    up = anyio.Event()

    async def main() -> None:
        async with stage(puppet("a", log, end=lambda _: anyio.lowlevel.checkpoint()), puppet("b", log)):
            up.set()
            await anyio.sleep_forever()

    task = asyncio.create_task(main())
    await up.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["+a", "+b", "-b", "-a"]


async def test_a_cancellation_while_the_tree_starts_ends_it_too() -> None:
    log: list[str] = []
    with anyio.CancelScope() as scope:

        async def begin(_: Puppet) -> None:
            scope.cancel()
            await anyio.sleep_forever()

        async with stage(puppet("a", log), puppet("b", log, begin=begin)):
            log.append("never reached")
    assert log == ["+a", "+b", "-a"]


async def test_reports_are_logged_unless_somebody_listens(caplog: pytest.LogCaptureFixture) -> None:
    child = puppet()
    root = SupervisorSpec(id="root", children=(child,))
    clock = ManualClock()
    with caplog.at_level(logging.ERROR):
        async with open_tree(root, clock=clock):
            child.ref.tell(throw(Boom("out of paper")))
            await clock.advance(1)
    assert [record.getMessage() for record in caplog.records] == [
        "root/puppet ended: out of paper (decision: restart, delay: 0.1 s)"
    ]
    assert "Boom: out of paper" in caplog.text


async def test_a_permanent_child_that_ends_is_reported_without_an_error() -> None:
    async def last(actor: Puppet) -> None:
        actor.stop()

    child = puppet()
    async with stage(child) as on:
        child.ref.tell(Do(last))
        await on.clock.advance(0)
        assert on.reports == [ChildReport(path="root/puppet", error=None, decision="restart", delay=0.1)]


async def test_the_types_of_replies_and_refs_are_known() -> None:
    class Total(Request[int], frozen=True):
        pass

    class Counter(Actor[Total]):
        async def handle(self, message: Total) -> int:
            return len([message]) + 2

    spec = ChildSpec(id="counter", factory=Counter)
    assert_type(spec, ChildSpec[Total])
    async with stage() as on:
        ref = await on.root.ref.ask(StartChild(spec))
        assert_type(ref, Ref[Total])
        total = await ref.ask(Total())
        assert_type(total, int)
        assert (total, ref) == (3, spec.ref)


def test_the_public_names_are_there_and_in_order() -> None:
    assert sorted(kernel.__all__) == kernel.__all__
    assert all(hasattr(kernel, name) for name in kernel.__all__)
