"""One attempt, from its durable note to its durable outcome (contract.md, section 6.2).

The order is fixed: attempt (durable), look whether the launch still stands, dispatch once, what the provider tells on
the way (durable), outcome (durable).
"""

from collections.abc import Callable
from typing import Any

import anyio
import msgspec

from tallystick.contract.capability import CapabilitySpec
from tallystick.contract.errors import StoreError
from tallystick.contract.events import AttemptEnded, AttemptStarted, Committed, Stored
from tallystick.contract.keys import effect_key, sample_seed
from tallystick.contract.runtime_rule import CallRequest, Execute, unresolved
from tallystick.engine import call_stops, fault_points, outcomes
from tallystick.engine.config import CapabilityPolicy
from tallystick.engine.hearing import heard, own_copy
from tallystick.engine.inquirer import Inquirer
from tallystick.engine.journal import Journal
from tallystick.engine.live_run import LiveRun
from tallystick.engine.results import ResultKeeper, UnusableResultError
from tallystick.engine.retries import asked_wait, may_resend, shown
from tallystick.engine.steps import CommittedCall, DroppedCall, FailedCall, Settlement, StoppedCall
from tallystick.engine.tracking import JournalTracker
from tallystick.kernel import Clock
from tallystick.providers.protocol import (
    Outcome,
    Provider,
    Refused,
    Sample,
    Succeeded,
    Tracked,
    Unknown,
    Unusable,
)


class DispatchCall(msgspec.Struct, frozen=True):
    """New work of a live run. ``settle`` gets the last word exactly once, on the loop."""

    live: LiveRun
    launch: int
    revision: int
    request: CallRequest
    execute: Execute
    wanted: Callable[[], bool]
    settle: Callable[[Settlement], None]
    survived: tuple[int, ...] = ()

    def stands(self) -> bool:
        """Whether the call, where it was not sent yet, is still to be made."""
        return self.live.accepts_work() and self.wanted()


