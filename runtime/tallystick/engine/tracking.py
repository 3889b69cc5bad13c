"""What a provider tells of a call before its end, written down before it goes on (contract.md, section 6.2)."""

from typing import Any

from tallystick.contract.events import AttemptAnswered, AttemptStarted, AttemptSubmitted
from tallystick.engine import fault_points, outcomes
from tallystick.engine.journal import Journal
from tallystick.engine.results import ResultKeeper
from tallystick.kernel import Clock


class JournalTracker:
    """See ``providers.protocol.Tracker``: each method returns when the fact is durable, or raises ``StoreError``."""

    def __init__(self, started: AttemptStarted, journal: Journal, keeper: ResultKeeper, clock: Clock) -> None:
        self._started = started
        self._journal = journal
        self._keeper = keeper
        self._clock = clock

    async def submitted(self, job: str) -> None:
        """Write down the provider's id of the work."""
        started, known = self._started, outcomes.job_id(job)
        if known is None:
            return
        await self._journal.append(
            [AttemptSubmitted(run=started.run, at=self._clock.now(), attempt=started.attempt, job=known)]
        )
        fault_points.reach(fault_points.SUBMITTED)

    async def answered(self, raw: Any, cost: int | None) -> None:
        """Keep the answer with its cost."""
        started, kept = self._started, await self._keeper.keep_raw(raw)
        answered = AttemptAnswered(
            run=started.run, at=self._clock.now(), attempt=started.attempt, raw=kept, cost=outcomes.micros(cost)
        )
        await self._journal.append([answered])
        fault_points.reach(fault_points.LINKS_KNOWN)
