"""The pool of guests: some are kept warm, so that a launch starts in milliseconds (architecture.md, section 5)."""

import secrets
from collections import deque
from collections.abc import Callable

import anyio
import msgspec

from tallystick.engine.slots import Slots
from tallystick.kernel import Actor
from tallystick.sandbox.frames import Start
from tallystick.sandbox.protocol import Driver, EndOfGuest, Limits, Sandbox, SandboxError


class Guest(msgspec.Struct, frozen=True):
    """A confined guest and the nonce that its frames carry."""

    sandbox: Sandbox
    nonce: str


class Refill(msgspec.Struct, frozen=True):
    """Bring the stock of warm guests up to its size."""


class GuestPool:
    """Hands out guests. ``places`` bounds how many launches have one at the same time."""

    def __init__(self, driver: Driver, limits: Limits, *, max_live: int, warm: int) -> None:
        self.places = Slots(max_live)
        self.driver = driver
        self.refill: Callable[[], None] = lambda: None
        self._limits = limits
        self._size = warm
        self._warm: deque[Guest] = deque()

    async def open(self, start: Callable[[str], Start]) -> Guest:
        """Give a guest its script, a warm one where there is one.

        Raises:
            SandboxError: no guest could be started or confined.
        """
        while self._warm:
            guest = self._warm.popleft()
            self.refill()
            try:
                await guest.sandbox.send([start(guest.nonce)])
            except EndOfGuest:
                await guest.sandbox.kill()  # it died while it waited; the next one has seen nothing of the script
                continue
            return guest
        guest = await self._new()
        self.refill()
        try:
            await guest.sandbox.send([start(guest.nonce)])
        except EndOfGuest:
            exit_ = await guest.sandbox.kill()
            raise SandboxError(f"the guest ended before it got its script: {exit_.text or exit_.cause}") from None
        return guest

    async def _new(self) -> Guest:
        nonce = secrets.token_hex(16)
        return Guest(await self.driver.open(self._limits, nonce), nonce)

    async def fill(self) -> None:
        """Start guests until the stock is full; trouble is left to the launch that meets it."""
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
    """Keeps the pool warm."""

    def __init__(self, pool: GuestPool) -> None:
        super().__init__()
        self._pool = pool

    async def handle(self, message: Refill) -> None:
        """Fill the stock."""
        del message
        await self._pool.fill()

    async def on_stop(self) -> None:
        """Leave no guest behind."""
        await self._pool.close()
