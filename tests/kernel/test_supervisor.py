"""How supervisors start and stop their children, and which specifications they refuse."""

from collections.abc import Callable

import anyio
import pytest

from kernel_support import (
    Boom,
    Do,
    Puppet,
    give,
    puppet,
    stage,
    throw,
)
from tallystick.kernel import (
    ActorDiedError,
    ChildSpec,
    ChildSpecError,
    RestartBudget,
    StartError,
    SupervisorSpec,
)


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
