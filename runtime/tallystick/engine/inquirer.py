"""Asking providers what became of calls whose outcome nobody knows (contract.md, section 6.2).

Asking is free. Whatever a provider can answer closes the attempt: applied commits it, refused fails it. That it knows
no such call counts only after the time in which the request may still be under way. An answer that was kept is read
again before anything new is sent.
"""

from collections.abc import Mapping

import anyio

from tallystick.contract.attempts import Attempt
from tallystick.contract.errors import StoreError
from tallystick.contract.events import AnyEvent, AttemptAnswered, AttemptFound, Committed
from tallystick.contract.history import History
from tallystick.engine import outcomes
from tallystick.engine.config import CapabilityPolicy
from tallystick.engine.hearing import heard, own_copy
from tallystick.engine.journal import Journal
from tallystick.engine.provider_bench import ProviderBench
from tallystick.engine.results import ResultKeeper, UnusableResultError
from tallystick.engine.retries import may_resend, shown
from tallystick.kernel import Clock
from tallystick.providers.protocol import (
    Absent,
    LooksUp,
    Outcome,
    Provider,
    Refused,
    Reprocesses,
    Succeeded,
    Unknown,
    Unusable,
)
from tallystick.providers.registry import ProviderSetupError

#: How many attempts are asked after at once.
AT_ONCE = 8
#: Seconds for the provider of a capability that has no policy any more.
DEFAULT_TIME = 600.0


