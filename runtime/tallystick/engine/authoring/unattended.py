"""A run that repairs itself: launch, repair, launch, until it completes or a person has to decide something."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tallystick.contract.errors import TallyError
from tallystick.contract.events import ErrorInfo
from tallystick.engine import steps
from tallystick.engine.authoring.choices import AutoRepair
from tallystick.engine.authoring.session import Session
from tallystick.engine.launches import Launches
from tallystick.engine.library import Library
from tallystick.engine.messages import ResumeRequest, RunReport
from tallystick.kernel import KernelError

#: What a launch may end with for a model to repair the script without being asked to.
REPAIRABLE = frozenset(
    {
        steps.SCRIPT_FAILED,
        steps.CALL_FAILED,
        steps.ORPHANED,
        steps.GUEST_LIMIT,
        steps.BAD_RESULT,
        steps.TOO_LARGE,
    }
)
USED_UP = "TS-M003"
_BY = "auto-repair"


class Resume(Protocol):
    """Goes on with a run, as ``Service.resume`` does."""

    def __call__(self, run: str, request: ResumeRequest, *, by: str) -> Awaitable[RunReport]:
        """Start the next launch."""


class Unattended:
    """The loop of one session; ``repair`` returns an accepted script, None where there is none."""

    def __init__(
        self,
        session: Session,
        auto: AutoRepair,
        *,
        library: Library,
        launches: Launches,
        repair: Callable[[], Awaitable[str | None]],
        resume: Resume,
    ) -> None:
        self._session = session
        self._auto = auto
        self._library = library
        self._launches = launches
        self._repair = repair
        self._resume = resume

    async def run(self, first: ResumeRequest | None = None) -> None:
        """Follow the run from launch to launch; ``first`` is how a draft is launched.

        Raises:
            TallyError: somebody else has the run, or the journal cannot be written.
        """
        session = self._session
        if first is not None and not await self._begun(first):
            return
        while True:
            await self._launch_over()
            session.history = await self._library.history(session.run)
            stopped = _stopped(session, self._auto)
            if stopped is not None or session.status == "completed":
                session.error = stopped
                return
            with self._launches.claim(session.run, _BY):
                source = await self._repair()
            if source is None or not await self._begun(ResumeRequest(source=source, who=_BY)):
                return

    async def _launch_over(self) -> None:
        """Wait for the end of the live launch, and pass on what it tells."""
        session = self._session
        while (live := self._launches.live.get(session.run)) is not None:
            with live.feed.watch() as lines:
                async for line in lines:
                    if line.kind != "ended":
                        session.feed.publish(line)

    async def _begun(self, request: ResumeRequest) -> bool:
        """Start a launch; whatever stands against it ends the session, and is told."""
        try:
            await self._resume(self._session.run, request, by=_BY)
        except (TallyError, KernelError) as error:
            self._session.fail(error if isinstance(error, TallyError) else TallyError(str(error)))
            return False
        return True


def _stopped(session: Session, auto: AutoRepair) -> ErrorInfo | None:
    """Say why a run is not repaired without asking, None when it may be, or has completed."""
    history, run = session.history, session.run
    ended = history.launch.ended if history.launch is not None else None
    if ended is not None and ended.status == "completed":
        return None
    if session.cancelled_by is not None:
        return ErrorInfo(steps.CANCELLED, f"it was cancelled by {session.cancelled_by}", f"tally repair {run}")
    if history.unresolved:
        count = len(history.unresolved)
        return ErrorInfo(
            "TS-A001", f"{count} call(s) are unresolved, which is for a person to decide", "tally attempts"
        )
    if ended is None or ended.reason not in REPAIRABLE:
        reason = (ended.reason if ended is not None else None) or steps.INTERRUPTED
        return ErrorInfo(reason, "the launch ended in a way that a rewrite does not repair", f"tally show {run}")
    if session.rewrites >= auto.rewrites:
        return ErrorInfo(
            USED_UP,
            f"the run has failed again, and its {auto.rewrites} rewrite(s) are used up",
            f"tally repair {run} asks again; what is committed replays for free",
        )
    return None
