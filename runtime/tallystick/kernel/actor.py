"""The base class of actors, and what an actor may do from within."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, TypeVarTuple

from tallystick.kernel.clock import Clock
from tallystick.kernel.message import Deferred
from tallystick.kernel.ref import Ref

if TYPE_CHECKING:
    from tallystick.kernel.life import Life

M = TypeVar("M")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Actor(Generic[M]):
    """State that only its own messages change, one message at a time.

    Subclasses write ``handle``, and ``on_start`` and ``on_stop`` where they need them; callers never see the object,
    they hold its ``Ref``. The other methods are for the actor itself, from ``on_start`` on.

    What ends an actor, and who hears of it:

    =====================================  ==========================================================
    ``handle`` raises one of ``answers``   the asker gets that error, the actor lives on
    the same, but it was a tell            crash: nobody else would hear of it
    ``handle`` raises anything else        crash
    a task of ``spawn`` or ``defer``       crash, except that errors in ``answers`` answer a ``defer``
    crash                                  everybody who waits for a reply gets ActorDiedError, at once; tasks
                                           are cancelled; the supervisor decides on a restart
    stop by the supervisor, or ``stop``    the message in hand is finished, then ``on_stop``, then tasks are
                                           cancelled; everybody else who waits gets ActorStoppedError
    stop, and the shutdown time is over    all of it is cancelled
    =====================================  ==========================================================

    ``on_stop`` runs exactly once for each ``on_start`` that succeeded, after a crash too. It is where an actor lets
    its own calls settle (``drain``). When the shutdown time is over before it began, it runs already cancelled: its
    first await raises, what stands before it is done.

    Attributes:
        answers: the errors that are replies, not faults.
    """

    answers: ClassVar[tuple[type[Exception], ...]] = ()

    _life: "Life"

    async def on_start(self) -> None:
        """Get ready. The supervisor waits for it; an error here fails the start, and ``on_stop`` is not called."""

    async def handle(self, message: M) -> object:
        """Act on one message and return its reply, at once or as a ``Deferred``. A tell's reply is dropped."""
        raise NotImplementedError

    async def on_stop(self) -> None:
        """Release what ``on_start`` took, within the shutdown time. No message comes any more; tasks still run."""

    @property
    def ref(self) -> Ref[M]:
        """This actor's own address."""
        return self._life.ref

    @property
    def clock(self) -> Clock:
        """The clock of the tree."""
        return self._life.clock

    def spawn(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Run a task that belongs to this actor: its failure is the actor's crash, the actor's end cancels it.

        It runs on the same event loop and may use the actor's state between two awaits.
        """
        self._life.spawn(function, *args)

    def defer(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Deferred[T]:
        """Run a task whose result is the reply: ``return self.defer(self._fetch, message)``.

        Errors in ``answers`` are replies, as in ``handle``; any other is a crash.
        """
        deferred: Deferred[T] = Deferred()

        async def settle() -> None:
            try:
                deferred.resolve(await function(*args))
            except self.answers as error:
                deferred.fail(error)

        self._life.spawn(settle)
        return deferred

    async def drain(self) -> None:
        """Wait until all tasks of this actor have ended; for ``on_stop``, not for the tasks themselves."""
        await self._life.drain()

    def stop(self) -> None:
        """End normally after the message in hand; the supervisor restarts only a permanent child then."""
        self._life.stop()
