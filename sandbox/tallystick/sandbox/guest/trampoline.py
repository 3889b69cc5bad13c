"""Steps a script's coroutines in a fixed order and turns what they await into calls.

No clock, no thread, no event loop: the calls that leave, and their order, follow from the script and from the
order of the answers. Identities do not even depend on that order: a path is owned by one branch at a time, and the
calls of one branch are in program order (contract.md, section 2).
"""

from collections import deque
from typing import Any, TypeAlias

from tallystick.sandbox.frames import MAX_STEPS, Call, Decided, Failure, FrameError, Reply, Won
from tallystick.sandbox.frames import Race as RaceOpened
from tallystick.sandbox.guest.joins import FanoutJoin, Join, RaceJoin, Task
from tallystick.sandbox.guest.requests import Body, Fanout, Invocation, Race, Step
from tallystick.sandbox.guest.values import CapabilityError

Sent: TypeAlias = Call | RaceOpened | Won


class Trampoline:
    """Runs one coroutine to its end. ``run`` steps whatever can be stepped and returns the frames to send."""

    def __init__(self, body: Body, nonce: str, window: int) -> None:
        self._nonce = nonce
        self._window = window
        self._ready: deque[tuple[Task, Any, Exception | None]] = deque()
        self._ready.append((Task(body), None, None))
        self._held: deque[tuple[Task, Invocation | Race]] = deque()
        self._in_flight: dict[int, Task] = {}
        self._races: dict[int, RaceJoin] = {}
        self._won: list[Won] = []
        self._occurrences: dict[tuple[str, tuple[Step, ...]], int] = {}
        self._last_id = 0
        self.outcome: tuple[Any, Exception | None] | None = None

    def answer(self, frame: Reply | Failure | Decided) -> None:
        """Take the answer to a call or a race; its branch goes on at the next ``run``.

        Raises:
            FrameError: nothing of this id is in flight.
        """
        task = self._in_flight.pop(frame.id, None)
        if task is None or isinstance(frame, Decided) != (frame.id in self._races):
            raise FrameError(f"an answer to call {frame.id}, which is not in flight")
        if isinstance(frame, Decided):
            self._decide(frame, self._races[frame.id])
        elif isinstance(frame, Reply):
            self._ready.append((task, frame.value, None))
        else:
            error = CapabilityError(frame.kind, frame.text)
            error.call_id = frame.id
            task.seen = (*task.seen, frame.id)
            self._ready.append((task, None, error))

    def run(self) -> list[Sent]:
        """Step every branch that can go on, in order, until all wait; return the frames that may leave now.

        Raises:
            BaseException: the script raised something that is no Exception; it ends the launch at once.
        """
        while self._ready:
            task, value, error = self._ready.popleft()
            if task.lost:
                task.drop()
            else:
                self._step(task, value, error)
        sent: list[Sent] = [*self._won]
        self._won.clear()
        while self._held and len(self._in_flight) < self._window:
            task, request = self._held.popleft()
            if task.lost:
                task.drop()
            else:
                sent.append(self._send(task, request))
        return sent

    def _step(self, task: Task, value: Any, error: Exception | None) -> None:
        try:
            request = task.body.send(value) if error is None else task.body.throw(error)
        except StopIteration as stop:
            self._settle(task, stop.value, None)
        except Exception as raised:  # noqa: BLE001 - a branch may end in any error; its parent gets it
            self._settle(task, None, raised)
        else:
            self._accept(task, request)

    def _accept(self, task: Task, request: object) -> None:
        if isinstance(request, Invocation):
            self._held.append((task, request))
        elif not isinstance(request, Fanout | Race):
            foreign = TypeError(f"only what ctx offers can be awaited; this awaited a {type(request).__name__}")
            self._ready.append((task, None, foreign))
        elif len(task.path) >= MAX_STEPS:
            deep = RuntimeError(f"{request} is nested in {MAX_STEPS} fanouts, which is the limit")
            self._ready.append((task, None, deep))
        elif isinstance(request, Race):
            self._held.append((task, request))
        else:
            join = FanoutJoin(task, request)
            self._resume(join)
            self._start(join, join.ready())

    def _start(self, join: Join, branches: list[int]) -> None:
        for index in branches:
            self._ready.append((join.start(index), None, None))

    def _resume(self, join: Join) -> None:
        """Let the await of a join go on if it has its outcome."""
        outcome = join.outcome()
        if outcome is not None:
            self._ready.append((join.parent, *outcome))

    def _settle(self, task: Task, value: Any, error: Exception | None) -> None:
        join = task.join
        if join is None:
            self.outcome = (value, error)
            return
        self._start(join, join.settle(task.index, value, error, task.seen))
        if isinstance(join, RaceJoin) and join.winner == task.index and not join.decided:
            self._in_flight[join.id] = join.parent
            self._won.append(Won(nonce=self._nonce, id=join.id, winner=task.index))
        self._resume(join)

    def _decide(self, frame: Decided, race: RaceJoin) -> None:
        """Start the branches of a race that was just opened, or let the await of one that was won go on."""
        if race.winner is None:
            self._start(race, race.open(frame.winner))
        else:
            race.decided = True
            self._resume(race)

    def _send(self, task: Task, request: Invocation | Race) -> Call | RaceOpened:
        place = (request.site, task.path)
        occurrence = self._occurrences.get(place, 0)
        self._occurrences[place] = occurrence + 1
        self._last_id += 1
        self._in_flight[self._last_id] = task
        if isinstance(request, Race):
            self._races[self._last_id] = RaceJoin(task, request, occurrence, self._last_id)
            return RaceOpened(
                nonce=self._nonce,
                id=self._last_id,
                site=request.site,
                path=task.path,
                occurrence=occurrence,
                width=len(request.branches),
            )
        return Call(
            nonce=self._nonce,
            id=self._last_id,
            site=request.site,
            path=task.path,
            occurrence=occurrence,
            capability=request.capability,
            payload=request.payload,
            take=request.take,
            seen=task.seen,
        )
