"""The actor of one capability: policy, provider, and the calls in flight (contract.md, sections 6 and 6.2).

A dispatched call belongs to this actor and not to the launch that asked for it: it settles and commits even when
its sandbox or its client is gone. The order is fixed: slot, budget, attempt (durable), look whether the launch
still stands, dispatch once, outcome (durable), reply.
"""

from collections.abc import Callable
from typing import Any

import anyio
import msgspec

from tallystick.contract.capability import CapabilitySpec
from tallystick.contract.errors import StoreError
from tallystick.contract.events import AttemptEnded, AttemptStarted, Committed
from tallystick.contract.keys import effect_key, sample_seed
from tallystick.contract.runtime_rule import NO_PROVIDER, CallRequest, Execute, Stop, over_budget
from tallystick.engine import fault_points, outcomes
from tallystick.engine.journal import Journal
from tallystick.engine.live_run import LiveRun
from tallystick.engine.provider_bench import ProviderBench
from tallystick.engine.results import ResultKeeper, UnusableResultError
from tallystick.engine.slots import LaunchStoppedError, Slots
from tallystick.engine.steps import CommittedCall, DroppedCall, FailedCall, Settlement, StoppedCall
from tallystick.kernel import Actor, cancel_after
from tallystick.providers.protocol import Outcome, Provider, Refused, Sample, Succeeded, Unknown, Unusable
from tallystick.providers.registry import ProviderSetupError

UNKNOWN_OUTCOME, CUT_OFF = "TS-A002", "TS-N002"


_NOT_SENT = "not sent"
_SEE_TO_THE_STORE = "tally doctor looks at the store; then tally resume: what is committed replays for free"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


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


