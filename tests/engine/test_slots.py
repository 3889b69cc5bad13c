"""Slots: at most so many at once, first come first served, and whoever is dropped or cancelled loses nobody's slot."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.engine.slots import LaunchStoppedError, Slots, Waiters, drop


class Desk:
    """Callers who hold a slot until they are told to leave."""

    def __init__(self, limit: int) -> None:
        self.slots = Slots(limit)
        self.waiters: Waiters = set()
        self.inside: list[int] = []
        self.dropped: list[int] = []
        self.leave: dict[int, asyncio.Event] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def come(self, who: int) -> None:
        self.leave[who] = asyncio.Event()
        self.tasks[who] = asyncio.ensure_future(self._hold(who))

    async def _hold(self, who: int) -> None:
        try:
            async with self.slots.held(self.waiters):
                self.inside.append(who)
                try:
                    await self.leave[who].wait()
                finally:
                    self.inside.remove(who)
        except LaunchStoppedError:
            self.dropped.append(who)

    async def rest(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for event in self.leave.values():
            event.set()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_no_more_than_the_limit_are_inside_and_the_line_is_kept() -> None:
    desk = Desk(2)
    for who in range(5):
        desk.come(who)
    await desk.rest()
    seen = [list(desk.inside)]
    for who in (1, 0, 2):
        desk.leave[who].set()
        await desk.rest()
        seen.append(list(desk.inside))
    assert seen == [[0, 1], [0, 2], [2, 3], [3, 4]]
    await desk.close()


async def test_who_is_dropped_leaves_the_line_and_the_others_go_on() -> None:
    desk = Desk(1)
    other: Waiters = set()
    desk.come(0)
    await desk.rest()
    desk.come(1)
    await desk.rest()
    desk.waiters, other = other, desk.waiters
    desk.come(2)
    await desk.rest()
    drop(other)
    await desk.rest()
    assert (desk.inside, desk.dropped, other) == ([0], [1], set())
    desk.leave[0].set()
    await desk.rest()
    assert desk.inside == [2]
    await desk.close()


async def test_a_slot_that_was_given_to_somebody_just_cancelled_is_given_on() -> None:
    desk = Desk(1)
    for who in range(3):
        desk.come(who)
    await desk.rest()
    desk.leave[0].set()
    await asyncio.sleep(0)
    desk.tasks[1].cancel()
    await desk.rest()
    assert desk.inside == [2]
    await desk.close()


async def test_nobody_is_dropped_who_has_a_slot() -> None:
    desk = Desk(1)
    desk.come(0)
    await desk.rest()
    drop(desk.waiters)
    await desk.rest()
    assert (desk.inside, desk.dropped) == ([0], [])
    await desk.close()


@pytest.mark.parametrize("limit", [1, 3])
@given(acts=st.lists(st.tuples(st.sampled_from(["come", "leave", "cancel", "drop"]), st.integers(0, 9)), max_size=30))
def test_no_slot_is_ever_lost_or_made(limit: int, acts: list[tuple[str, int]]) -> None:
    async def story() -> None:
        desk = Desk(limit)
        for act, who in acts:
            if act == "come" and who not in desk.tasks:
                desk.come(who)
            elif act == "leave" and who in desk.leave:
                desk.leave[who].set()
            elif act == "cancel" and who in desk.tasks:
                desk.tasks[who].cancel()
            elif act == "drop":
                drop(desk.waiters)
            if who % 2:
                await desk.rest()
            assert len(desk.inside) <= limit
        await desk.close()
        for who in range(100, 100 + limit + 1):
            desk.come(who)
        await desk.rest()
        assert desk.inside == list(range(100, 100 + limit))
        await desk.close()

    asyncio.run(story())