class Tried(msgspec.Struct, frozen=True):
    """What one try came to; ``outcome`` is None where nothing was sent."""

    settlement: Settlement
    outcome: Outcome | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether the call was not sent because nobody wants it any more."""
        return isinstance(self.settlement, DroppedCall)


class Attempting:
    """Makes the attempts of one capability."""

    def __init__(
        self,
        *,
        spec: CapabilitySpec,
        policy: CapabilityPolicy,
        journal: Journal,
        keeper: ResultKeeper,
        inquirer: Inquirer,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._journal = journal
        self._keeper = keeper
        self._inquirer = inquirer
        self._clock = clock
        self._looked_at: Provider | None = None
        self._telling: Tracked | None = None

    async def attempt(self, message: DispatchCall, provider: Provider, resends: int | None) -> Tried:
        """Make one attempt; ``resends`` is the unresolved one whose call it sends again under its key.

        Raises:
            StoreError: the attempt could not be written; nothing was sent.
        """
        live, request, again = message.live, message.request, None
        if not message.stands():
            return Tried(DroppedCall())
        if resends is not None:
            again = live.history.attempts[resends]
            if not may_resend(live.history, again, provider, self._clock.now()):
                return Tried(StoppedCall(unresolved(request, again.started), unresolved=True))
        number, execution = live.next_attempt(request.capability)
        started = self._note(message, number, resends)
        fault_points.reach(fault_points.BEFORE_ATTEMPT)
        await self._journal.append([started])
        fault_points.reach(fault_points.ATTEMPT_DURABLE)
        if not message.stands():
            return await self._not_sent(live, started)
        live.tell("started", started.at, identity=request.identity, capability=request.capability)
        sample = Sample(
            seed=sample_seed(live.seed, request.identity, request.take),
            execution=execution,
            faults=live.faults,
            latency=live.latency,
        )
        outcome: Outcome = Unknown(reason="the daemon was stopped before the answer came")
        try:
            outcome = await self._call(provider, started, sample)
        finally:
            # Also on the way down: what was sent is never left without an end in the journal.
            with anyio.CancelScope(shield=True):
                fault_points.reach(fault_points.ANSWERED)
                tried = await self._settle(live, started, outcome)
                fault_points.reach(fault_points.COMMITTED)
        if live.history.attempts[number].state == "unresolved":
            return await self._ask(message, started, tried)
        return tried

    def _note(self, message: DispatchCall, number: int, resends: int | None) -> AttemptStarted:
        live, request = message.live, message.request
        return AttemptStarted(
            run=live.run,
            at=self._clock.now(),
            attempt=number,
            launch=message.launch,
            revision=message.revision,
            identity=request.identity,
            capability=request.capability,
            effect=self._spec.effect,
            fingerprint=request.fingerprint,
            digest=request.digest,
            payload=request.payload,
            take=request.take,
            effect_key=effect_key(
                self._journal.store.key(),
                live.run,
                request.identity,
                capability=request.capability,
                digest=request.digest,
                decisions=live.history.decisions[request.identity],
            ),
            reserved=self._spec.reservation.usd,
            reserved_tokens=self._spec.reservation.tokens,
            provider=self._policy.provider,
            survived=message.survived,
            resends=resends,
        )

    async def _not_sent(self, live: LiveRun, started: AttemptStarted) -> Tried:
        text = f"{call_stops.NOT_SENT}: the launch was stopped"
        if started.resends is None:
            await self._end(live, started, "failed", kind="unavailable", text=text, cost=0)
        else:
            # Of the call that it was to repeat, nobody knows any more than before.
            await self._end(live, started, "unknown", kind="unavailable", text=f"{text}; an earlier try is unresolved")
        return Tried(DroppedCall())

    async def _call(self, provider: Provider, started: AttemptStarted, sample: Sample) -> Outcome:
        own, seconds = own_copy(started.payload), self._policy.timeout

        async def call() -> object:
            tracked = self._tracked(provider)
            if tracked is None:
                return await provider.call(self._spec.name, own, started.effect_key, sample)
            tracker = JournalTracker(started, self._journal, self._keeper, self._clock)
            return await tracked.call_tracked(self._spec.name, own, started.effect_key, sample, tracker)

        return await heard(self._clock, seconds, call, outcomes.sound, silence=f"no answer within {seconds:g} s")

    def _tracked(self, provider: Provider) -> Tracked | None:
        """Return the provider as one that tells of a call before its end; looked at once, for looking is dear."""
        if provider is not self._looked_at:
            self._looked_at = provider
            self._telling = provider if isinstance(provider, Tracked) else None
        return self._telling

    async def _settle(self, live: LiveRun, started: AttemptStarted, outcome: Outcome) -> Tried:
        try:
            return await self._write_down(live, started, outcome)
        except StoreError as error:
            return Tried(StoppedCall(call_stops.lost_answer(started, error), unresolved=self._spec.side_effecting))

    async def _write_down(self, live: LiveRun, started: AttemptStarted, outcome: Outcome) -> Tried:
        match outcome:
            case Succeeded():
                return Tried(await self._commit(live, started, outcome), outcome)
            case Refused(kind=kind, cost=cost, retry_after=retry_after):
                text = self._with_wait(outcome)
                if started.resends is not None:
                    # It refused this request, and may have carried out the one before.
                    text = f"it was sent again under its key, and refused, which says nothing of before: {text}"
                    await self._end(live, started, "unknown", kind=kind, text=text, retry_after=retry_after)
                    return Tried(StoppedCall(call_stops.unknown_outcome(started, text), unresolved=True), outcome)
                await self._end(live, started, "failed", kind=kind, text=text, cost=cost, retry_after=retry_after)
                return Tried(FailedCall(kind, text, started.attempt), outcome)
            case Unusable(text=text, cost=cost, raw=raw):
                return Tried(await self._unusable(live, started, text, raw, cost), outcome)
            case Unknown(reason=reason, kind=kind, cost=cost, job=job):
                raw = await self._raw_of(live, started, outcome)
                await self._end(live, started, "unknown", kind=kind, text=reason, cost=cost, job=job, raw=raw)
                if not self._spec.side_effecting:
                    return Tried(FailedCall(kind, reason, started.attempt), outcome)
                return Tried(StoppedCall(call_stops.unknown_outcome(started, reason), unresolved=True), outcome)

    def _with_wait(self, outcome: Refused) -> str:
        """Return the provider's words, with until when it asks to be left alone where nobody waits that long."""
        asked = asked_wait(self._policy, outcome)
        if asked <= self._policy.retry_after_cap:
            return outcome.text
        now = self._clock.now()
        return f"{outcome.text}; the provider asks to wait until {shown(now + asked, now)}"[: outcomes.TEXT_LIMIT]

    async def _raw_of(self, live: LiveRun, started: AttemptStarted, outcome: Unknown) -> Stored | None:
        """Keep an answer that came and could not be completed, unless the provider had it kept before."""
        if outcome.raw is None or live.history.attempts[started.attempt].answered is not None:
            return None
        return await self._keeper.keep_raw(outcome.raw)

    async def _commit(self, live: LiveRun, started: AttemptStarted, outcome: Succeeded) -> Settlement:
        try:
            kept = await self._keeper.keep(self._spec.name, outcome.result)
        except UnusableResultError as error:
            return await self._unusable(live, started, str(error), error.raw, outcome.cost)
        record = kept.record(started, cost=outcome.cost, usage=outcome.usage)
        await self._journal.append([Committed(run=live.run, at=self._clock.now(), record=record)])
        return CommittedCall(record)

    async def _unusable(
        self, live: LiveRun, started: AttemptStarted, text: str, raw: Any, cost: int | None
    ) -> Settlement:
        kept = await self._keeper.keep_raw(raw)
        text = text[: outcomes.TEXT_LIMIT]
        await self._end(live, started, "unusable", kind="unusable", text=text, cost=cost, raw=kept)
        return FailedCall("unusable", text, started.attempt)

    async def _end(self, live: LiveRun, started: AttemptStarted, outcome: Any, **facts: Any) -> None:
        ended = AttemptEnded(run=live.run, at=self._clock.now(), attempt=started.attempt, outcome=outcome, **facts)
        await self._journal.append([ended])

    async def _ask(self, message: DispatchCall, started: AttemptStarted, tried: Tried) -> Tried:
        """Ask the provider what became of a call before anybody has to decide."""
        attempt = message.live.history.attempts[started.attempt]
        if not message.stands():
            return tried
        try:
            with message.live.naps.until_unwanted(message.stands):
                await self._inquirer.ask(attempt)
        except StoreError as error:
            return Tried(StoppedCall(call_stops.lost_answer(started, error), unresolved=True))
        if attempt.committed is not None:
            return Tried(CommittedCall(attempt.committed))
        if attempt.found is None:
            return tried
        kind = attempt.found.kind or "unavailable"
        failed = FailedCall(kind, attempt.found.text, started.attempt)
        return Tried(failed, Refused(kind=kind, text=attempt.found.text) if attempt.state == "failed" else None)