class Inquirer:
    """Asks after attempts and writes down what is found."""

    def __init__(
        self,
        *,
        bench: ProviderBench,
        policies: Mapping[str, CapabilityPolicy],
        journal: Journal,
        keeper: ResultKeeper,
        clock: Clock,
    ) -> None:
        self._bench = bench
        self._policies = policies
        self._journal = journal
        self._keeper = keeper
        self._clock = clock

    async def ask_all(self, history: History) -> dict[int, str]:
        """Ask after every unresolved attempt of a run; return what was said of those that stay so.

        Raises:
            StoreError: what was found could not be written down.
        """
        said: dict[int, str] = {}
        broken: list[StoreError] = []
        turns = anyio.CapacityLimiter(AT_ONCE)

        async def ask(attempt: Attempt) -> None:
            async with turns:
                try:
                    said[attempt.started.attempt] = await self.ask(attempt)
                except StoreError as error:
                    broken.append(error)

        async with anyio.create_task_group() as tasks:
            for attempt in history.unresolved:
                tasks.start_soon(ask, attempt)
        if broken:
            raise broken[0]
        return {attempt.started.attempt: said[attempt.started.attempt] for attempt in history.unresolved}

    async def ask(self, attempt: Attempt) -> str:
        """Ask after one unresolved attempt and write down what is found; return the answer in words, "" for none.

        Raises:
            StoreError: it could not be written down.
        """
        provider = await self._provider(attempt)
        if provider is None:
            return ""
        found = await self._looked_up(attempt, provider)
        match found:
            case Succeeded() | Refused() | Unusable():
                await self._close(attempt, found)
                return ""
            case Absent(text=text):
                return text
        if found.raw is not None and attempt.raw is None:
            await self._keep(attempt, found)
        return found.reason

    async def can_answer(self, attempt: Attempt) -> bool:
        """Whether its provider can be asked after an attempt, can read its kept answer, or would know its key."""
        provider = await self._provider(attempt)
        return provider is not None and (
            isinstance(provider, LooksUp)
            or (isinstance(provider, Reprocesses) and attempt.raw is not None)
            or provider.profile.dedupes_keys > 0
        )

    async def resendable(self, history: History) -> frozenset[int]:
        """Return the unresolved attempts that may be sent again under their keys, as the configuration stands."""
        found = set()
        for attempt in history.unresolved:
            started = attempt.started
            policy = self._policies.get(started.capability)
            provider = await self._provider(attempt) if policy and policy.provider == started.provider else None
            if provider is not None and may_resend(history, attempt, provider, self._clock.now()):
                found.add(started.attempt)
        return frozenset(found)

    async def reprocess(self, attempt: Attempt) -> Outcome | None:
        """Read the kept answer of an attempt again, without a new call; None where nobody can.

        Raises:
            StoreCorruptError: the kept answer is damaged.
        """
        provider = await self._provider(attempt)
        if provider is not None and attempt.raw is not None and isinstance(provider, Reprocesses):
            return await self._reprocessed(attempt, provider)
        return None

    async def _provider(self, attempt: Attempt) -> Provider | None:
        """Return whoever was asked to execute it: another provider knows nothing of it."""
        if not attempt.started.provider:
            return None
        try:
            return await self._bench.get(attempt.started.provider)
        except ProviderSetupError:
            return None

    async def _looked_up(self, attempt: Attempt, provider: Provider) -> Outcome | Absent:
        found: Outcome | Absent = Unknown(reason=f'the provider "{attempt.started.provider}" cannot be asked')
        if isinstance(provider, LooksUp):
            found = self._judged(attempt, provider, await self._answer(attempt, provider))
        if isinstance(found, Unknown | Absent) and attempt.raw is not None and isinstance(provider, Reprocesses):
            return await self._reprocessed(attempt, provider)
        return found

    async def _answer(self, attempt: Attempt, provider: LooksUp) -> Outcome | Absent:
        started, seconds = attempt.started, self._time(attempt)
        payload = own_copy(started.payload)
        return await heard(
            self._clock,
            seconds,
            lambda: provider.lookup(started.capability, payload, started.effect_key, attempt.job),
            lambda answer: answer if isinstance(answer, Absent) else outcomes.sound(answer),
            silence=f"the provider did not say within {seconds:g} s what became of it",
        )

    def _judged(self, attempt: Attempt, provider: Provider, found: Outcome | Absent) -> Outcome | Absent:
        """Take an absence for a refusal once the request cannot be under way any more."""
        if not isinstance(found, Absent) or attempt.ended is None:
            return found
        text, final_after = str(found.text)[: outcomes.TEXT_LIMIT], provider.profile.absence_final_after
        if attempt.raw is not None or final_after is None:
            return Absent(text=f"the provider says: {text}; that alone settles nothing")
        counts_at, now = attempt.ended.at + final_after, self._clock.now()
        if now < counts_at:
            return Absent(text=f"the provider says: {text}; that counts from {shown(counts_at, now)} on")
        return Refused(kind="unavailable", text=f"it was never carried out: {text}")

    async def _reprocessed(self, attempt: Attempt, provider: Reprocesses) -> Outcome:
        started, seconds = attempt.started, self._time(attempt)
        raw = await self._keeper.read(attempt.raw)
        payload = own_copy(started.payload)
        return await heard(
            self._clock,
            seconds,
            lambda: provider.reprocess(started.capability, payload, raw),
            outcomes.sound,
            silence=f"the kept answer could not be processed within {seconds:g} s",
        )

    async def _close(self, attempt: Attempt, found: Succeeded | Refused | Unusable) -> None:
        started, now = attempt.started, self._clock.now()
        events: list[AnyEvent] = []
        if isinstance(found, Succeeded):
            cost = attempt.cost if found.cost is None else found.cost
            try:
                kept = await self._keeper.keep(started.capability, found.result)
            except UnusableResultError as error:
                found = Unusable(raw=error.raw, text=str(error)[: outcomes.TEXT_LIMIT], cost=cost)
            else:
                events.append(
                    AttemptFound(run=started.run, at=now, attempt=started.attempt, outcome="committed", cost=cost)
                )
                events.append(
                    Committed(run=started.run, at=now, record=kept.record(started, cost=cost, usage=found.usage))
                )
        if isinstance(found, Refused | Unusable):
            failed = isinstance(found, Refused)
            events.append(
                AttemptFound(
                    run=started.run,
                    at=now,
                    attempt=started.attempt,
                    outcome="failed" if failed else "unusable",
                    kind=found.kind if isinstance(found, Refused) else "unusable",
                    text=found.text,
                    cost=found.cost,
                    raw=await self._keeper.keep_raw(found.raw) if isinstance(found, Unusable) else None,
                )
            )
        await self._journal.append(events)

    async def _keep(self, attempt: Attempt, found: Unknown) -> None:
        started, kept = attempt.started, await self._keeper.keep_raw(found.raw)
        answered = AttemptAnswered(
            run=started.run, at=self._clock.now(), attempt=started.attempt, raw=kept, cost=found.cost
        )
        await self._journal.append([answered])

    def _time(self, attempt: Attempt) -> float:
        policy = self._policies.get(attempt.started.capability)
        return policy.timeout if policy is not None else DEFAULT_TIME
