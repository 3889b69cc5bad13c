"""The actor of one live run: a thin loop round the launch's state machine.

It waits for its place, starts a guest, hands frames to ``Launch``, does what the steps say, and journals how the
launch ended once everything in flight has settled.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Literal

import anyio
import msgspec

from tallystick.contract.capability import usd
from tallystick.contract.certificate import issue
from tallystick.contract.errors import StoreError
from tallystick.contract.events import AnyEvent, ApprovalAsked, CallDenied, LaunchEnded, RaceDecided, Record, RunStatus
from tallystick.contract.runtime_rule import Stop
from tallystick.engine import repin
from tallystick.engine import steps as core
from tallystick.engine.attempting import DispatchCall
from tallystick.engine.ending import breach, over_output
from tallystick.engine.journal import Journal
from tallystick.engine.launch import Launch
from tallystick.engine.live_run import LiveRun
from tallystick.engine.messages import ProgressKind
from tallystick.engine.recovery import without_end
from tallystick.engine.results import ResultKeeper
from tallystick.engine.rows import row_of
from tallystick.engine.sandbox_pool import Guest, GuestPool
from tallystick.engine.slots import LaunchStoppedError
from tallystick.kernel import Actor, MailboxFullError, Ref, cancel_after
from tallystick.sandbox.frames import Decided, Failure, FrameError, OutputError, Reply, Start, Sync, ToGuest
from tallystick.sandbox.protocol import EndOfGuest, Exit, SandboxError

#: Seconds that a guest gets to exit after its last word.
EXIT_TIME = 5.0
_INTERRUPTED = Stop(core.INTERRUPTED, "the launch was cut off", "tally resume goes on from here")
_LINES: dict[str, ProgressKind] = {"TS-A": "unresolved", "TS-P": "denied", "TS-D": "denied"}


class CancelRun(msgspec.Struct, frozen=True):
    """End the launch: nothing new is sent, what is in flight settles."""

    stop: Stop


class RunActor(Actor[CancelRun]):
    """Runs one launch of one run, from its place in the queue to its journalled end."""

    def __init__(
        self,
        *,
        live: LiveRun,
        launch: Launch,
        annotated: str,
        capabilities: Mapping[str, Ref[DispatchCall]],
        pool: GuestPool,
        on_change: Literal["note", "refuse"],
        journal: Journal,
        keeper: ResultKeeper,
        ended: Callable[[], None],
    ) -> None:
        super().__init__()
        self._live = live
        self._launch = launch
        self._annotated = annotated
        self._capabilities = capabilities
        self._pool = pool
        self._on_change = on_change
        self._journal = journal
        self._keeper = keeper
        self._ended = ended
        self._guest: Guest | None = None
        self._nonce = ""
        self._out: list[ToGuest] = []
        self._flush = anyio.Event()
        self._settled = anyio.Event()
        self._denials: list[AnyEvent] = []
        self._printed: list[str] = []

    async def on_start(self) -> None:
        """Begin the launch beside the mailbox."""
        self.spawn(self._run)

    async def handle(self, message: CancelRun) -> None:
        """Cancel."""
        self._launch.halt(message.stop)
        self._halted()

    async def _run(self) -> None:
        live, launch = self._live, self._launch
        exit_: Exit | None = None
        live.tell("queued", self.clock.now())
        try:
            async with self._pool.places.held(live.queued):
                exit_ = await self._in_guest()
        except LaunchStoppedError:
            pass
        except SandboxError as error:
            launch.halt(
                Stop(core.NO_SANDBOX, f"no sandbox could be started: {error}", "tally doctor says what is missing")
            )
        live.phase = "settling"
        if launch.pending:
            live.tell("settling", self.clock.now(), text=f"{len(launch.pending)} calls in flight")
        while launch.pending:
            await self._settled.wait()
            self._settled = anyio.Event()
        if exit_ is not None:
            launch.on_exit(exit_)
        await self._finish()

    async def _in_guest(self) -> Exit | None:
        live, launch = self._live, self._launch
        live.phase = "starting"
        guest = await self._pool.open(
            lambda nonce: Start(nonce=nonce, source=self._annotated, args=launch.revision.args),
            admit=self._admit,
            told=lambda text: live.tell("preparing", self.clock.now(), text=text),
        )
        self._guest, self._nonce = guest, guest.nonce
        live.phase = "running"
        live.tell("launch", self.clock.now(), text=f"launch {launch.number}, revision {launch.revision.revision}")
        try:
            await self._note_change(guest.sandbox.image)
            if launch.stop is None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write, guest)
                    if launch.envelope.wall_clock is not None:
                        tasks.start_soon(self._watch_clock, launch.envelope.wall_clock)
                    await self._read(guest)
                    tasks.cancel_scope.cancel()
            if launch.finished and launch.stop is None:
                with cancel_after(self.clock, EXIT_TIME):
                    return await guest.sandbox.wait()
        finally:
            exit_ = await guest.sandbox.kill()
        return exit_

    def _admit(self, image: str) -> None:
        """Look at the image of a guest before it gets the script."""
        changed = repin.change(self._live.history, self._pool.driver.name, image, self.clock.now())
        text = repin.note(changed) if changed is not None else ""
        if text and self._on_change == "refuse" and self._live.history.attempts:
            self._launch.halt(repin.refusal(text))
            raise LaunchStoppedError

    async def _note_change(self, image: str) -> None:
        live = self._live
        changed = repin.change(live.history, self._pool.driver.name, image, self.clock.now())
        if changed is None:
            return
        try:
            await self._journal.append([changed])
        except StoreError as error:
            self._launch.halt(Stop(error.code, error.message, error.hint))
            return
        text = repin.note(changed)
        if text:
            live.warnings.append(text)
            live.tell("warning", changed.at, text=text)

    async def _read(self, guest: Guest) -> None:
        launch = self._launch
        while launch.accepts_work:
            try:
                frames = await guest.sandbox.receive()
            except EndOfGuest:
                return
            except FrameError as error:
                launch.halt(over_output(str(error)) if isinstance(error, OutputError) else breach(str(error)))
                self._halted()
                return
            for frame in frames:
                self._do(launch.on_frame(frame))
            self._tell_printed()
            self._flush.set()

    async def _write(self, guest: Guest) -> None:
        """Send whatever answers have come up, in one go per turn of the loop."""
        while True:
            await self._flush.wait()
            self._flush = anyio.Event()
            frames, self._out = self._out, []
            if not frames:
                continue
            try:
                await guest.sandbox.send(frames)
            except EndOfGuest:
                return
            except FrameError as error:
                stop = Stop(
                    core.TOO_LARGE,
                    f"a result is too large to hand to the script: {error}",
                    "it is committed and kept; ask for less in one call, or pass artifacts by reference",
                )
                self._launch.halt(stop)
                self._halted()
                return

    async def _watch_clock(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._launch.halt(
            Stop(
                core.TOO_LONG,
                f"the launch reached its wall-clock limit of {seconds:g} s; calls in flight settled and are kept",
                "raise it with --wall-clock on resume; what is committed replays for free",
            )
        )
        self._halted()

    def _do(self, step: core.Step | None) -> None:
        live, launch, now = self._live, self._launch, self.clock.now()
        live.count(launch.counts, launch.saved, launch.saved_unpriced)
        if isinstance(step, core.Note):
            self._printed.append(step.text)
            return
        self._tell_printed()
        match step:
            case core.Serve(call=call, record=record, replayed=replayed):
                try:
                    value = self._keeper.load(record.result)
                except StoreError as error:
                    self._do(launch.halt(_unreadable(record, error)))
                    return
                self._out.append(Reply(nonce=self._nonce, id=call, value=value))
                live.tell(
                    "replayed" if replayed else "committed",
                    now,
                    identity=record.identity,
                    capability=record.capability,
                    cost=record.cost,
                )
            case core.Fail(call=call, identity=identity, capability=capability, kind=kind, text=text):
                self._out.append(Failure(nonce=self._nonce, id=call, kind=kind, text=text))
                live.tell("failed", now, identity=identity, capability=capability, text=f"{kind}: {text}")
            case core.Dispatch(call=call, request=request, execute=execute, survived=survived):
                if execute.warning is not None:
                    live.tell(
                        "warning", now, identity=request.identity, capability=request.capability, text=execute.warning
                    )
                message = DispatchCall(
                    live=live,
                    launch=launch.number,
                    revision=launch.revision.revision,
                    request=request,
                    execute=execute,
                    survived=survived,
                    wanted=partial(launch.wants, call),
                    settle=partial(self._on_settled, call),
                )
                try:
                    self._capabilities[request.capability].tell(message)
                except MailboxFullError:
                    self._do(launch.on_settled(call, core.StoppedCall(_overloaded(request.capability))))
            case core.Hold(request=request, estimate=estimate):
                live.tell(
                    "waiting",
                    now,
                    identity=request.identity,
                    capability=request.capability,
                    text=f"must be approved before it is made; it may cost {usd(estimate)}",
                )
            case core.Halt(stop=stop):
                self._on_halt(stop)
            case core.Decide(race=race, winner=winner):
                self._out.append(Decided(nonce=self._nonce, id=race, winner=winner))
            case core.WriteWinner():
                self.spawn(self._write_winner, step)
            case core.Finished() | None:
                pass
        probe = launch.probe()
        if probe is not None:
            self._out.append(Sync(nonce=self._nonce, id=probe))
            self._flush.set()

    def _tell_printed(self) -> None:
        """Tell what the script has printed since the last step as one line of the stream.

        A script that prints much would otherwise fill the backlog of everybody who watches.
        """
        if self._printed:
            self._live.tell("log", self.clock.now(), text="\n".join(self._printed))
            self._printed.clear()

    async def _write_winner(self, step: core.WriteWinner) -> None:
        launch = self._launch
        decided = RaceDecided(
            run=self._live.run,
            at=self.clock.now(),
            launch=launch.number,
            revision=launch.revision.revision,
            identity=step.identity,
            fingerprint=step.fingerprint,
            width=step.width,
            winner=step.winner,
        )
        try:
            await self._journal.append([decided])
        except StoreError as error:
            self._do(launch.halt(Stop(error.code, error.message, error.hint)))
            return
        self._do(launch.on_written(step.race))
        self._live.naps.reconsider()  # the losers' calls that wait for their time are not made
        self._flush.set()

    def _on_settled(self, call: int, settlement: core.Settlement) -> None:
        if self._live.phase == "idle":
            return  # this actor was stopped first: what the call came to is in the journal
        self._do(self._launch.on_settled(call, settlement))
        self._flush.set()
        self._settled.set()

    def _on_halt(self, stop: Stop) -> None:
        now = self.clock.now()
        if stop.identity is not None:
            kind = _LINES.get(stop.code[:4], "failed")
            capability = self._launch.capability_at(stop.identity.site)
            self._live.tell(kind, now, identity=stop.identity, capability=capability, text=stop.message)
            if kind == "denied":
                self._denials.append(
                    CallDenied(
                        run=self._live.run,
                        at=now,
                        launch=self._launch.number,
                        identity=stop.identity,
                        capability=capability,
                        code=stop.code,
                        message=stop.message,
                    )
                )
        self._halted()

    def _halted(self) -> None:
        """After a stop: drop what waits for its turn, end the guest, look whether everything has settled."""
        self._live.stop()
        self._settled.set()
        if self._guest is not None:
            self.spawn(self._guest.sandbox.kill)

    async def _finish(self) -> None:
        live, launch = self._live, self._launch
        ending = launch.ending()
        now = self.clock.now()
        live.count(launch.counts, launch.saved, launch.saved_unpriced)
        with suppress(StoreError):
            # When even this cannot be written, the launch has no end in the journal: the run is interrupted.
            ended = LaunchEnded(
                run=live.run,
                at=now,
                launch=launch.number,
                status=ending.status,
                reason=ending.error.code if ending.error is not None else None,
                error=ending.error,
                result=await self._keeper.keep_raw(ending.result) if ending.has_result else None,
                executed=launch.counts["executed"],
                replayed=launch.counts["replayed"],
                failed=launch.counts["failed"],
                denied=launch.counts["denied"],
                saved=launch.saved,
                saved_unpriced=launch.saved_unpriced,
                orphans=ending.orphans,
                not_reached=ending.not_reached,
                warnings=(*launch.warnings, *live.warnings),
                logs=await self._keeper.keep_raw(launch.logs) if launch.logs else None,
            )
            # A row that stays live has the next start of the daemon look at the run, which may go on by itself.
            row = row_of(live.history, ending.status, now, live=ending.status == "interrupted")
            ends = without_end(live.history, now, "its answer could not be written down")
            certificate = issue(
                live.run,
                launch.number,
                at=now,
                cut=self._journal.store.last_sequence(),
                records=live.history.records,
                earlier=live.history.certificates,
            )
            asked = self._questions(now) if ending.status == "waiting" else []
            await self._journal.append([*self._denials, *asked, *ends, ended, certificate], [row])
        self._leave(ending.status)
        self.stop()

    def _questions(self, now: float) -> list[ApprovalAsked]:
        return [
            ApprovalAsked(
                run=self._live.run,
                at=now,
                launch=self._launch.number,
                identity=request.identity,
                capability=request.capability,
                digest=request.digest,
                payload=request.payload,
                take=request.take,
                reserved=estimate,
            )
            for request, estimate in self._launch.waiting
        ]

    async def on_stop(self) -> None:
        """Also after a crash: nothing that waits is sent, the run is not live any more, nobody waits for its stream."""
        if self._live.phase != "idle":
            self._launch.halt(_INTERRUPTED)
            self._live.stop()
        self._leave("interrupted")

    def _leave(self, status: RunStatus) -> None:
        if self._live.phase == "idle":
            return
        self._live.phase = "idle"
        self._ended()
        self._live.tell("ended", self.clock.now(), text=status)
        self._live.feed.close()


def _unreadable(record: Record, error: StoreError) -> Stop:
    return Stop(
        error.code,
        f"the result of {record.identity} is committed but cannot be read: {error.message}. It was not asked for again",
        error.hint or "tally doctor looks at the store",
        record.identity,
    )


def _overloaded(capability: str) -> Stop:
    return Stop(
        "TS-P008",
        f"too many calls of {capability} wait already; this one was not made",
        "resume when the daemon has less to do; what is committed replays for free",
    )
