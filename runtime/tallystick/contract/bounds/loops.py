"""How often loops and comprehensions go round, and how often that repeats a place (contract.md, section 4, R03)."""

import ast
from typing import TYPE_CHECKING

from tallystick.contract.bounds.caps import Cap, Caps
from tallystick.contract.bounds.effect import INF, LENGTH, Number, plus, times
from tallystick.contract.bounds.outcome import Query
from tallystick.contract.scopes import COMPREHENSIONS, LOOPS, Comprehension, Kind, Loop, Place

if TYPE_CHECKING:
    from tallystick.contract.bounds.analysis import Bounds

_UNCAPPED = Cap(-1, INF)


class Loops:
    """Bounds of rounds and repetitions."""

    def __init__(self, bounds: "Bounds") -> None:
        self._bounds = bounds
        self._finder = Caps(bounds)
        self._caps: dict[Loop, list[Cap]] = {}

    def rounds(self, loop: Loop, index: int = -1) -> Number:
        """Return how often a loop goes round at most; of the statement ``index`` of its body, if one is given."""
        total = self._bounds.remembered(loop, lambda: self._find(loop))
        behind = (cap.rounds for cap in self._caps.get(loop, ()) if cap.behind < index)
        return min(total, *behind) if index > 0 and total < INF else total

    def _find(self, loop: Loop) -> Number:
        bounds = self._bounds
        bounds.may_go_on()
        bounds.depth += 1
        caps = self._caps[loop] = [_UNCAPPED, *self._finder.of(loop)]
        bounds.depth -= 1
        return min(cap.rounds for cap in caps if cap.behind < 0)

    def repetitions(self, place: Place) -> Number:
        """Return how often a place is executed in one run of its function at most."""
        total, index = self.within_statement(place), place.index
        for block, owner in place.owners():
            statement = owner.statement
            if isinstance(statement, LOOPS):
                if block.role == "body":
                    total = times(total, self.rounds(statement, index))
                elif block.role == "test":
                    total = times(total, plus(self.rounds(statement), 1))
            index = owner.index
        return total

    def within_statement(self, place: Place) -> Number:
        """Return how often the comprehensions around a place repeat it."""
        total: Number = 1
        while place.outer is not None:
            node = place.scope.node
            assert isinstance(node, COMPREHENSIONS)
            place = place.outer
            total = times(total, self.comprehension(node, place))
        return total

    def comprehension(self, node: Comprehension, place: Place) -> Number:
        """Return how many items a comprehension at ``place`` goes through at most."""
        inside = self._bounds.values.inside(node, place)
        total: Number = 1
        for number, generator in enumerate(node.generators):
            total = times(total, self._bounds.number(generator.iter, inside if number else place, LENGTH))
        return total

    def extends_itself(self, loop: ast.For | ast.AsyncFor, place: Place, *, surely: bool = False) -> bool:
        """Whether a ``for`` may append to the very list it goes through, so that it need not end.

        With ``surely``, only if what it goes through is a list: ``text += "."`` makes another string each time.
        """
        bounds = self._bounds
        for scope, name in bounds.aliases.origin(loop.iter, place).holders:
            changes = list(scope.changes.get(name, ()))
            if not surely or bounds.changes.is_list(scope, name):
                changes += [one for one in scope.definitions[name] if one.kind is Kind.AUGMENT]
            for change in changes:
                inside = change.place.function is place.function and loop in set(change.place.loops())
                if inside and bounds.definitions.effect(Query(scope, name, LENGTH), change).gain > 0:
                    return True
        return False
