"""An operator's decisions on attempts that nobody can decide otherwise (contract.md, section 6.2)."""

import base64
import binascii
from typing import Any

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.errors import StoreError, UsageError
from tallystick.contract.events import AttemptDecided, Committed, Record, SiteRetired
from tallystick.contract.prefix import frozen_sites
from tallystick.engine.limits import cost_micros
from tallystick.engine.messages import AttemptReport, ReconcileRequest, RetireRequest
from tallystick.engine.reports import attempt_report
from tallystick.engine.results import UnusableResultError
from tallystick.engine.rows import row_of
from tallystick.engine.service import Service
from tallystick.kernel import Clock
from tallystick.providers.protocol import Blob

CONFLICT = "TS-U004"


class Operator:
    """Settles attempts by hand, each decision with who and why."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def attempts(self, run: str) -> list[AttemptReport]:
        """List the attempts of a run, oldest first."""
        history = await self._service.library.history(run)
        return [attempt_report(attempt) for attempt in history.attempts.values()]

    async def reconcile(self, run: str, number: int, request: ReconcileRequest) -> AttemptReport:
        """Commit the known result of an attempt, or abandon it to permit one more execution.

        The same decision again changes nothing; a conflicting one is refused.

        Raises:
            UsageError: no such attempt, not open to a decision, decided otherwise, or a result that does not fit.
            PolicyDeniedError: the run is live.
        """
        if request.abandon == (request.result is not msgspec.UNSET):
            raise UsageError(
                "say one of two: the known result, or that the attempt is abandoned", hint="--result FILE or --abandon"
            )
        service = self._service
        with service.launches.claim(run, "reconcile"):
            history = await service.library.history(run)
            await service.launches.settle(history)
            attempt = history.attempts.get(number)
            if attempt is None:
                raise UsageError(f"run {run} has no attempt {number}", hint=f"tally attempts {run} lists them")
            record = None if request.abandon else await self._record(attempt, request)
            if self._is_settled(attempt, record):
                return attempt_report(attempt)
            now = self._clock.now()
            decided = AttemptDecided(
                run=run,
                at=now,
                attempt=number,
                decision="abandon" if request.abandon else "commit",
                who=request.who,
                why=request.why,
            )
            events: list[AttemptDecided | Committed] = [decided]
            if record is not None:
                events.append(Committed(run=run, at=now, record=record))
            launch = history.launch
            status = launch.ended.status if launch is not None and launch.ended is not None else "interrupted"
            await service.journal.append(events, [row_of(history, status, now, live=False)])
        return attempt_report(attempt)

    async def retire(self, run: str, request: RetireRequest) -> None:
        """Release a frozen site from the gate; its records stay, and the ledger still guards them.

        Raises:
            UsageError: the site is not frozen, or it is held by an attempt that nobody has decided.
            PolicyDeniedError: the run is live.
        """
        service = self._service
        with service.launches.claim(run, "retire"):
            history = await service.library.history(run)
            frozen = frozen_sites(history).get(request.site)
            if frozen is None:
                raise UsageError(
                    f"{request.site} is not a frozen site of run {run}",
                    hint=f"tally show {run} lists what is committed",
                )
            if frozen.held:
                raise UsageError(
                    f"{request.site} is held: an attempt there is open or unusable, and must be decided first",
                    hint=f"tally attempts {run} names it; then tally reconcile",
                )
            if request.site in history.retired:
                return
            retired = SiteRetired(run=run, at=self._clock.now(), site=request.site, who=request.who, why=request.why)
            await service.journal.append([retired])

    def _is_settled(self, attempt: Attempt, record: Record | None) -> bool:
        """Whether this very decision stands already; ``record`` is what would be committed, None to abandon.

        Raises:
            UsageError: another one does, or none can be made.
        """
        number = attempt.started.attempt
        if attempt.decided is not None:
            if attempt.committed == record:
                return True
            raise UsageError(
                f"attempt {number} was already decided otherwise: {attempt.decided.decision} by "
                f"{attempt.decided.who}; that decision stands, and nothing was changed",
                hint="to replace a committed result, append a new call and use its result",
                code=CONFLICT,
            )
        if attempt.state not in ("unresolved", "unusable"):
            raise UsageError(
                f"attempt {number} is {attempt.state}; only unresolved and unusable attempts can be decided",
                hint="tally attempts RUN --open lists those that can",
                code=CONFLICT,
            )
        return False

    async def _record(self, attempt: Attempt, request: ReconcileRequest) -> Record:
        started = attempt.started
        try:
            kept = await self._service.keeper.keep(started.capability, _with_blobs(request.result))
            self._check_files(request.result)
        except UnusableResultError as error:
            raise UsageError(f"the result does not fit: {error}", hint="tally capabilities shows its shape") from None
        known = attempt.ended.cost if attempt.ended is not None else None
        cost = known if request.cost_usd is None else cost_micros(request.cost_usd)
        return kept.record(started, cost=cost)

    def _check_files(self, value: Any) -> None:
        """Refuse a result that refers to files which are not there: it could never be used."""
        if isinstance(value, dict):
            name = value.get("$artifact")
            if isinstance(name, str):
                try:
                    self._service.journal.store.get_file(name.removeprefix("sha256:"))
                except StoreError:
                    raise UsageError(
                        f"the result refers to {name[:20]}..., and the store has no such file; nothing was committed",
                        hint='put the file itself into the result: {"$file": "picture.png"} in place of the reference',
                    ) from None
            for item in value.values():
                self._check_files(item)
        elif isinstance(value, list):
            for item in value:
                self._check_files(item)


def _with_blobs(value: Any) -> Any:
    """Turn ``{"$base64": …, "media_type": …}`` into bytes: so files travel inside a result that is given by hand."""
    if isinstance(value, dict):
        if "$base64" in value:
            try:
                data = base64.b64decode(value["$base64"], validate=True)
            except (binascii.Error, TypeError, ValueError):
                raise UsageError("a $base64 entry of the result is not base64") from None
            return Blob(data, str(value.get("media_type", "application/octet-stream")))
        return {key: _with_blobs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_blobs(item) for item in value]
    return value
