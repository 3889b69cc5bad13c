"""Steps a script's coroutines in a fixed order and turns what they await into calls.

No clock, no thread, no event loop: the calls that leave, and their order, follow from the script and from the
order of the answers. Identities do not even depend on that order: a path is owned by one branch at a time, and the
calls of one branch are in program order (contract.md, section 2).
"""

from collections import deque
from typing import Any, TypeAlias

from tallystick.sandbox.frames import MAX_STEPS, Call, Failure, FrameError, Reply
from tallystick.sandbox.guest.requests import Body, Fanout, Invocation, Step
from tallystick.sandbox.guest.values import CapabilityError

Seen: TypeAlias = tuple[int, ...]

_NEVER = -(1 << 31)  # a branch that needs a failed one: it stays below zero however many others settle


class Task:
    """One running branch: its path, the failed calls it has seen, and where its outcome goes."""

    __slots__ = ("body", "index", "join", "path", "seen")

    def __init__(self, body: Body, path: tuple[Step, ...], seen: Seen, join: "Join | None", index: int) -> None:
        self.body = body
        self.path = path
        self.seen = seen
        self.join = join
        self.index = index


class Join:
    """One fanout under way: what has settled, what waits for others, and what its await ends in."""

    __slots__ = ("dependants", "errors", "fanout", "left", "missing", "parent", "seen", "values")

    def __init__(self, parent: Task, fanout: Fanout) -> None:
        count = len(fanout.nodes)
        self.parent = parent
        self.fanout = fanout
        self.values: list[Any] = [None] * count
        self.errors: list[Exception | None] = [None] * count
        self.seen: list[Seen] = [parent.seen] * count
        self.missing = [len(node.needs) for node in fanout.nodes]
        self.dependants: list[list[int]] = [[] for _ in fanout.nodes]
        for index, node in enumerate(fanout.nodes):
            for need in node.needs:
                self.dependants[need].append(index)
        self.left = count

    def ready(self) -> list[int]:
        """Return the branches that need no other."""
        return [index for index, missing in enumerate(self.missing) if not missing]

    def settle(self, index: int, value: Any, error: Exception | None, seen: Seen) -> list[int]:
        """Take a branch's outcome and return the branches that can start now, in their order.

        A branch that needs a failed one never starts; a tolerated failure is a value like any other.
        """
        self.seen[index] = seen
        if error is not None:
            value = self.fanout.tolerated(error)
            if value is None:
                self.errors[index] = error
                self._drop(index)
                return []
        self.values[index] = value
        self.left -= 1
        for dependant in self.dependants[index]:
            self.missing[dependant] -= 1
        return [dependant for dependant in self.dependants[index] if not self.missing[dependant]]

    def start(self, index: int) -> Task:
        """Return the task of one branch. It has seen what its parent and the branches it needs have seen."""
        node = self.fanout.nodes[index]
        seen = _merged([self.parent.seen, *(self.seen[need] for need in node.needs)])
        body = node.start([self.values[need] for need in node.needs])
        return Task(body, (*self.parent.path, node.step), seen, self, index)

    def outcome(self) -> tuple[Any, Exception | None]:
        """Return, once, what the await gives: the values, or the first error in the order of the branches."""
        error = next((error for error in self.errors if error is not None), None)
        self.errors.clear()  # an error holds the frames that it passed, and with them all of this
        return (None, error) if error is not None else (self.fanout.shape(self.values), None)

    def _drop(self, failed: int) -> None:
        dropped = {failed}
        pending = [failed]
        while pending:
            for dependant in self.dependants[pending.pop()]:
                if dependant not in dropped and self.missing[dependant] > 0:
                    dropped.add(dependant)
                    pending.append(dependant)
                    self.missing[dependant] = _NEVER
        self.left -= len(dropped)


class Trampoline:
    """Runs one coroutine to its end. ``run`` steps whatever can be stepped and returns the calls to send."""

    def __init__(self, body: Body, nonce: str, window: int) -> None:
        self._nonce = nonce
        self._window = window
        self._ready: deque[tuple[Task, Any, Exception | None]] = deque()
        self._ready.append((Task(body, (), (), None, 0), None, None))
        self._held: deque[tuple[Task, Invocation]] = deque()
        self._in_flight: dict[int, Task] = {}
        self._occurrences: dict[tuple[str, tuple[Step, ...]], int] = {}
        self._last_id = 0
        self.outcome: tuple[Any, Exception | None] | None = None

    def answer(self, frame: Reply | Failure) -> None:
        """Take the answer to a call; its branch goes on at the next ``run``.

        Raises:
            FrameError: no call of this id is in flight.
        """
        task = self._in_flight.pop(frame.id, None)
        if task is None:
            raise FrameError(f"an answer to call {frame.id}, which is not in flight")
        if isinstance(frame, Reply):
            self._ready.append((task, frame.value, None))
            return
        error = CapabilityError(frame.kind, frame.text)
        error.call_id = frame.id
        task.seen = (*task.seen, frame.id)
        self._ready.append((task, None, error))

    def run(self) -> list[Call]:
        """Step every branch that can go on, in order, until all wait; return the calls that may leave now.

        Raises:
            BaseException: the script raised something that is no Exception; it ends the launch at once.
        """
        while self._ready:
            self._step(*self._ready.popleft())
        calls = []
        while self._held and len(self._in_flight) < self._window:
            calls.append(self._sent(*self._held.popleft()))
        return calls

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
        elif not isinstance(request, Fanout):
            foreign = TypeError(f"only what ctx offers can be awaited; this awaited a {type(request).__name__}")
            self._ready.append((task, None, foreign))
        elif len(task.path) >= MAX_STEPS:
            deep = RuntimeError(f"{request} is nested in {MAX_STEPS} fanouts, which is the limit")
            self._ready.append((task, None, deep))
        else:
            self._fan_out(Join(task, request))

    def _fan_out(self, join: Join) -> None:
        if not join.left:
            self._ready.append((join.parent, *join.outcome()))
        for index in join.ready():
            self._ready.append((join.start(index), None, None))

    def _settle(self, task: Task, value: Any, error: Exception | None) -> None:
        join = task.join
        if join is None:
            self.outcome = (value, error)
            return
        for index in join.settle(task.index, value, error, task.seen):
            self._ready.append((join.start(index), None, None))
        if not join.left:
            join.parent.seen = _merged([join.parent.seen, *join.seen])
            self._ready.append((join.parent, *join.outcome()))

    def _sent(self, task: Task, invocation: Invocation) -> Call:
        place = (invocation.site, task.path)
        occurrence = self._occurrences.get(place, 0)
        self._occurrences[place] = occurrence + 1
        self._last_id += 1
        self._in_flight[self._last_id] = task
        return Call(
            nonce=self._nonce,
            id=self._last_id,
            site=invocation.site,
            path=task.path,
            occurrence=occurrence,
            capability=invocation.capability,
            payload=invocation.payload,
            take=invocation.take,
            seen=task.seen,
        )


def _merged(parts: list[Seen]) -> Seen:
    """Return the ids of all parts, each once, in the order of the calls."""
    if not any(parts):
        return ()
    return tuple(sorted({call_id for part in parts for call_id in part}))
