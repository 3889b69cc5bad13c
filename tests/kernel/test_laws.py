"""Whatever is told, asked and crashed in whatever order, every ask ends and the tree comes to rest."""

from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio
from hypothesis import given
from hypothesis import strategies as st

from kernel_support import Boom, Do, Outcome, Puppet, Wrong, beside, give, note, puppet, stage, throw
from tallystick.kernel import (
    ActorGoneError,
    DeadlineError,
    MailboxFullError,
    ManualClock,
    RestartBudget,
    RestartBudgetError,
    StopChild,
)
from tallystick.kernel.child import Restart
from tallystick.kernel.mailbox import WhenFull
from tallystick.kernel.supervisor import Strategy

Step: TypeAlias = tuple[Literal["tell", "send", "ask", "advance", "stop"], str, float]

ENDS = (Wrong, ActorGoneError, DeadlineError, MailboxFullError)


def act(what: str, log: list[Any], number: int) -> Do:
    """One thing that a puppet may be told to do."""

    async def wait() -> int:
        await anyio.lowlevel.checkpoint()
        return number

    async def hang() -> None:
        await anyio.sleep_forever()

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise Boom

    async def defer(actor: Puppet) -> object:
        return actor.defer({"defer": wait, "defer for ever": hang, "defer a crash": fail}[what])

    async def stop(actor: Puppet) -> None:
        actor.stop()

    simple = {"give": give(number), "note": note(log, number), "crash": throw(Boom()), "wrong": throw(Wrong())}
    return simple.get(what) or Do(stop if what == "end itself" else defer)


steps = st.lists(
    st.tuples(
        st.sampled_from(["tell", "send", "ask", "ask", "ask", "advance"]),
        st.sampled_from(["give", "note", "crash", "wrong", "defer", "defer for ever", "defer a crash", "end itself"]),
        st.sampled_from([0.0, 0.05, 1.0]),
    )
    | st.just(("stop", "", 0.0)),
    max_size=25,
)


@given(
    steps=steps,
    mailbox=st.integers(1, 3),
    when_full=st.sampled_from(["reject", "wait"]),
    restart=st.sampled_from(["permanent", "transient", "temporary"]),
    intensity=st.integers(0, 5),
)
async def test_every_ask_ends_with_a_value_or_an_error(
    steps: list[Step], mailbox: int, when_full: WhenFull, restart: Restart, intensity: int
) -> None:
    child = puppet(mailbox=mailbox, when_full=when_full, restart=restart)
    ref, outcomes, log = child.ref, list[tuple[str, int, Outcome]](), list[Any]()
    async with beside() as start:
        with suppress(RestartBudgetError):
            async with stage(child, budget=RestartBudget(intensity=intensity)) as on:
                for number, (how, what, seconds) in enumerate(steps):
                    message = act(what, log, number)
                    match how:
                        case "ask":
                            outcomes.append((what, number, start(ref.ask(message, deadline=seconds or None))))
                        case "send":
                            outcomes.append(("send", number, start(ref.send(message))))
                        case "tell":
                            with suppress(*ENDS):
                                ref.tell(message)
                        case "advance":
                            await on.clock.advance(seconds)
                        case "stop":
                            await on.root.ref.ask(StopChild("puppet"))
        await on.clock.advance(0)
        for what, number, outcome in outcomes:
            assert outcome.done()
            assert outcome.error is None or isinstance(outcome.error, ENDS)
            if outcome.error is None:
                assert outcome.value == (number if what in ("give", "defer") else None)
    assert len(log) == len(set(log))


@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(["crash", "crash", "give", "defer for ever", "end itself", "stop"]),
            st.sampled_from([None, None, 0.0, 0.06, 0.3]),
        ),
        max_size=15,
    ),
    restarts=st.tuples(*[st.sampled_from(["permanent", "permanent", "transient", "temporary"])] * 4),
    bad_starts=st.sets(st.integers(4, 12), max_size=3),
    slow_starts=st.sets(st.integers(4, 12), max_size=3),
    strategy=st.sampled_from(["one_for_one", "one_for_all", "rest_for_one"]),
    intensity=st.integers(1, 8),
)
async def test_when_the_dust_settles_all_children_run_or_the_tree_has_given_up(
    *,
    steps: list[tuple[int, str, float | None]],
    restarts: tuple[Restart, ...],
    bad_starts: set[int],
    slow_starts: set[int],
    strategy: Strategy,
    intensity: int,
) -> None:
    """Children crash, end, are stopped, come up late or not at all, in the middle of one another's recovery."""
    log, outcomes = list[str](), list[Outcome]()
    clock = ManualClock()

    async def begin(_: Puppet) -> None:
        start = sum(line.startswith("+") for line in log) - 1
        if start in slow_starts:
            await clock.sleep(0.05)
        if start in bad_starts:
            raise Boom

    children = [puppet(str(n), log, begin=begin, restart=restart) for n, restart in enumerate(restarts)]
    budget = RestartBudget(intensity=intensity, period=2.0)
    async with beside() as start:
        with suppress(RestartBudgetError):
            async with stage(*children, clock=clock, strategy=strategy, budget=budget) as on:
                for number, (who, what, seconds) in enumerate(steps):
                    if what == "stop":
                        outcomes.append(start(on.root.ref.ask(StopChild(str(who)))))
                    else:
                        outcomes.append(start(children[who].ref.ask(act(what, [], number))))
                    if seconds is not None:
                        await clock.advance(seconds)
                await clock.advance(30)
                for node in on.tree.tree().children:
                    assert node.status == "running"
                    assert await children[int(node.id)].ref.ask(give(node.id)) == node.id
        await clock.advance(0)
        assert all(outcome.done() for outcome in outcomes)
        assert all(outcome.error is None or isinstance(outcome.error, ActorGoneError) for outcome in outcomes)
    for name in "0123":
        comings = [line[0] for line in log if line[1:] == name]
        assert "--" not in "".join(comings)  # on_stop at most once a life, and only after its on_start


@given(st.lists(st.sampled_from(["send", "ask"]), max_size=40), st.integers(1, 8))
async def test_with_back_pressure_nothing_is_lost_and_nothing_overtakes(how: list[str], mailbox: int) -> None:
    child, log = puppet(mailbox=mailbox, when_full="wait"), list[int]()
    async with stage(child) as on, beside() as start:
        for number, leave in enumerate(how):
            start(child.ref.send(note(log, number)) if leave == "send" else child.ref.ask(note(log, number)))
        await on.clock.advance(0)
    assert log == list(range(len(how)))
