"""The stock of warm guests: what is handed out is alive, young, and of the image of today."""

import pytest

from tallystick.engine.announcer import Announcer
from tallystick.engine.sandbox_pool import GuestPool
from tallystick.kernel import ManualClock
from tallystick.sandbox.frames import Done, Ready, Start
from tallystick.sandbox.memory import MemoryDriver, MemorySandbox
from tallystick.sandbox.protocol import Limits, SandboxError

MAX_AGE = 100.0
SCRIPT = "async def orchestrate(ctx, args): return 7\n"


class Painted(MemorySandbox):
    """A guest of an image."""

    image = ""


class Workshop(MemoryDriver):
    """Starts guests of the image of the moment."""

    def __init__(self) -> None:
        super().__init__()
        self.image = "one"
        self.made: list[MemorySandbox] = []
        self.down = False

    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        if self.down:
            raise SandboxError("the engine is down")
        guest = Painted(limits, nonce, self._open.discard)
        guest.image = self.image
        self._open.add(guest)
        self.made.append(guest)
        return guest


class Stock:
    """A pool that keeps two guests warm, and notes when it asks for more."""

    def __init__(self) -> None:
        self.driver, self.clock = Workshop(), ManualClock()
        self.pool = GuestPool(self.driver, Limits(), self.clock, max_live=4, warm=2, max_age=MAX_AGE, news=Announcer())
        self.asked = 0
        self.pool.refill = self._ask

    def _ask(self) -> None:
        self.asked += 1

    async def take(self) -> int:
        """Take a guest, see that it runs the script, and say which of those that were made it is."""
        guest = await self.pool.open(lambda nonce: Start(nonce=nonce, source=SCRIPT, args=None))
        frames = await guest.sandbox.receive()
        assert [type(frame) for frame in frames if not isinstance(frame, Ready)] == [Done]
        return next(at for at, made in enumerate(self.driver.made) if made is guest.sandbox)

    def alive(self) -> list[bool]:
        """Say of each guest that was made whether it still runs."""
        return [made.alive() for made in self.driver.made]


@pytest.fixture
async def stock() -> Stock:
    full = Stock()
    await full.pool.fill()
    return full


async def test_a_warm_guest_is_handed_out_and_the_next_one_asked_for(stock: Stock) -> None:
    assert (await stock.take(), stock.asked, len(stock.driver.made)) == (0, 1, 2)
    await stock.pool.fill()
    assert (len(stock.driver.made), await stock.take(), await stock.take()) == (3, 1, 2)


async def test_a_guest_that_died_while_it_waited_is_not_handed_out(stock: Stock) -> None:
    await stock.driver.made[0].kill()
    assert await stock.take() == 1


async def test_a_guest_that_is_too_old_is_ended_and_not_handed_out(stock: Stock) -> None:
    await stock.clock.advance(MAX_AGE)
    assert await stock.take() == 2
    assert stock.alive()[:2] == [False, False]


async def test_a_refill_replaces_what_is_too_old(stock: Stock) -> None:
    await stock.clock.advance(MAX_AGE)
    await stock.pool.fill()
    assert stock.alive() == [False, False, True, True]
    assert await stock.take() == 2


async def test_a_guest_of_another_image_is_not_handed_out_once_the_pin_has_moved(stock: Stock) -> None:
    stock.driver.image = "two"
    assert await stock.take() == 2
    await stock.pool.fill()
    assert stock.alive()[:2] == [False, False]


async def test_a_guest_that_is_not_admitted_is_ended_without_the_script(stock: Stock) -> None:
    def refuse(image: str) -> None:
        raise PermissionError(image)

    with pytest.raises(PermissionError, match="one"):
        await stock.pool.open(lambda nonce: Start(nonce=nonce, source=SCRIPT, args=None), admit=refuse)
    assert stock.alive() == [False, True]
    assert await stock.take() == 1


async def test_trouble_while_the_stock_is_filled_is_left_to_the_launch_that_meets_it(stock: Stock) -> None:
    stock.driver.down = True
    assert [await stock.take(), await stock.take()] == [0, 1]
    await stock.pool.fill()
    with pytest.raises(SandboxError, match="the engine is down"):
        await stock.take()
    stock.driver.down = False
    await stock.pool.fill()
    assert [await stock.take(), await stock.take()] == [2, 3]
