"""What a run has cost, by what and where, read off its history: pure functions.

A cost that nobody knows is counted, and never as zero: each line says how many of its calls came without a price.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from tallystick.contract.attempts import Attempt
from tallystick.contract.candidates import Candidate
from tallystick.contract.capability import MICROS_PER_USD
from tallystick.contract.history import History, Launch
from tallystick.engine.live_run import LiveRun
from tallystick.engine.money_messages import CostLine, CostReport, LaunchCost

MODELS = "models"


def cost_report(history: History, live: LiveRun | None = None) -> CostReport:
    """Report what a run has cost; ``live`` knows what the replays of a launch that goes on had cost."""
    attempts = list(history.attempts.values())
    models = list(history.candidates.values())
    launches = tuple(_launch_cost(launch, attempts, live) for launch in history.launches.values())
    total = _line("", attempts, models)
    return CostReport(
        run=history.run,
        total=total,
        by_capability=_grouped(attempts, lambda attempt: attempt.started.capability, models),
        by_site=_grouped(attempts, lambda attempt: attempt.started.identity.site, models),
        by_outcome=_grouped(attempts, lambda attempt: attempt.state, models),
        by_launch=launches,
        rerun_usd=_dollars(history.spent + round(sum(one.saved_usd for one in launches) * MICROS_PER_USD)),
        rerun_unpriced=total.unpriced + sum(one.saved_unpriced for one in launches),
    )


def _grouped(
    attempts: Iterable[Attempt], name_of: Callable[[Attempt], str], models: list[Candidate]
) -> tuple[CostLine, ...]:
    groups: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[name_of(attempt)].append(attempt)
    lines = [_line(name, group, []) for name, group in groups.items()]
    lines.sort(key=lambda line: (-line.usd, line.name))
    return (*lines, *([_line(MODELS, [], models)] if models else []))


def _launch_cost(launch: Launch, attempts: Iterable[Attempt], live: LiveRun | None) -> LaunchCost:
    number, ended = launch.started.launch, launch.ended
    own = [attempt for attempt in attempts if attempt.started.launch == number]
    saved = unpriced = replayed = 0
    if ended is not None:
        saved, unpriced, replayed = ended.saved, ended.saved_unpriced, ended.replayed
    elif live is not None:
        saved, unpriced, replayed = live.saved, live.saved_unpriced, live.calls.replayed
    return LaunchCost(
        launch=number,
        revision=launch.started.revision,
        paid=_line(str(number), own, []),
        replayed=replayed,
        saved_usd=_dollars(saved),
        saved_unpriced=unpriced,
    )


def _line(name: str, attempts: list[Attempt], models: list[Candidate]) -> CostLine:
    paid: list[Attempt | Candidate] = [*attempts, *models]
    # What is in flight has no cost yet, which is another thing than one that nobody knows.
    over = [one for one in paid if one.state not in ("in_flight", "asked")]
    return CostLine(
        name=name,
        calls=len(paid),
        usd=_dollars(sum(one.cost or 0 for one in paid)),
        unpriced=sum(one.cost is None for one in over),
        reserved_usd=_dollars(sum(one.held for one in paid)),
        tokens=sum(attempt.tokens or 0 for attempt in attempts),
    )


def _dollars(micros: int) -> float:
    return micros / MICROS_PER_USD
