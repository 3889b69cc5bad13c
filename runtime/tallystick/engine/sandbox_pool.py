"""The pool of guests: some are kept warm, so that a launch starts in milliseconds (architecture.md, section 5)."""

import secrets
from collections import deque
from collections.abc import Callable

import anyio
import msgspec

from tallystick.engine.announcer import Announcer
from tallystick.engine.slots import Slots
from tallystick.kernel import Actor, Clock
from tallystick.sandbox.frames import Start
from tallystick.sandbox.protocol import Driver, EndOfGuest, Limits, Sandbox, SandboxError


class Guest(msgspec.Struct, frozen=True):
    """A confined guest, the nonce that its frames carry, and when it was started (seconds of the monotonic clock)."""

    sandbox: Sandbox
    nonce: str
    since: float


class Refill(msgspec.Struct, frozen=True):
    """Bring the stock of warm guests up to its size."""


class GuestPool:
    """Hands out guests. ``places`` bounds how many launches have one at the same time.

    Args:
        driver: what starts them.
        limits: what each may use.
        clock: tells their age.
        max_live: how many launches may have one at the same time.
        warm: how many are kept ready.
        max_age: seconds after which one that nobody has used is replaced.
        news: hears what takes long.
    """

    def __init__(
        self,
        driver: Driver,
        limits: Limits,
        clock: Clock,
        *,
        max_live: int,
        warm: int,
        max_age: float,
        news: Announcer,
    ) -> None:
        self.places = Slots(max_live)
        self.driver = driver
        self.max_age = max_age
        self.refill: Callable[[], None] = lambda: None
        self._limits = limits
        self._clock = clock
        self._size = warm
        self._news = news
        self._warm: deque[Guest] = deque()

    async def open(
        self,
        start: Callable[[str], Start],
        *,
        admit: Callable[[str], None] = lambda _: None,
        told: Callable[[str], None] = lambda _: None,
    ) -> Guest:
        """Give a guest its script, a warm one where there is one.

        Args:
            start: makes the frame with the script from the guest's nonce.
            admit: gets the id of the guest's image before the script is sent; what it raises ends the guest.
            told: hears what takes long while a guest is being started.

        Raises:
            SandboxError: no guest could be started or confined.
        """
        while self._warm:
            guest = self._warm.popleft()
            self.refill()
            if self._fit(guest) and await self._started(guest, start, admit):
                return guest
            await guest.sandbox.kill()  # it has seen nothing of the script; the next one gets it
        with self._news.heard(told):
            guest = await self._new()
        self.refill()
        if not await self._started(guest, start, admit):
            exit_ = await guest.sandbox.kill()
            raise SandboxError(f"the guest ended before it got its script: {exit_.text or exit_.cause}")
        return guest

    async def _started(self, guest: Guest, start: Callable[[str], Start], admit: Callable[[str], None]) -> bool:
        """Send a guest its script; return whether it was there to take it."""
        try:
            admit(guest.sandbox.image)
            await guest.sandbox.send([start(guest.nonce)])
        except EndOfGuest:
            return False
        except BaseException:
            await guest.sandbox.kill()
            raise
        return True

    def _fit(self, guest: Guest) -> bool:
        """Whether a warm guest may be handed out: it lives, is not too old, and runs in the image of today."""
        young = self._clock.monotonic() - guest.since < self.max_age
        return young and guest.sandbox.image == self.driver.image and guest.sandbox.alive()

    async def _new(self) -> Guest:
        nonce = secrets.token_hex(16)
        return Guest(await self.driver.open(self._limits, nonce), nonce, self._clock.monotonic())

    async def fill(self) -> None:
        """Replace what is not fit, and start guests until the stock is full; a launch will meet what goes wrong."""
        for guest in tuple(self._warm):
            if not self._fit(guest) and guest in self._warm:
                self._warm.remove(guest)
                await guest.sandbox.kill()
        while len(self._warm) < self._size:
            try:
                self._warm.append(await self._new())
            except SandboxError:
                return

    async def close(self) -> None:
        """End every guest, also those at work."""
        with anyio.CancelScope(shield=True):
            self._warm.clear()
            await self.driver.close()


class PoolActor(Actor[Refill]):
    """Keeps the pool warm, and its guests young."""

    def __init__(self, pool: GuestPool) -> None:
        super().__init__()
        self._pool = pool

    async def on_start(self) -> None:
        """Look after the guests' age beside the mailbox."""
        self.spawn(self._renew)

    async def handle(self, message: Refill) -> None:
        """Fill the stock."""
        del message
        await self._pool.fill()

    async def _renew(self) -> None:
        while True:
            await self.clock.sleep(self._pool.max_age / 4)
            self._pool.refill()

    async def on_stop(self) -> None:
        """Leave no guest behind."""
        await self._pool.close()
