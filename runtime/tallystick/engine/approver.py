"""A person's word on calls that are not made unasked (contract.md, section 6)."""

from tallystick.contract.errors import UsageError
from tallystick.contract.events import ApprovalAsked, ApprovalDecided
from tallystick.contract.history import History
from tallystick.engine.money_messages import ApprovalRequest, WaitingCall
from tallystick.engine.reports import run_report
from tallystick.engine.rows import row_of
from tallystick.engine.service import Service
from tallystick.engine.waiting import asked_calls, waiting_call, waiting_calls
from tallystick.kernel import Clock

NOT_WAITING = "TS-U005"


class Approver:
    """Takes approvals and denials, each with who and why; going on is a resume."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def waiting(self, run: str) -> list[WaitingCall]:
        """List the calls that the run waits for, decided ones included."""
        return list(waiting_calls(await self._service.library.history(run)))

    async def decide(self, run: str, request: ApprovalRequest) -> WaitingCall:
        """Write down a decision on one call, as it was shown; the same one again changes nothing.

        Another one takes the place of an earlier one for as long as the call has not been made.

        Raises:
            UsageError: no such call waits, or it is another one than was shown; nothing was decided.
            PolicyDeniedError: the run is live.
        """
        service = self._service
        with service.launches.claim(run, "approval"):
            history = await service.library.history(run)
            asked, decided = _held(history, request)
            if decided is None or decided.approved != request.approve:
                decided = ApprovalDecided(
                    run=run,
                    at=self._clock.now(),
                    identity=asked.identity,
                    capability=asked.capability,
                    digest=asked.digest,
                    take=asked.take,
                    approved=request.approve,
                    who=request.who,
                    why=request.why,
                )
                await service.journal.append([decided])
                status = run_report(history).status
                await service.journal.append([], [row_of(history, status, self._clock.now(), live=False)])
        return waiting_call(asked, decided)


def _held(history: History, request: ApprovalRequest) -> tuple[ApprovalAsked, ApprovalDecided | None]:
    """Return the call that is meant, and what was decided of it before."""
    waiting = asked_calls(history)
    found = next((one for one in waiting if one[0].identity == request.identity), None)
    if found is None:
        names = "; ".join(str(asked.identity) for asked, _ in waiting[:5]) or "no call"
        raise UsageError(
            f"{request.identity} does not wait for an approval in run {history.run} ({names} does); nothing was "
            "decided",
            hint=f"tally approve {history.run} shows what waits",
            code=NOT_WAITING,
        )
    if found[0].digest != request.digest:
        raise UsageError(
            f"{request.identity} waits with another payload (digest {found[0].digest[:12]}) than the one that was "
            f"decided on ({request.digest[:12]}); nothing was decided",
            hint=f"tally approve {history.run} '{request.identity}' shows the payload as it is",
            code=NOT_WAITING,
        )
    return found
