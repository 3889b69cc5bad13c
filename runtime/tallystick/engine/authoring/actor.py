"""The actor that model rewrites belong to: they go on when their client is gone, and end with the daemon."""

from collections.abc import Awaitable, Callable

import msgspec

from tallystick.kernel import Actor


class Work(msgspec.Struct, frozen=True):
    """Something to be done beside the mailbox; it handles its own errors."""

    do: Callable[[], Awaitable[None]]


class RepairActor(Actor[Work]):
    """Does what it is given, any number of things at once."""

    async def handle(self, message: Work) -> None:
        """Begin; the actor is free for the next at once."""
        self.spawn(message.do)