class CapabilityActor(Actor[DispatchCall]):
    """Executes the calls of one capability within its policy."""

    def __init__(
        self,
        *,
        spec: CapabilitySpec,
        provider: str,
        bench: ProviderBench,
        concurrency: int,
        timeout: float,
        journal: Journal,
        keeper: ResultKeeper,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._provider = provider
        self._bench = bench
        self._slots = Slots(concurrency)
        self._timeout = timeout
        self._journal = journal
        self._keeper = keeper

    async def handle(self, message: DispatchCall) -> None:
        """Start a call; the actor is free for the next at once."""
        self.spawn(self._run, message)

    async def _run(self, message: DispatchCall) -> None:
        settlement: Settlement = StoppedCall(_cut_off(message.request))
        try:
            settlement = await self._in_turn(message)
        finally:
            message.settle(settlement)

    async def _in_turn(self, message: DispatchCall) -> Settlement:
        live = message.live
        try:
            async with live.slots.held(live.queued), self._slots.held(live.queued):
                return await self._within_budget(message)
        except LaunchStoppedError:
            return DroppedCall()

    async def _within_budget(self, message: DispatchCall) -> Settlement:
        live, estimate = message.live, message.execute.estimate
        try:
            provider = await self._bench.get(self._provider)
        except ProviderSetupError as error:
            return StoppedCall(
                Stop(NO_PROVIDER, str(error), "correct the configuration and resume", message.request.identity)
            )
        if not await live.reserve(estimate):
            if not _stands(message):
                return DroppedCall()
            held = live.history.held + live.reserved
            return StoppedCall(over_budget(message.request, estimate, live.envelope, live.history.spent, held))
        live.in_flight += 1
        try:
            return await self._attempt(message, provider)
        except StoreError as error:
            return StoppedCall(_unwritten(message.request, error))
        finally:
            live.in_flight -= 1
            live.release(estimate)

    async def _attempt(self, message: DispatchCall, provider: Provider) -> Settlement:
        live, request = message.live, message.request
        if not _stands(message):
            return DroppedCall()
        number, execution = live.next_attempt(request.capability)
        started = AttemptStarted(
            run=live.run,
            at=self.clock.now(),
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
            reserved=message.execute.estimate,
            survived=message.survived,
        )
        fault_points.reach(fault_points.BEFORE_ATTEMPT)
        await self._journal.append([started])
        fault_points.reach(fault_points.ATTEMPT_DURABLE)
        if not _stands(message):
            await self._end(
                live, started, "failed", kind="unavailable", text=f"{_NOT_SENT}: the launch was stopped", cost=0
            )
            return DroppedCall()
        live.tell("started", started.at, identity=request.identity, capability=request.capability)
        sample = Sample(
            seed=sample_seed(live.seed, request.identity, request.take),
            execution=execution,
            faults=live.faults,
            latency=live.latency,
        )
        outcome: Outcome = Unknown(reason="the daemon was stopped before the answer came")
        try:
            outcome = await self._call(provider, request.payload, started.effect_key, sample)
        finally:
            # Also on the way down: what was sent is never left without an end in the journal.
            with anyio.CancelScope(shield=True):
                fault_points.reach(fault_points.ANSWERED)
                settlement = await self._settle(live, started, outcome)
                fault_points.reach(fault_points.COMMITTED)
        return settlement

    async def _call(self, provider: Provider, payload: Any, key: str, sample: Sample) -> Outcome:
        own = _decode(_encode(payload))  # whatever it does to its copy, the journal's stays what was hashed
        outcome: Outcome = Unknown(reason=f"no answer within {self._timeout:g} s")
        with cancel_after(self.clock, self._timeout):
            try:
                outcome = outcomes.sound(await provider.call(self._spec.name, own, key, sample))
            except Exception as error:  # noqa: BLE001 - a provider that raises has said nothing: the outcome is unknown
                outcome = outcomes.raised(error)
        return outcome

    async def _settle(self, live: LiveRun, started: AttemptStarted, outcome: Outcome) -> Settlement:
        try:
            return await self._write_down(live, started, outcome)
        except StoreError as error:
            return StoppedCall(_lost_answer(started, error), unresolved=self._spec.side_effecting)

    async def _write_down(self, live: LiveRun, started: AttemptStarted, outcome: Outcome) -> Settlement:
        match outcome:
            case Succeeded():
                return await self._commit(live, started, outcome)
            case Refused(kind=kind, text=text, cost=cost, retry_after=retry_after):
                await self._end(live, started, "failed", kind=kind, text=text, cost=cost, retry_after=retry_after)
                return FailedCall(kind, text, started.attempt)
            case Unusable(text=text, cost=cost, raw=raw):
                return await self._unusable(live, started, text, raw, cost)
            case Unknown(reason=reason, kind=kind, cost=cost, job=job):
                await self._end(live, started, "unknown", kind=kind, text=reason, cost=cost, job=job)
                if not self._spec.side_effecting:
                    return FailedCall(kind, reason, started.attempt)
                return StoppedCall(_unknown_stop(started, reason), unresolved=True)

    async def _commit(self, live: LiveRun, started: AttemptStarted, outcome: Succeeded) -> Settlement:
        try:
            kept = await self._keeper.keep(self._spec.name, outcome.result)
        except UnusableResultError as error:
            return await self._unusable(live, started, str(error), error.raw, outcome.cost)
        record = kept.record(started, cost=outcome.cost, usage=outcome.usage)
        await self._journal.append([Committed(run=live.run, at=self.clock.now(), record=record)])
        return CommittedCall(record)

    async def _unusable(
        self, live: LiveRun, started: AttemptStarted, text: str, raw: Any, cost: int | None
    ) -> Settlement:
        kept = await self._keeper.keep_raw(raw)
        text = text[: outcomes.TEXT_LIMIT]
        await self._end(live, started, "unusable", kind="unusable", text=text, cost=cost, raw=kept)
        return FailedCall("unusable", text, started.attempt)

    async def _end(self, live: LiveRun, started: AttemptStarted, outcome: Any, **facts: Any) -> None:
        ended = AttemptEnded(run=live.run, at=self.clock.now(), attempt=started.attempt, outcome=outcome, **facts)
        await self._journal.append([ended])


def _cut_off(request: CallRequest) -> Stop:
    return Stop(
        CUT_OFF,
        f"the daemon stopped before {request.capability} at {request.identity} had its answer",
        "start the daemon and resume; tally attempts RUN shows what became of the call",
        request.identity,
    )


def _unwritten(request: CallRequest, error: StoreError) -> Stop:
    return Stop(
        error.code,
        f"{request.capability} at {request.identity} was {_NOT_SENT}: {error.message}",
        error.hint or _SEE_TO_THE_STORE,
        request.identity,
    )


def _lost_answer(started: AttemptStarted, error: StoreError) -> Stop:
    return Stop(
        error.code,
        f"{started.capability} at {started.identity} was answered, but the answer could not be written down: "
        f"{error.message}. Attempt {started.attempt} stays without a result",
        error.hint or _SEE_TO_THE_STORE,
        started.identity,
    )


def _stands(message: DispatchCall) -> bool:
    """Whether a call that was not sent yet is still to be made."""
    return message.live.accepts_work() and message.wanted()


def _unknown_stop(started: AttemptStarted, reason: str) -> Stop:
    return Stop(
        UNKNOWN_OUTCOME,
        f"nobody knows whether attempt {started.attempt} at {started.identity} ({started.capability}) was executed: "
        f"{reason}. It may have been billed, so it is not sent again",
        f"look it up at the provider (key {started.effect_key}), then tally reconcile RUN {started.attempt} "
        "--result FILE, or --abandon to permit one more execution",
        started.identity,
    )
