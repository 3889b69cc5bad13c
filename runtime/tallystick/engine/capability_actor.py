"""The actor of one capability: policy, provider, and the calls in flight (contract.md, sections 6 and 6.2).

A dispatched call belongs to this actor and not to the launch that asked for it: it settles and commits even when
its sandbox or its client is gone. Each try goes the same way: the back-off of the capability, a slot of the run and one
of the capability, a token of its rate, room in the budget, then the attempt (``attempting.py``).
"""

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import CapabilitySpec
from tallystick.contract.errors import StoreError
from tallystick.contract.runtime_rule import NO_PROVIDER, Stop, runs_again
from tallystick.engine import call_stops, retries
from tallystick.engine.attempting import Attempting, DispatchCall, Tried
from tallystick.engine.config import CapabilityPolicy
from tallystick.engine.inquirer import Inquirer
from tallystick.engine.journal import Journal
from tallystick.engine.live_run import LiveRun
from tallystick.engine.provider_bench import ProviderBench
from tallystick.engine.purse import Purse
from tallystick.engine.rate import TokenBucket
from tallystick.engine.results import ResultKeeper
from tallystick.engine.slots import LaunchStoppedError, Slots
from tallystick.engine.steps import CommittedCall, DroppedCall, Settlement, StoppedCall
from tallystick.kernel import Actor
from tallystick.providers.protocol import Outcome, Refused, Unknown
from tallystick.providers.registry import ProviderSetupError


