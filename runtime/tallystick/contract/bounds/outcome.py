"""How code can end, and with what effect on a quantity (contract.md, section 4, R03)."""

from typing import NamedTuple

from tallystick.contract.bounds.effect import NEVER, NOTHING, UNBOUNDED, Aspect, Effect, constant
from tallystick.contract.scopes import Scope


class Query(NamedTuple):
    """A quantity: what is asked of the value of one variable."""

    scope: Scope
    name: str
    aspect: Aspect


class Outcome(NamedTuple):
    """The effect of code by how it ends; None where it cannot end so. ``during``: wherever it may be cut off."""

    normal: Effect | None
    breaks: Effect | None
    continues: Effect | None
    during: Effect

    @property
    def leaves(self) -> bool:
        """Whether this code never goes on, nor to the next round of its loop."""
        return self.normal is None and self.continues is None

    def behind(self, first: Effect | None) -> "Outcome":
        """Return the outcome of this code with ``first`` before it; None if the code is not reached."""
        if first is NOTHING:
            return self
        if first is None:
            return UNREACHED
        return Outcome(
            sequence(first, self.normal),
            sequence(first, self.breaks),
            sequence(first, self.continues),
            NOTHING.join(first.then(self.during)),
        )

    def join(self, other: "Outcome") -> "Outcome":
        """Return the outcome of this code or the other."""
        return Outcome(
            either(self.normal, other.normal),
            either(self.breaks, other.breaks),
            either(self.continues, other.continues),
            self.during.join(other.during),
        )


PASSES = Outcome(NOTHING, None, None, NOTHING)
LEAVES = Outcome(None, None, None, NOTHING)
BREAKS = Outcome(None, NOTHING, None, NOTHING)
CONTINUES = Outcome(None, None, NOTHING, NOTHING)
UNKNOWN = Outcome(UNBOUNDED, UNBOUNDED, UNBOUNDED, UNBOUNDED)
UNREACHED = Outcome(None, None, None, constant(NEVER))


def sequence(first: Effect | None, second: Effect | None) -> Effect | None:
    """Return the effect of one step and then another, None if either cannot be."""
    return None if first is None or second is None else first.then(second)


def either(left: Effect | None, right: Effect | None) -> Effect | None:
    """Return the effect of one way or another, of those that can be."""
    if left is None or right is None:
        return left if right is None else right
    return left.join(right)
