"""The arithmetic of bounds: numbers with infinities, and effects (contract.md, section 4, R03 and R05).

Everything is an upper bound; a lower bound is the upper bound of the negated quantity. An ``Effect`` is what a piece
of code does to such a bound ``x``: ``x -> max(x + gain, base)``. Appending is a gain of 1, an assignment a base, a
statement that touches nothing a gain of 0. Effects are closed under sequence, alternative and repetition, so that a
whole loop body is one effect too, and a bound follows from the structure of the code alone.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from tallystick.contract.scopes import Step, Steps

Number: TypeAlias = int | float
"""An integer, or an infinity: INF is "no bound", NEVER is the bound of what never happens."""

INF = math.inf
NEVER = -math.inf
_TOO_LARGE = 1 << 62


class Measure(Enum):
    """The quantity that is bounded from above."""

    __hash__ = object.__hash__  # members are single: their identity will do, at a tenth of the cost

    LENGTH = "the length"
    SHORTNESS = "the length, negated"
    UPPER = "the value"
    LOWER = "the value, negated"
    UNORDERED = "1 for a set"


_NEGATED = {
    Measure.LENGTH: Measure.SHORTNESS,
    Measure.SHORTNESS: Measure.LENGTH,
    Measure.UPPER: Measure.LOWER,
    Measure.LOWER: Measure.UPPER,
    Measure.UNORDERED: Measure.UNORDERED,
}


class Aspect(NamedTuple):
    """What is asked of a value: a measure of what lies at ``path`` inside it."""

    measure: Measure
    path: Steps = ()

    @property
    def negated(self) -> "Aspect":
        """The same with the negated quantity."""
        return Aspect(_NEGATED[self.measure], self.path)

    def of(self, measure: Measure) -> "Aspect":
        """Return the same with another measure."""
        return Aspect(measure, self.path)

    def under(self, *steps: Step) -> "Aspect":
        """Return what is asked of a value that holds this one behind ``steps``."""
        return Aspect(self.measure, (*steps, *self.path))

    def inside(self, steps: int = 1) -> "Aspect":
        """Return what is asked of the value that lies behind the first steps of the path."""
        return Aspect(self.measure, self.path[steps:])


LENGTH, SHORTNESS, UPPER, LOWER, UNORDERED = map(Aspect, Measure)


def plus(left: Number, right: Number) -> Number:
    """Add two bounds; what never happens stays so."""
    if NEVER in {left, right}:
        return NEVER
    return clamped(left + right)


def times(left: Number, right: Number) -> Number:
    """Multiply two counts."""
    return 0 if left <= 0 or right <= 0 else clamped(left * right)


def clamped(number: Number) -> Number:
    """Return a bound that is no smaller, and not so large that arithmetic on it takes long."""
    if number > _TOO_LARGE:
        return INF
    return number if number > -_TOO_LARGE or number == NEVER else -_TOO_LARGE


class Effect(NamedTuple):
    """``x -> max(x + gain, base)``."""

    gain: Number
    base: Number

    @property
    def is_constant(self) -> bool:
        """Whether the result does not depend on ``x``."""
        return self.gain == NEVER

    @property
    def bound(self) -> Number:
        """The constant, INF if there is none."""
        return self.base if self.gain == NEVER else INF

    def then(self, after: "Effect") -> "Effect":
        """Return the effect of this, and ``after`` behind it."""
        if after is NOTHING:
            return self
        return Effect(plus(self.gain, after.gain), max(plus(self.base, after.gain), after.base))

    def join(self, other: "Effect") -> "Effect":
        """Return the effect of this or ``other``, whichever happens."""
        return Effect(max(self.gain, other.gain), max(self.base, other.base))

    def repeated(self, times_at_most: Callable[[], Number]) -> "Effect":
        """Return the effect of this, any number of times up to a bound that is asked for only where it matters."""
        if self.gain <= 0:
            return Effect(0, self.base)
        count = times_at_most()
        if count <= 0:
            return NOTHING
        return Effect(times(self.gain, count), plus(self.base, times(self.gain, count - 1)))

    def plus(self, other: "Effect") -> "Effect":
        """Return the sum of two bounds, of which at most one may depend on ``x``."""
        if not self.is_constant and not other.is_constant:
            return UNBOUNDED
        gain = max(plus(self.gain, other.base), plus(other.gain, self.base))
        return Effect(gain, plus(self.base, other.base))

    def least(self, other: "Effect") -> "Effect":
        """Return a bound of whichever of the two is smaller."""
        if self.is_constant and other.is_constant:
            return self if self.base <= other.base else other
        if self.is_constant:
            return other if self.base == INF else self
        return self if other.base == INF else other


NOTHING = Effect(0, NEVER)
"""Nothing happens to the bound."""
UNBOUNDED = Effect(NEVER, INF)


def constant(number: Number) -> Effect:
    """Return the effect that makes the bound ``number``, whatever it was."""
    return Effect(NEVER, number)


def as_answer(effect: Effect, aspect: Aspect) -> Effect:
    """Return the effect as an answer to what was asked: what nothing is known of is not taken for a set."""
    return Effect(effect.gain, NEVER) if aspect.measure is Measure.UNORDERED and effect.base == INF else effect
