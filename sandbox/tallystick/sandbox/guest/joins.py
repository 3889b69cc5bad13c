"""What a branch belongs to while it runs: a fanout that waits for all of its branches, or a race for one.

A join knows what has settled and what its await ends in; the trampoline steps the branches.
"""

from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from tallystick.sandbox.guest.requests import Body, Fanout, Race, Step, discard

Seen: TypeAlias = tuple[int, ...]
Outcome: TypeAlias = tuple[Any, Exception | None]

_NEVER = -(1 << 31)  # a branch that needs a failed one: it stays below zero however many others settle


class Join(Protocol):
    """What a task settles into."""

    parent: "Task"

    def settle(self, index: int, value: Any, error: Exception | None, seen: Seen) -> list[int]:
        """Take a branch's outcome and return the branches that can start now, in their order."""

    def start(self, index: int) -> "Task":
        """Return the task of one branch."""

    def outcome(self) -> Outcome | None:
        """Return what the await gives, or None while it waits."""


class Task:
    """One running branch: its path, the failed calls it has seen, and where its outcome goes.

    ``racing`` is the innermost race that it is part of, with the branch of it; None outside of races.
    """

    __slots__ = ("body", "given", "index", "join", "path", "racing", "seen")

    def __init__(
        self,
        body: Body,
        *,
        path: tuple[Step, ...] = (),
        seen: Seen = (),
        join: Join | None = None,
        index: int = 0,
        racing: "tuple[RaceJoin, int] | None" = None,
        given: Any = None,
    ) -> None:
        self.body = body
        self.path = path
        self.seen = seen
        self.join = join
        self.index = index
        self.racing = racing
        self.given = given

    @property
    def lost(self) -> bool:
        """Whether a race around this branch was won by another."""
        racing = self.racing
        while racing is not None:
            race, index = racing
            if race.winner not in (None, index):
                return True
            racing = race.parent.racing
        return False

    def drop(self) -> None:
        """End a branch that nobody waits for. What its script does about it is its own affair."""
        with suppress(BaseException):
            self.body.close()
        discard(self.given)


class FanoutJoin:
    """One fanout under way: what has settled, what waits for others, and what its await ends in."""

    def __init__(self, parent: Task, fanout: Fanout) -> None:
        count = len(fanout.nodes)
        self.parent = parent
        self._fanout = fanout
        self._values: list[Any] = [None] * count
        self._errors: list[Exception | None] = [None] * count
        self._seen: list[Seen] = [parent.seen] * count
        self._missing = [len(node.needs) for node in fanout.nodes]
        self._dependants: list[list[int]] = [[] for _ in fanout.nodes]
        for index, node in enumerate(fanout.nodes):
            for need in node.needs:
                self._dependants[need].append(index)
        self._left = count

    def ready(self) -> list[int]:
        """Return the branches that need no other."""
        return [index for index, missing in enumerate(self._missing) if not missing]

    def settle(self, index: int, value: Any, error: Exception | None, seen: Seen) -> list[int]:
        """Take a branch's outcome and return the branches that can start now, in their order.

        A branch that needs a failed one never starts; a tolerated failure is a value like any other.
        """
        self._seen[index] = seen
        if error is not None:
            value = self._fanout.tolerated(error)
            if value is None:
                self._errors[index] = error
                self._drop(index)
                return []
        self._values[index] = value
        self._left -= 1
        for dependant in self._dependants[index]:
            self._missing[dependant] -= 1
        return [dependant for dependant in self._dependants[index] if not self._missing[dependant]]

    def start(self, index: int) -> Task:
        """Return the task of one branch. It has seen what its parent and the branches it needs have seen."""
        node = self._fanout.nodes[index]
        seen = merged([self.parent.seen, *(self._seen[need] for need in node.needs)])
        body = node.start([self._values[need] for need in node.needs])
        path = (*self.parent.path, node.step)
        return Task(body, path=path, seen=seen, join=self, index=index, racing=self.parent.racing, given=node.given)

    def outcome(self) -> Outcome | None:
        """Return the values, or the first error in the order of the branches; None while some run."""
        if self._left:
            return None
        self.parent.seen = merged([self.parent.seen, *self._seen])
        error = next((error for error in self._errors if error is not None), None)
        return (None, error) if error is not None else (self._fanout.shape(self._values), None)

    def _drop(self, failed: int) -> None:
        dropped = {failed}
        pending = [failed]
        while pending:
            for dependant in self._dependants[pending.pop()]:
                if dependant not in dropped and self._missing[dependant] > 0:
                    dropped.add(dependant)
                    pending.append(dependant)
                    self._missing[dependant] = _NEVER
        self._left -= len(dropped)


class RaceJoin:
    """One race under way. Its winner is known from the journal, or it is the first branch to succeed.

    Attributes:
        winner: the branch that won, None while none has.
        id: what its frames carry.
        decided: whether the host knows it, so that the await may go on.
    """

    def __init__(self, parent: Task, race: Race, occurrence: int, race_id: int) -> None:
        self.parent = parent
        self.id = race_id
        self.winner: int | None = None
        self.decided = False
        self._race = race
        self._occurrence = occurrence
        self._settled: dict[int, tuple[Any, Exception | None, Seen]] = {}

    def open(self, winner: int | None) -> list[int]:
        """Take the host's word on an earlier winner and return the branches to start: all, or that one alone."""
        if winner is None:
            return list(range(len(self._race.branches)))
        self._win(winner)
        self.decided = True
        return [winner]

    def settle(self, index: int, value: Any, error: Exception | None, seen: Seen) -> list[int]:
        """Take a branch's outcome; the first success wins."""
        self._settled[index] = (value, error, seen)
        if error is None and self.winner is None:
            self._win(index)
        return []

    def start(self, index: int) -> Task:
        """Return the task of one branch."""
        node = self._race.node(self._occurrence, index)
        path = (*self.parent.path, node.step)
        return Task(
            node.start([]),
            path=path,
            seen=self.parent.seen,
            join=self,
            index=index,
            racing=(self, index),
            given=node.given,
        )

    def outcome(self) -> Outcome | None:
        """Return the winner's value, or the first error by position when all have failed; None while it waits."""
        if self.winner is not None:
            if not self.decided or self.winner not in self._settled:
                return None
            value, error, seen = self._settled[self.winner]
            self.parent.seen = merged([self.parent.seen, seen])
            return value, error
        if len(self._settled) < len(self._race.branches):
            return None
        outcomes = [self._settled[index] for index in range(len(self._race.branches))]
        self.parent.seen = merged([self.parent.seen, *(seen for _, _, seen in outcomes)])
        return None, outcomes[0][1]

    def _win(self, winner: int) -> None:
        self.winner = winner
        for index, branch in enumerate(self._race.branches):
            if index != winner:
                discard(branch)


def merged(parts: list[Seen]) -> Seen:
    """Return the ids of all parts, each once, in the order of the calls."""
    if not any(parts):
        return ()
    return tuple(sorted({call_id for part in parts for call_id in part}))
