"""The launches of all runs: who may start one, how it begins, and what is left when it ends.

One loop runs it, so that a claim on a run is taken between two awaits and exactly one of two callers wins.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio
import msgspec

from tallystick.contract.capability import Envelope
from tallystick.contract.errors import DaemonError, PolicyDeniedError, StoreError
from tallystick.contract.events import AnyEvent, LaunchStarted, RevisionAdded, RunCreated
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.engine.journal import Journal
from tallystick.engine.launch import Launch
from tallystick.engine.library import Library
from tallystick.engine.live_run import LiveRun
from tallystick.engine.recovery import cut_off
from tallystick.engine.rows import row_of
from tallystick.engine.steps import STOPPING
from tallystick.kernel import Clock, cancel_after

BUSY = "TS-P010"

_DRAINED = Stop(
    STOPPING,
    "the daemon was stopped during this launch; calls in flight were kept, or are named as unresolved",
    "it goes on by itself at the next start unless something is unresolved; else tally resume",
)


class Launcher(Protocol):
    """Starts and reaches the actors of live runs."""

    @property
    def driver_name(self) -> str:
        """The name of the sandbox driver."""

    @property
    def image(self) -> str:
        """The id of the image that it has pinned, "" where there is none."""

    async def start(self, live: LiveRun, launch: Launch, annotated: str, ended: Callable[[], None]) -> None:
        """Start the actor of a run."""

    def cancel(self, run: str, stop: Stop) -> None:
        """Tell the actor of a run to stop."""

    def launch(
        self, history: History, envelope: Envelope, number: int, revision: RevisionAdded, allowance: Allowance
    ) -> Launch:
        """Build a launch's state machine."""


class NextLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that nothing stands in the way of. ``before`` are the events that must be durable with its start."""

    history: History
    revision: RevisionAdded
    annotated: str
    envelope: Envelope
    allowance: Allowance
    faults: tuple[str, ...]
    latency: float
    before: tuple[AnyEvent, ...]


class Launches:
    """Live runs by id, and the claims on them."""

    def __init__(self, journal: Journal, library: Library, launcher: Launcher, clock: Clock) -> None:
        self.live: dict[str, LiveRun] = {}
        self._journal = journal
        self._library = library
        self._launcher = launcher
        self._clock = clock
        self._claims: dict[str, str] = {}
        self._settling: dict[str, LiveRun] = {}
        self._idle = anyio.Event()
        self._closing_at: float | None = None

    @contextmanager
    def claim(self, run: str, by: str) -> Iterator[None]:
        """Hold a run that is not live for one operation.

        Raises:
            PolicyDeniedError: it is live, or another operation holds it.
        """
        holder = self._claims.get(run) or ("launch" if run in self.live else None)
        if holder is not None:
            raise PolicyDeniedError(
                f"run {run} is busy: another {holder} has it; nothing was started",
                hint=f"tally watch {run} shows it; tally cancel {run} ends it",
                code=BUSY,
            )
        self._claims[run] = by
        try:
            with self._library.pinned(run):
                yield
        finally:
            del self._claims[run]

    async def begin(self, following: NextLaunch) -> None:
        """Journal the start of a launch, in one transaction with what led to it, and start its actor.

        Raises:
            DaemonError: the daemon is being stopped; nothing was written and nothing started.
            StoreError: as well.
        """
        if self._closing():
            raise DaemonError(
                "the daemon is being stopped and starts nothing more; nothing was started",
                hint="try again: the next command starts a daemon",
                code=STOPPING,
            )
        history, now = following.history, self._clock.now()
        started = LaunchStarted(
            run=history.run,
            at=now,
            launch=len(history.launches) + 1,
            revision=following.revision.revision,
            driver=self._launcher.driver_name,
            image=self._launcher.image,
            envelope=following.envelope,
            allow_repeats=following.allowance.all_repeats,
            allowed_repeats=tuple(following.allowance.repeats),
            faults=following.faults,
            latency=following.latency,
        )
        created = next((event for event in following.before if isinstance(event, RunCreated)), None)
        row = row_of(history, "running", now, live=True, created=created)
        self._library.lend(history)
        try:
            await self._journal.append([*following.before, started], [row])
        except StoreError:
            self._library.forget(history.run)
            raise
        live = LiveRun(history, following.envelope, faults=following.faults, latency=following.latency)
        launch = self._launcher.launch(
            history, following.envelope, started.launch, following.revision, following.allowance
        )
        live.accepts_work = lambda: launch.accepts_work
        self.live[history.run] = live
        await self._launcher.start(live, launch, following.annotated, lambda: self._ended(history.run))
        if self._closing():
            self.cancel(history.run, _DRAINED)

    def cancel(self, run: str, stop: Stop) -> None:
        """Stop the live launch of a run: nothing new is sent from now on, what is in flight settles."""
        live = self.live.get(run)
        if live is not None:
            live.accepts_work = lambda: False  # at once: its actor hears of it a turn later
        self._launcher.cancel(run, stop)

    async def drain(self, seconds: float) -> None:
        """Start no more launches, interrupt the live ones, and wait until they have settled, at most so long.

        The time counts from the first call; a later one waits for what is left of it. Whoever watches a launch that
        has not settled by then is told that it was interrupted.
        """
        now = self._clock.monotonic()
        if self._closing_at is None:
            self._closing_at = now + seconds
        for run in list(self.live):
            self.cancel(run, _DRAINED)
        with cancel_after(self._clock, max(0.0, self._closing_at - now)):
            while self.live:
                self._idle = anyio.Event()
                await self._idle.wait()
        for live in self.live.values():
            live.tell("ended", self._clock.now(), text="interrupted")
            live.feed.close()

    async def settle(self, history: History) -> None:
        """Wait for what an earlier launch left in flight, then end what never got an end in the journal.

        Raises:
            StoreError: the ends could not be written.
        """
        settling = self._settling.get(history.run)
        while settling is not None and settling.in_flight:
            await settling.changed()
        self._settling.pop(history.run, None)
        ends = cut_off(history, self._clock.now(), "its answer could not be written down")
        if ends:
            await self._journal.append(ends)

    def _closing(self) -> bool:
        return self._closing_at is not None

    def _ended(self, run: str) -> None:
        live = self.live.pop(run, None)
        if live is not None:
            self._library.keep(live.history)
            if live.in_flight:
                self._settling[run] = live
        self._idle.set()
