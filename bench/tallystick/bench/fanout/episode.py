"""One episode: a fanout of which one call fails, its repair on the same run, and the repaired script from nothing."""

import time
from collections.abc import Awaitable
from typing import Any

import msgspec

from tallystick.bench.engine import Engine
from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import MICROS_PER_USD, usd
from tallystick.contract.history import History
from tallystick.engine.call_stops import NOT_SENT
from tallystick.engine.messages import RunReport

IMAGE = "image.generate"
SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(prompt):
        return await ctx.run("image.generate", {"prompt": prompt, **args["more"]})

    return await ctx.parallel([shot(prompt) for prompt in args["prompts"][:WIDTH]])
"""
REPAIRED = SCRIPT.replace(
    "    async def shot(prompt):\n",
    """\
    async def shot(prompt):
        if prompt == args["bad"]:
            prompt = args["instead"]
""",
)


class Side(msgspec.Struct, frozen=True):
    """What one way to the whole result took. ``usd`` is a lower bound where calls are ``unpriced``."""

    calls: int
    images: int
    usd: float
    unpriced: int
    seconds: float

    def __add__(self, other: "Side") -> "Side":
        """Return both, one after the other."""
        return Side(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class Compared(msgspec.Struct, frozen=True):
    """An episode: the contract's way and the full rerun's, which have the failed launch in common."""

    width: int
    replayed: int
    contract: Side
    rerun: Side
    runs: tuple[str, str]


class EpisodeError(Exception):
    """An episode did not go as it has to, and nothing more is started."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for in an episode.

    ``bad`` is the prompt that the provider refuses; None has the call fail on demand, which ``local`` does. ``more``
    goes into each payload. ``price`` is what is set aside for a call, in micro-dollars.
    """

    width: int
    subject: str
    bad: str | None
    more: dict[str, Any]
    concurrency: int
    price: int

    @property
    def failing(self) -> int:
        """The branch that fails."""
        return self.width // 2

    @property
    def args(self) -> dict[str, Any]:
        """The args of the script and of its repair."""
        prompts = [f"{self.subject}, view {number + 1} of {self.width}" for number in range(self.width)]
        instead = prompts[self.failing]
        if self.bad is not None:
            prompts[self.failing] = self.bad
        return {"prompts": prompts, "bad": self.bad, "instead": instead, "more": self.more}


async def trial(engine: Engine, order: Order, left: int) -> None:
    """Make one call alone, to see what one costs before many are in flight.

    Raises:
        EpisodeError: it failed, or cost more than is set aside for one.
    """
    limits = {"budget_usd": left / MICROS_PER_USD}
    args = {"prompts": [order.subject], "bad": None, "instead": "", "more": order.more}
    report = await engine.run(SCRIPT.replace("WIDTH", "1"), args, grants=(IMAGE,), limits=limits, name="one call")
    if report.status != "completed":
        raise _otherwise(report, "one call with a result")
    _refuse_dear(await engine.history(report.run), order)


async def episode(engine: Engine, order: Order, left: int) -> Compared:
    """Run an episode with ``left`` micro-dollars, which neither of its runs goes beyond.

    Raises:
        EpisodeError: the call that has to fail did not, or another one did.
    """
    width = order.width
    limits = {"budget_usd": left / MICROS_PER_USD, "concurrency": order.concurrency}
    options: dict[str, Any] = {"grants": (IMAGE,), "limits": limits, "name": f"fanout of {width}"}
    faults = () if order.bad is not None else (f"{IMAGE}:{order.failing + 1}:invalid_request",)
    script, repaired = (text.replace("WIDTH", str(width)) for text in (SCRIPT, REPAIRED))

    failed, took = await _timed(engine.run(script, order.args, faults=faults, **options))
    history = await engine.history(failed.run)
    first = _side(history, took)
    if (failed.calls.executed, failed.calls.failed) != (width - 1, 1):
        raise _otherwise(failed, f"{width - 1} calls with a result and one that fails")
    _refuse_dear(history, order)

    resumed, took = await _timed(engine.resume(failed.run, repaired))
    history = await engine.history(failed.run)
    contract = _side(history, first.seconds + took)
    if (resumed.status, resumed.calls.replayed) != ("completed", width - 1):
        raise _otherwise(resumed, f"a repair that replays {width - 1} calls")
    _refuse_dear(history, order)

    options["limits"] = {**limits, "budget_usd": max(left - taken(history), 1) / MICROS_PER_USD}
    anew, took = await _timed(engine.run(repaired, order.args, **options))
    if anew.status != "completed":
        raise _otherwise(anew, "a run of the repaired script from nothing")
    rerun = first + _side(await engine.history(anew.run), took)
    return Compared(width, resumed.calls.replayed, contract, rerun, (failed.run, anew.run))


def taken(history: History) -> int:
    """Return what a run has taken of a cap, in micro-dollars: what it has spent, and what it may turn out to have."""
    return history.spent + history.held


def _refuse_dear(history: History, order: Order) -> None:
    dearest = max((attempt.cost or 0 for attempt in history.attempts.values()), default=0)
    if dearest > order.price:
        raise EpisodeError(
            f"a call cost {usd(dearest)}, and {usd(order.price)} were set aside for each, so the cap might not hold "
            f"and nothing more was started; give --price {dearest / MICROS_PER_USD:g} or more"
        )


async def _timed(work: Awaitable[RunReport]) -> tuple[RunReport, float]:
    began = time.perf_counter()
    report = await work
    return report, time.perf_counter() - began


def sent(history: History) -> list[Attempt]:
    """Return the calls of a run: its attempts without those that never left."""
    return [each for each in history.attempts.values() if not each.text.startswith(NOT_SENT)]


def _side(history: History, seconds: float) -> Side:
    """Count what a run has taken until now."""
    calls = sent(history)
    images = sum(len(record.result.inline["images"]) for record in history.records.values())
    spent = sum(each.cost or 0 for each in calls)
    return Side(len(calls), images, spent / MICROS_PER_USD, sum(each.cost is None for each in calls), seconds)


def _otherwise(report: RunReport, wanted: str) -> EpisodeError:
    calls = report.calls
    said = f": {report.error.message}" if report.error is not None else ""
    return EpisodeError(
        f"run {report.run} was to be {wanted}, and is {report.status} with {calls.executed} calls executed, "
        f"{calls.replayed} replayed, {calls.failed} failed{said}"
    )
