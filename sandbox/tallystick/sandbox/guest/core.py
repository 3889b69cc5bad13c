"""The guest as a pure state machine: host frames in, guest frames out. No descriptor, no process, no clock."""

from collections.abc import Coroutine, Iterable
from typing import Any, Literal

from tallystick.sandbox.frames import Crash, Done, FrameError, Start, Sync, Synced, ToGuest, ToHost
from tallystick.sandbox.guest.context import Context
from tallystick.sandbox.guest.log import LogSink
from tallystick.sandbox.guest.plain import NotPlainError, snapshot_result
from tallystick.sandbox.guest.script import ENTRY, crash, load, script_builtins
from tallystick.sandbox.guest.trampoline import Sent, Trampoline


class Guest:
    """One guest: takes one Start, then answers, until it has sent Done or Crash.

    Attributes:
        last: the frame it ended with, None while it runs.
    """

    def __init__(self, nonce: str) -> None:
        self.last: Done | Crash | None = None
        self._nonce = nonce
        self._log = LogSink(nonce)
        self._trampoline: Trampoline | None = None
        self._syncs: list[Synced] = []

    def feed(self, frames: Iterable[ToGuest]) -> list[ToHost]:
        """Take all answers that wait, step the script, and return every frame that follows, in order.

        Raises:
            FrameError: a second Start, an answer to a call that is not in flight, a frame of another launch, or
                anything after the end.
        """
        if self.last is not None:
            raise FrameError("a frame after the end")
        for frame in frames:
            self._take(frame)
        return self._advance()

    def _advance(self) -> list[ToHost]:
        calls = self._run(self._trampoline) if self._trampoline is not None else []
        end = [self.last] if self.last is not None else self._syncs  # the last word is an answer to every Sync
        sent: list[ToHost] = [*self._log.take(), *calls, *end]
        self._syncs.clear()
        return sent

    def _take(self, frame: ToGuest) -> None:
        if frame.nonce != self._nonce:
            raise FrameError("a frame of another launch")
        if isinstance(frame, Sync):
            self._syncs.append(Synced(nonce=self._nonce, id=frame.id))
        elif not isinstance(frame, Start):
            if self._trampoline is None:
                raise FrameError(f"a {type(frame).__name__} frame before Start")
            self._trampoline.answer(frame)
        elif self._trampoline is not None or self.last is not None:
            raise FrameError("a second Start frame")
        else:
            self._start(frame)

    def _start(self, frame: Start) -> None:
        phase: Literal["load", "run"] = "load"
        try:
            entry = load(frame.source, script_builtins(self._log.print))
            phase = "run"
            body: Any = entry(Context(self._log.print), frame.args)
            if not isinstance(body, Coroutine):
                raise TypeError(f"{ENTRY} must be 'async def {ENTRY}(ctx, args)'; it returned a {type(body).__name__}")  # noqa: TRY301 - told like any error of the script
        except BaseException as error:  # noqa: BLE001 - whatever a script raises ends the launch, not the guest
            self.last = crash(self._nonce, error, phase)
        else:
            self._trampoline = Trampoline(body, self._nonce, frame.window)

    def _run(self, trampoline: Trampoline) -> list[Sent]:
        try:
            calls = trampoline.run()
        except BaseException as error:  # noqa: BLE001 - SystemExit and its like, which no branch may keep to itself
            self.last = crash(self._nonce, error, "run")
            return []
        if trampoline.outcome is not None:
            self.last = self._end(*trampoline.outcome)
        return calls

    def _end(self, value: Any, error: Exception | None) -> Done | Crash:
        if error is not None:
            return crash(self._nonce, error, "run")
        try:
            return Done(nonce=self._nonce, value=snapshot_result(value))
        except NotPlainError as unfit:
            return crash(self._nonce, TypeError(str(unfit)), "result")
