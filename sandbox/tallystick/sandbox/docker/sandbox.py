"""One guest in a container: its frames, its end, its removal."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import anyio
from aiodocker.containers import DockerContainer

from tallystick.sandbox.docker.attached import Attached
from tallystick.sandbox.docker.client import Engine, EngineError
from tallystick.sandbox.docker.ends import exit_of, lost_exit
from tallystick.sandbox.docker.memory_event import ran_out_of_memory
from tallystick.sandbox.frames import Frame, FrameError, OutputError, ToHost, pack
from tallystick.sandbox.inbox import Inbox, over_allowance
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits

#: Seconds of silence after which the engine is asked whether the guest still runs. Silence alone ends nothing.
QUIET_SECONDS = 15.0
#: Seconds that the engine gets to tell about a guest whose stream ended or fell silent.
CONFIRM_SECONDS = 10.0
#: Seconds that the streams of an ended guest get to end as well.
DRAIN_SECONDS = 2.0
#: Seconds that the end of a killed guest and its removal may take; what is not removed then, the next start removes.
KILL_SECONDS = 30.0

_KEPT = 4 << 20  # bytes of frames that are kept for a receiver while only the end is waited for


class DockerSandbox:
    """One confined container. ``kill`` must be called in the end: it removes the container.

    Attributes:
        id: the container's.
        image: the id of the image that was asked for, and that its description was found to name.
    """

    def __init__(
        self,
        engine: Engine,
        container: DockerContainer,
        attached: Attached,
        *,
        image: str,
        limits: Limits,
        nonce: str,
        forget: Callable[["DockerSandbox", bool], None],
    ) -> None:
        self.id = container.id
        self.image = image
        self._engine = engine
        self._container = container
        self._attached = attached
        self._limits = limits
        self._inbox = Inbox(nonce, limits.output)
        self._forget = forget
        self._unread: deque[bytes] = deque()
        self._waiting = anyio.Lock()
        self._waiter = anyio.CancelScope()
        self._killing = anyio.Lock()
        self._ending = anyio.Event()
        self._killed = False
        self._released = False
        self._paused = False
        self._lost = ""
        self._fault: FrameError | None = None
        self._noisy = False
        self._exit: Exit | None = None

    @property
    def pid(self) -> None:
        """None: the process belongs to the engine, which may run elsewhere."""
        return

    def alive(self) -> bool:
        """See ``Sandbox.alive``: the streams stand, and the other side holds them."""
        return not self._ending.is_set() and self._attached.connected()

    async def send(self, frames: Sequence[Frame]) -> None:
        """See ``Sandbox.send``; the driver sends its own first frame through it too."""
        data = b"".join(map(pack, frames))
        try:
            await self._attached.write(data)
        except BrokenPipeError:
            raise EndOfGuest("the guest is gone") from None

    async def receive(self) -> list[ToHost]:
        """See ``Sandbox.receive``."""
        if self._fault is not None:
            raise self._fault
        try:
            while (data := await self._next()) is not None:
                received = self._inbox.feed(data)
                if received:
                    return received
            await self._end_of_frames()
        except FrameError as fault:
            self._fault = fault
            raise
        raise EndOfGuest(self._lost or "the guest's frames ended")

    async def wait(self) -> Exit:
        """See ``Sandbox.wait``."""
        async with self._waiting:
            if self._exit is None:
                with anyio.CancelScope() as self._waiter:
                    self._exit = await self._end()
        assert self._exit is not None
        return self._exit

    async def kill(self) -> Exit:
        """See ``Sandbox.kill``."""
        with anyio.CancelScope(shield=True):
            async with self._killing:
                if not self._released:
                    await self._kill()
        assert self._exit is not None
        return self._exit

    async def _kill(self) -> None:
        self._ending.set()
        removed = False
        with anyio.move_on_after(KILL_SECONDS) as patience:
            if self._exit is None:
                # Side by side: the engine answers a kill after the end, and the end comes after its streams were read.
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._signal)
                    await self.wait()
            self._attached.close()
            removed = await remove(self._engine, self.id)
        if patience.cancelled_caught and self._exit is None:
            self._exit = lost_exit(self._lost or "the engine does not say how it ended", self._attached.error_text())
            self._waiter.cancel()
        self._unread.clear()
        self._attached.close()
        self._released = True
        self._forget(self, removed)

    async def _signal(self) -> None:
        """Kill the container; note whether it was there to be killed."""
        self._killed = True
        try:
            async with self._engine.asked("end a guest", KILL_SECONDS) as docker:
                await docker.containers.container(self.id).kill()
        except EngineError as error:
            if error.status:
                self._killed = False
            else:
                self._lost = self._lost or str(error)

    async def _next(self) -> bytes | None:
        """Return the next bytes of frames, None when there will be no more."""
        if self._unread:
            await anyio.lowlevel.checkpoint()
            return self._unread.popleft()
        while True:
            with anyio.move_on_after(QUIET_SECONDS):
                return self._judged(await self._attached.read())
            if not await self._runs():
                return None

    def _judged(self, data: bytes | None) -> bytes | None:
        """Count what came on the error stream against the allowance of output as well."""
        if self._attached.noise > self._limits.output:
            self._noisy = True
            raise OutputError(over_allowance(self._attached.noise, self._limits.output) + ", on its error stream")
        return data

    async def _runs(self) -> bool:
        """Ask whether a silent guest still runs, and note why not."""
        try:
            state = await self._state()
        except EngineError as error:
            self._lost = str(error)
            return False
        if not state["Running"]:
            return False
        if state["Paused"] and self._paused:
            self._lost = "the container was paused from outside, and stayed so"
            return False
        self._paused = bool(state["Paused"])
        return True

    async def _end_of_frames(self) -> None:
        """Take the end of the stream, which is believed only together with the container's.

        Raises:
            FrameError: the guest ended, and cut off a frame.
        """
        if self._killed:
            return  # that may well cut off a frame
        try:
            self._inbox.end()
        except FrameError as fault:
            self._fault = fault
        if not self._lost:
            with anyio.move_on_after(CONFIRM_SECONDS) as patience:
                await self.wait()
            if patience.cancelled_caught:
                self._lost = "the guest's stream was cut off while the guest ran"
        if self._lost:
            self._fault = None
        if self._fault is not None:
            raise self._fault

    async def _end(self) -> Exit:
        """Wait for the container's end, while its streams are read to theirs, and say what it was."""
        exit_: Exit | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain)
            try:
                async with self._engine.asked("wait for a guest", math.inf):
                    await self._container.wait()
                state = await self._state()
                # A kill of our own explains itself.
                memory = not self._killed and await ran_out_of_memory(self._engine, self.id, state)
                with anyio.move_on_after(DRAIN_SECONDS):
                    await self._attached.ended.wait()
                exit_ = exit_of(
                    state,
                    self._limits,
                    text=self._text(),
                    killed=self._killed,
                    lost=bool(self._lost),
                    fault=self._fault,
                    exceeded=self._inbox.exceeded or self._noisy,
                    memory_event=memory,
                    sent=self._inbox.taken + self._attached.noise,
                )
            except EngineError as error:
                self._lost = self._lost or str(error)
            tasks.cancel_scope.cancel()
        return exit_ or lost_exit("", self._text())

    def _text(self) -> str:
        return "\n".join(filter(None, [self._attached.error_text().rstrip("\n"), self._lost]))

    async def _drain(self) -> None:
        """Read the streams on, so that an end is not held up; keep what a receiver may ask for, within bounds."""
        kept = 0
        while (data := await self._attached.read()) is not None:
            if data and not self._ending.is_set():
                kept += len(data)
                self._unread.append(data)
                if kept > _KEPT:
                    await self._ending.wait()

    async def _state(self) -> dict[str, Any]:
        async with self._engine.asked("describe a guest", CONFIRM_SECONDS):
            found: dict[str, Any] = (await self._container.show())["State"]
        return found


async def remove(engine: Engine, container: str) -> bool:
    """Remove a container, running or not; return whether it is gone."""
    try:
        async with engine.asked("remove a guest") as docker:
            await docker.containers.container(container).delete(force=True, v=True)
    except EngineError as error:
        return error.status == HTTPStatus.NOT_FOUND
    return True
