"""VI.B.f: the model of net benefit: what a repair of a fanout saves in time and money, at anybody's own figures."""

import msgspec

from tallystick.bench.frame import Table
from tallystick.bench.paper.line import Line

WIDTHS = (4, 8, 16, 32)


class Prices(msgspec.Struct, frozen=True):
    """Dollars and seconds of a call, rewrites that a repair takes, and seconds of each."""

    call_usd: float = 0.02
    call_seconds: float = 27.3
    rewrites: float = 1.19
    rewrite_seconds: float = 17.2


class Benefit(msgspec.Struct, frozen=True):
    """What a repair saves at a width: calls, dollars, seconds, and the dearest rewrite that still pays."""

    width: int
    calls: int
    usd: float
    seconds: float
    rewrite_usd: float


def benefit(width: int, prices: Prices) -> Benefit:
    """Apply the model: a repair replays N - 1 calls, and takes its rewrites."""
    saved = width - 1
    usd = saved * prices.call_usd
    seconds = saved * prices.call_seconds - prices.rewrites * prices.rewrite_seconds
    return Benefit(width, saved, usd, seconds, usd / prices.rewrites)


def as_the_paper() -> list[Line]:
    """Return the model at the paper's own figures."""
    image, video = Prices(), Prices(call_usd=0.5)
    lines = []
    for width, paper in ((4, "3 calls, 61 s, $0.05, $1.26"), (32, "31 calls, 826 s, $0.52, $13.03")):
        each, dear = benefit(width, image), benefit(width, video)
        ours = f"{each.calls} calls, {each.seconds:.0f} s, ${each.rewrite_usd:.2f}, ${dear.rewrite_usd:.2f}"
        lines.append(Line("VI.B.f", f"N = {width}: saved, and break-even of a rewrite (image, video)", paper, ours))
    return lines


def table(prices: Prices) -> Table:
    """Return the model at somebody's figures."""
    rows = tuple(
        (str(each.width), str(each.calls), f"{each.usd:.2f}", f"{each.seconds:.0f}", f"{each.rewrite_usd:.2f}")
        for each in (benefit(width, prices) for width in WIDTHS)
    )
    title = (
        f"net benefit of a repair at ${prices.call_usd:g} and {prices.call_seconds:g} s a call, {prices.rewrites:g} "
        f"rewrites of {prices.rewrite_seconds:g} s"
    )
    return Table(("N", "calls saved", "dollars saved", "seconds saved", "a rewrite may cost, dollars"), rows, title)
