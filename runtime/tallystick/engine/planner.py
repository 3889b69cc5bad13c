"""Runs a candidate in a sandbox against the committed prefix, and dispatches nothing (contract.md, section 10).

The same state machine as in a launch decides about every call. What it would serve is served; what it would send
stays unanswered, so that its branch stops there while the others go on. When the guest says that all branches wait,
the plan is known.
"""

import anyio

from tallystick.contract.errors import RunFailedError, StoreError
from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.contract.plan import NewCall, Plan, State
from tallystick.contract.runtime_rule import Stop, awaits_approval
from tallystick.engine.launch import Launch
from tallystick.engine.results import ResultKeeper
from tallystick.engine.sandbox_pool import Guest, GuestPool
from tallystick.engine.steps import BREACH, Decide, Dispatch, Fail, Halt, Hold, Serve, Step, WriteWinner
from tallystick.kernel import Clock, cancel_after
from tallystick.sandbox.frames import Decided, Failure, FrameError, Reply, Start, Sync, Synced, ToGuest
from tallystick.sandbox.protocol import EndOfGuest, SandboxError

#: Seconds that a plan may take before it is given up: it waits for nothing but the script's own work.
PLAN_TIME = 60.0


class Planner:
    """Works out plans in guests of the pool."""

    def __init__(self, pool: GuestPool, keeper: ResultKeeper, clock: Clock) -> None:
        self._pool = pool
        self._keeper = keeper
        self._clock = clock

    async def plan(self, launch: Launch, annotated: str) -> Plan:
        """Run the script of ``launch`` without dispatching anything.

        Raises:
            RunFailedError: no sandbox could be started, or the script came to no end; nothing was spent.
        """
        async with self._pool.places.held(set()):
            try:
                guest = await self._pool.open(
                    lambda nonce: Start(nonce=nonce, source=annotated, args=launch.revision.args)
                )
            except SandboxError as error:
                raise RunFailedError(f"no sandbox could be started for the plan: {error}", code="TS-R007") from None
            rehearsal = _Rehearsal(launch, guest, self._keeper)
            try:
                with cancel_after(self._clock, PLAN_TIME) as scope:
                    await rehearsal.run()
            finally:
                with anyio.CancelScope(shield=True):
                    await guest.sandbox.kill()
        if scope.cancelled_caught:
            raise RunFailedError(f"the plan came to no end within {PLAN_TIME:g} s; nothing was spent", code="TS-R010")
        return rehearsal.plan()


class _Rehearsal:
    """One script's way through its prefix."""

    def __init__(self, launch: Launch, guest: Guest, keeper: ResultKeeper) -> None:
        self._launch = launch
        self._guest = guest
        self._keeper = keeper
        self._answers: list[ToGuest] = []
        self._replayed: list[Identity] = []
        self._new: list[NewCall] = []
        self._stops: list[Stop] = []
        self._trouble: ErrorInfo | None = None
        self._syncs = 0

    async def run(self) -> None:
        """Talk to the guest until it ends or all of its branches wait."""
        sandbox = self._guest.sandbox
        try:
            await sandbox.send([self._sync()])
            while True:
                for frame in await sandbox.receive():
                    if not isinstance(frame, Synced):
                        self._do(self._launch.on_frame(frame))
                    elif frame.id == self._syncs and not self._answers:
                        return
                if self._launch.finished or self._trouble is not None:
                    return
                if self._answers:
                    answers, self._answers = self._answers, []
                    await sandbox.send([*answers, self._sync()])
        except EndOfGuest as end:
            self._trouble = ErrorInfo(BREACH, f"the guest ended in the middle of the plan: {end}")
        except FrameError as error:
            self._trouble = ErrorInfo(BREACH, f"the guest broke the protocol: {error}")

    def plan(self) -> Plan:
        """Say what was found."""
        launch = self._launch
        ending = launch.ending()
        skipped = ending.orphans or ending.not_reached
        failed = self._trouble or (ending.error if launch.finished and not ending.has_result else None)
        state: State = "failed" if failed is not None else "finished" if launch.finished else "blocked"
        return Plan(
            state=state,
            replay=tuple(self._replayed),
            new=tuple(self._new),
            stops=tuple(self._stops),
            orphans=skipped if state == "finished" else (),
            unknown=skipped if state != "finished" else (),
            error=failed,
        )

    def _sync(self) -> Sync:
        self._syncs += 1
        return Sync(nonce=self._guest.nonce, id=self._syncs)

    def _do(self, step: Step | None) -> None:
        nonce = self._guest.nonce
        match step:
            case Serve(call=call, record=record):
                try:
                    value = self._keeper.load(record.result)
                except StoreError as error:
                    self._trouble = ErrorInfo(error.code, error.message, error.hint)
                    return
                self._replayed.append(record.identity)
                self._answers.append(Reply(nonce=nonce, id=call, value=value))
            case Fail(call=call, identity=identity, kind=kind, text=text, replayed=replayed):
                if replayed:
                    self._replayed.append(identity)
                self._answers.append(Failure(nonce=nonce, id=call, kind=kind, text=text))
            case Dispatch(request=request, execute=execute):
                self._new.append(NewCall(request.identity, request.capability, execute.estimate, execute.warning))
            case Decide(race=race, winner=winner):
                self._answers.append(Decided(nonce=nonce, id=race, winner=winner))
            case WriteWinner(race=race, identity=identity):
                if not self._is_open(identity):
                    self._do(self._launch.on_written(race))
            case Hold(request=request):
                self._stops.append(awaits_approval([request]))
            case Halt(stop=stop):
                self._on_stop(stop)

    def _on_stop(self, stop: Stop) -> None:
        """Note what would stop the launch; its branch waits for ever, the others go on."""
        if stop.code == BREACH:
            self._trouble = ErrorInfo(stop.code, stop.message, stop.hint)
            return
        self._stops.append(stop)
        self._launch.stop = None

    def _is_open(self, race: Identity) -> bool:
        """Whether a branch of a race waits for a new result, which might have made it the winner."""
        prefix = f"{race.site}:{race.occurrence}:"
        depth = len(race.path)
        return any(
            request.identity.path[:depth] == race.path and str(request.identity.path[depth]).startswith(prefix)
            for request in self._launch.unanswered
            if len(request.identity.path) > depth
        )
