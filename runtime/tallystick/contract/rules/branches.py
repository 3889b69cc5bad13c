"""Which functions run in the branches of a fanout, and in whose lifetime: for R09."""

import ast
from collections.abc import Iterator

from tallystick.contract.bounds.aliases import may_follow
from tallystick.contract.rules.rule import Evidence
from tallystick.contract.scopes import Place, Scope
from tallystick.contract.survey import FANOUTS, method_of

_NOBODY: frozenset[str] = frozenset()


class Branches:
    """The branches of a script.

    Attributes:
        exist: whether there are any.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._entering: dict[tuple[Scope, Scope], frozenset[str]] = {}
        self._races = [place for call, place in evidence.survey.context_calls if method_of(call) == "race"]
        self.exist = any(method_of(call) in FANOUTS for call, _ in evidence.survey.context_calls)

    def entering(self, function: Scope, owner: Scope) -> frozenset[str]:
        """Return by which fanouts a function may run in a branch that was started while ``owner`` was running.

        Returns:
            Names of methods of ``ctx``; ``call`` where a branch may be started by any of them.
        """
        key = function, owner
        if key not in self._entering:
            self._entering[key] = self._enter(function, owner, frozenset())
        return self._entering[key]

    def _enter(self, function: Scope, owner: Scope, seen: frozenset[Scope]) -> frozenset[str]:
        if function is owner or function in seen:
            return _NOBODY
        found: set[str] = set()
        for reference in self._evidence.bounds.callers.references(function):
            fanout = reference.place.fanout
            if fanout is not None:
                found.add(method_of(fanout))
            elif reference.kind in {"stage", "node"}:
                found.add("call")
            elif reference.kind == "call" and self._is_left_running(reference.node, function):
                found.add("race" if self._is_raced(reference.place) else "call")
            found |= self._enter(reference.place.function, owner, seen | {function})
        return frozenset(found)

    def may_follow_a_race(self, place: Place) -> bool:
        """Whether a place may be reached after a race has begun; True where that is not known."""
        return any(race.function is not place.function or may_follow(place, race) for race in self._races)

    def _is_left_running(self, call: ast.expr, function: Scope) -> bool:
        return isinstance(function.node, ast.AsyncFunctionDef) and call not in self._evidence.survey.awaited

    def _is_raced(self, place: Place) -> bool:
        """Whether a coroutine that is kept under a name may be handed to a race under it."""
        kept = set(_kept_under(place.statement))
        raced = (call.args[0] for call, _ in self._evidence.survey.context_calls if method_of(call) == "race" and call.args)
        return any(isinstance(name, ast.Name) and name.id in kept for name in raced)


def _kept_under(statement: ast.stmt | None) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            yield name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            yield name
