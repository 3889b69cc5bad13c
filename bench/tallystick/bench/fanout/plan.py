"""What may be run within a cap, and what it would cost: decided before anything is spent."""

from collections.abc import Sequence

import msgspec

from tallystick.contract.capability import usd
from tallystick.contract.errors import UsageError

#: No provider takes more at once, and no purse.
MAX_WIDTH = 1_000


class Plan(msgspec.Struct, frozen=True):
    """Which widths are run, which are left out for they do not fit under the cap, and what it takes.

    Attributes:
        widths: of the fanouts that are run, in this order, each so often as it is repeated.
        left_out: those that do not fit.
        calls: that are made, the ones that fail included.
        estimate: micro-dollars; each call at the price, those that fail included, for that is what is set aside.
        cap: micro-dollars that are never exceeded.
    """

    widths: tuple[int, ...]
    left_out: tuple[int, ...]
    calls: int
    estimate: int
    cap: int


def calls_of(width: int) -> int:
    """Return how many calls an episode of a width makes: the failed launch, its repair, and the run from nothing."""
    return width + 1 + width


def plan(widths: Sequence[int], repeats: int, price: int, cap: int, *, trial: int = 1) -> Plan:
    """Take the widths in order, each with all its repeats, as long as they fit under the cap.

    Args:
        widths: of the fanouts.
        repeats: how often each is run.
        price: micro-dollars that one call may cost.
        cap: micro-dollars.
        trial: calls that are made before, to see what one costs.

    Raises:
        UsageError: not even the first one fits; nothing was spent.
    """
    taken: list[int] = []
    calls = trial
    for width in widths:
        more = calls_of(width) * repeats
        if (calls + more) * price > cap:
            break
        taken += [width] * repeats
        calls += more
    if not taken:
        need = (trial + calls_of(widths[0]) * repeats) * price
        raise UsageError(
            f"a fanout of {widths[0]} may take {usd(need)}, at {usd(price)} a call, and the cap is {usd(cap)}; "
            "nothing was spent",
            hint=f"raise --max-spend to {need / 1e6:g}, or begin with a smaller --n",
        )
    return Plan(tuple(taken), tuple(widths[len(taken) // repeats :]), calls, calls * price, cap)


def widths_of(text: str) -> tuple[int, ...]:
    """Read ``4,8,16``.

    Raises:
        ValueError: it is no list of whole numbers from 2 to ``MAX_WIDTH``, in rising order.
    """
    widths = tuple(int(each) for each in text.split(","))
    if list(widths) != sorted(set(widths)) or widths[0] < 2 or widths[-1] > MAX_WIDTH:  # noqa: PLR2004 - one fails, one is kept
        raise ValueError(text)
    return widths
