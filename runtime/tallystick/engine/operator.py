"""An operator's decisions on attempts that nobody can decide otherwise (contract.md, section 6.2)."""

import base64
import binascii
from typing import Any

import msgspec

from tallystick.contract.attempts import Attempt
from tallystick.contract.errors import AttemptUnresolvedError, StoreError, UsageError
from tallystick.contract.events import AnyEvent, AttemptDecided, AttemptPriced, Committed, Record, SiteRetired
from tallystick.contract.history import History
from tallystick.contract.prefix import frozen_sites
from tallystick.engine.limits import cost_micros
from tallystick.engine.messages import AttemptReport, ReconcileRequest, RetireRequest
from tallystick.engine.reports import attempt_report
from tallystick.engine.results import UnusableResultError
from tallystick.engine.rows import row_of
from tallystick.engine.service import Service
from tallystick.kernel import Clock
from tallystick.providers.protocol import Blob, Succeeded, Unknown

CONFLICT, STILL_UNUSABLE = "TS-U004", "TS-A003"


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
        """Commit the known result of an attempt, abandon it, read its kept answer again, or set its price.

        Before an attempt is abandoned its provider is asked, where it can be: what it answers closes the attempt. The
        same decision again changes nothing; a conflicting one is refused.

        Raises:
            UsageError: no such attempt, not open to a decision, decided otherwise, or a result that does not fit.
            AttemptUnresolvedError: the kept answer still cannot be used.
            PolicyDeniedError: the run is live.
        """
        _require_one(request)
        service = self._service
        with service.launches.claim(run, "reconcile"):
            history = await service.library.history(run)
            await service.launches.settle(history)
            attempt = history.attempts.get(number)
            if attempt is None:
                raise UsageError(f"run {run} has no attempt {number}", hint=f"tally attempts {run} lists them")
            events: list[AnyEvent] = []
            if request.abandon:
                await self._ask_first(attempt)
                if not self._is_settled(attempt, None):
                    events = self._decision(attempt, request, None)
            elif request.reprocess or request.result is not msgspec.UNSET:
                if not (request.reprocess and attempt.decided is not None and attempt.committed is not None):
                    record = await self._record(history, attempt, request)
                    if not self._is_settled(attempt, record):
                        events = self._decision(attempt, request, record)
            elif not self._has_price(attempt, request):
                events = [self._price(attempt, request)]
            if events:
                launch = history.launch
                status = launch.ended.status if launch is not None and launch.ended is not None else "interrupted"
                await service.journal.append(events)
                await service.journal.append([], [row_of(history, status, self._clock.now(), live=False)])
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

    async def _ask_first(self, attempt: Attempt) -> None:
        """Ask the provider before anybody permits one more payment.

        Raises:
            UsageError: it knows what became of the attempt, which has its end now.
        """
        if attempt.state != "unresolved":
            return
        await self._service.inquirer.ask(attempt)
        if attempt.found is not None or attempt.committed is not None:
            said = f": {attempt.found.text}" if attempt.found is not None else ""
            raise UsageError(
                f"the provider was asked, and attempt {attempt.started.attempt} is {attempt.state}{said}; "
                "it was not abandoned",
                hint="resume: what is committed replays for free, and what has failed is executed again",
                code=CONFLICT,
            )

    def _decision(self, attempt: Attempt, request: ReconcileRequest, record: Record | None) -> list[AnyEvent]:
        """Return the events of a decision; ``record`` is what is committed, None to abandon."""
        run, now, number = attempt.started.run, self._clock.now(), attempt.started.attempt
        events: list[AnyEvent] = [
            AttemptDecided(
                run=run,
                at=now,
                attempt=number,
                decision="abandon" if record is None else "commit",
                who=request.who,
                why=request.why or ("its kept answer was processed again" if request.reprocess else ""),
            )
        ]
        if record is not None:
            events.append(Committed(run=run, at=now, record=record))
        elif request.cost_usd is not None and not attempt.is_billed:
            events.append(self._price(attempt, request))
        return events

    def _has_price(self, attempt: Attempt, request: ReconcileRequest) -> bool:
        """Whether this very price stands already.

        Raises:
            UsageError: the provider has named one, or the attempt must be decided first.
        """
        number = attempt.started.attempt
        if attempt.open:
            raise UsageError(
                f"attempt {number} is {attempt.state}, and has no price before it has an end; nothing was changed",
                hint="give --cost together with --result or --abandon",
            )
        if not attempt.is_unpriced:
            what = "counts with the attempt that sent it again" if attempt.state == "resent" else "has its price"
            raise UsageError(f"attempt {number} {what}; nothing was changed", code=CONFLICT)
        return attempt.priced is not None and attempt.priced.cost == cost_micros(request.cost_usd or 0.0)

    def _price(self, attempt: Attempt, request: ReconcileRequest) -> AttemptPriced:
        return AttemptPriced(
            run=attempt.started.run,
            at=self._clock.now(),
            attempt=attempt.started.attempt,
            cost=cost_micros(request.cost_usd or 0.0),
            who=request.who,
            why=request.why,
        )

    async def _record(self, history: History, attempt: Attempt, request: ReconcileRequest) -> Record:
        """Return the record that a decision commits: of the given result, or of the kept answer."""
        started = attempt.started
        latest = history.latest_attempt[started.identity]
        if latest is not attempt:
            raise UsageError(
                f"attempt {started.attempt} was followed by attempt {latest.started.attempt} at {started.identity}, "
                "which decides; nothing was changed",
                hint=f"tally attempts {history.run} lists them",
                code=CONFLICT,
            )
        if request.reprocess:
            return await self._reprocessed(attempt, request)
        try:
            kept = await self._service.keeper.keep(started.capability, _with_blobs(request.result))
            self._check_files(request.result)
        except UnusableResultError as error:
            raise UsageError(f"the result does not fit: {error}", hint="tally capabilities shows its shape") from None
        return kept.record(started, cost=_cost(request, attempt.cost))

    async def _reprocessed(self, attempt: Attempt, request: ReconcileRequest) -> Record:
        started = attempt.started
        self._is_settled(attempt, None)
        outcome = await self._service.inquirer.reprocess(attempt)
        if outcome is None:
            lacks = "has no kept answer" if attempt.raw is None else f'came from "{started.provider}", which reads none'
            raise UsageError(
                f"attempt {started.attempt} {lacks} again; nothing was changed",
                hint="settle it with --result FILE or --abandon",
            )
        try:
            if isinstance(outcome, Succeeded):
                kept = await self._service.keeper.keep(started.capability, outcome.result)
                cost = attempt.cost if outcome.cost is None else outcome.cost
                return kept.record(started, cost=_cost(request, cost), usage=outcome.usage)
            said = outcome.reason if isinstance(outcome, Unknown) else outcome.text
        except UnusableResultError as error:
            said = str(error)
        raise AttemptUnresolvedError(
            f"the kept answer of attempt {started.attempt} still cannot be used: {said}. It stays as it is; no "
            "call was made and nothing spent",
            hint="correct the provider's settings, restart the daemon and try again; or --result FILE, or --abandon",
            code=STILL_UNUSABLE,
        )

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


def _require_one(request: ReconcileRequest) -> None:
    """Refuse what is no decision.

    Raises:
        UsageError: none or several of result, abandonment, reprocessing and price.
    """
    ways = (request.abandon, request.reprocess, request.result is not msgspec.UNSET)
    if sum(ways) > 1 or not (any(ways) or request.cost_usd is not None):
        raise UsageError(
            "say one of these: the known result, that the attempt is abandoned, that its kept answer is read again, or "
            "what it cost",
            hint="--result FILE, --abandon, --reprocess, or --cost DOLLARS alone",
        )


def _cost(request: ReconcileRequest, known: int | None) -> int | None:
    return known if request.cost_usd is None else cost_micros(request.cost_usd)


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