class CapabilityActor(Actor[DispatchCall]):
    """Executes the calls of one capability within its policy."""

    def __init__(
        self,
        *,
        spec: CapabilitySpec,
        policy: CapabilityPolicy,
        bench: ProviderBench,
        journal: Journal,
        keeper: ResultKeeper,
        inquirer: Inquirer,
        purse: Purse,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._purse = purse
        self._policy = policy
        self._bench = bench
        self._slots = Slots(policy.concurrency)
        self._journal = journal
        self._keeper = keeper
        self._inquirer = inquirer
        self._bucket = TokenBucket(policy.rate) if policy.rate is not None else None
        self._next_token = Slots(1)
        # Until when (Unix time) nothing is sent: all calls of the capability back off together.
        self._asked_until = 0.0
        self._quiet_until = 0.0

    async def on_start(self) -> None:
        """Make what needs the clock."""
        self._attempting = Attempting(
            spec=self._spec,
            policy=self._policy,
            journal=self._journal,
            keeper=self._keeper,
            inquirer=self._inquirer,
            clock=self.clock,
        )

    async def handle(self, message: DispatchCall) -> None:
        """Start a call; the actor is free for the next at once."""
        self.spawn(self._run, message)

    async def _run(self, message: DispatchCall) -> None:
        settlement: Settlement = StoppedCall(call_stops.cut_off(message.request))
        try:
            settlement = await self._execute(message)
        finally:
            message.settle(settlement)

    async def _execute(self, message: DispatchCall) -> Settlement:
        """Try until the call has an end that stands; a wait that nobody wants any more leaves it at the last one."""
        last: Settlement = DroppedCall()
        resends, tries = message.execute.resends, 0
        while True:
            try:
                tried = await self._in_turn(message, resends)
            except LaunchStoppedError:
                return last
            if isinstance(tried.settlement, StoppedCall | DroppedCall) and tried.outcome is None:
                # Not sent: what an earlier try has left open is graver, and what it has failed with stands.
                return last if isinstance(last, StoppedCall) or tried.is_dropped else tried.settlement
            last, tries = tried.settlement, tries + 1
            attempt = message.live.history.latest_attempt[message.request.identity]
            message.live.check_price(attempt, self._spec.ceiling)
            if isinstance(last, CommittedCall) or tried.outcome is None:
                return last
            self._heed(tried.outcome)
            resends = self._sent_again(message, attempt)
            pause = retries.pause(self._policy, tries, tried.outcome)
            if pause is None or (attempt.open and resends is None):
                return last
            self._back_off(message, attempt, tried.outcome, pause)
            if isinstance(tried.outcome, Unknown):
                try:
                    await message.live.naps.sleep(self.clock, pause, message.stands)
                except LaunchStoppedError:
                    return last

    def _sent_again(self, message: DispatchCall, attempt: Attempt) -> int | None:
        """Return the attempt that a further try sends again under its key, where its provider would know it."""
        provider = self._bench.loaded(self._policy.provider)
        if provider is None or not retries.may_resend(message.live.history, attempt, provider, self.clock.now()):
            return None
        return attempt.started.attempt

    def _heed(self, outcome: Outcome) -> None:
        """Have every call keep the wait that the provider asks for."""
        wait = retries.asked_wait(self._policy, outcome)
        if wait:
            self._asked_until = max(self._asked_until, self.clock.now() + wait)

    def _back_off(self, message: DispatchCall, attempt: Attempt, outcome: Outcome, pause: float) -> None:
        """Say that a call is tried again after ``pause`` seconds; after a refusal every call waits that long."""
        live, now = message.live, self.clock.now()
        if isinstance(outcome, Refused):
            self._quiet_until = max(self._quiet_until, now + pause)
        elif not self._spec.side_effecting:
            live.warnings.append(runs_again(attempt.started))
        live.tell(
            "retrying",
            now,
            identity=attempt.started.identity,
            capability=self._spec.name,
            text=f"attempt {attempt.started.attempt} came to {attempt.kind}: {attempt.text}; "
            f"the next one at {retries.shown(now + pause, now)}",
        )

    async def _in_turn(self, message: DispatchCall, resends: int | None) -> Tried:
        live = message.live
        while True:
            if not self._may_send(live):
                stop = await self._keep_quiet(message)
                if stop is not None:
                    return Tried(StoppedCall(stop))
            async with live.slots.held(live.queued), self._slots.held(live.queued):
                await self._take_token(message)
                if self._may_send(live):
                    return await self._within_budget(message, resends)

    def _may_send(self, live: LiveRun) -> bool:
        if not (self._asked_until or self._quiet_until or live.waits):
            return True
        return max(self._quiet(live)) <= self.clock.now()

    def _quiet(self, live: LiveRun) -> tuple[float, float]:
        """Return until when (Unix time) nothing is sent: as the provider has asked, and by our own back-off."""
        if not self._policy.retry_after_cap:
            return 0.0, self._quiet_until
        remembered = live.waits.get((self._spec.name, self._policy.provider), 0.0)
        return max(self._asked_until, remembered), self._quiet_until

    async def _keep_quiet(self, message: DispatchCall) -> Stop | None:
        """Wait until the provider may be asked again; return a stop where that takes longer than anybody waits."""
        live = message.live
        while True:
            now = self.clock.now()
            asked, own = self._quiet(live)
            if asked - now > self._policy.retry_after_cap:
                return call_stops.told_to_wait(message.request, self._policy.provider, asked, now)
            until = max(asked, own)
            if until <= now:
                return None
            why = "as its provider asks" if asked >= own else "backing off"
            live.pause(self._spec.name, until, f"nothing is sent until {retries.shown(until, now)}, {why}", now)
            await live.naps.sleep(self.clock, until - now, message.stands)

    async def _take_token(self, message: DispatchCall) -> None:
        if self._bucket is None:
            return
        live = message.live
        async with self._next_token.held(live.queued):
            wait = self._bucket.wait(self.clock.monotonic())
            if wait > 0:
                await live.naps.sleep(self.clock, wait, message.stands)
            self._bucket.take(self.clock.monotonic())

    async def _within_budget(self, message: DispatchCall, resends: int | None) -> Tried:
        live, want = message.live, self._spec.reservation
        try:
            provider = await self._bench.get(self._policy.provider)
        except ProviderSetupError as error:
            stop = Stop(NO_PROVIDER, str(error), "correct the configuration and resume", message.request.identity)
            return Tried(StoppedCall(stop))
        short = await live.reserve(message.request, want, self._purse)
        if short is not None:
            return Tried(StoppedCall(short) if message.stands() else DroppedCall())
        live.in_flight += 1
        try:
            return await self._attempting.attempt(message, provider, resends)
        except StoreError as error:
            return Tried(StoppedCall(call_stops.unwritten(message.request, error)))
        finally:
            live.in_flight -= 1
            live.release(want, self._purse)
