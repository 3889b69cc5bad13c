"""Figures of interleaved rounds: medians, their spread, and ratios that are taken within each round."""

import statistics
from collections.abc import Sequence

import msgspec

_FEW = 4


class Spread(msgspec.Struct, frozen=True):
    """The median of what the rounds gave, the middle half of it, and each of them."""

    median: float
    low: float
    high: float
    rounds: tuple[float, ...]

    def shown(self, digits: int = 2) -> str:
        """Return ``2.10 (2.02-2.31)``: the median with the middle half."""
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f}-{self.high:,.{digits}f})"


def spread(rounds: Sequence[float]) -> Spread:
    """Sum up what rounds gave, one figure each."""
    if len(rounds) < _FEW:
        low, high = min(rounds), max(rounds)
    else:
        low, _, high = statistics.quantiles(rounds, n=4)
    return Spread(statistics.median(rounds), low, high, tuple(rounds))


def ratio(ours: Sequence[float], control: Sequence[float]) -> Spread:
    """Divide round by round: what slowed the machine down in a round slowed both, and cancels out."""
    return spread([one / other for one, other in zip(ours, control, strict=True)])
