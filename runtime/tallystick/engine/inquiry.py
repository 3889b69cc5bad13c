"""Questions about a run after the fact: its certificates, and why a call was replayed, executed or refused."""

import anyio.to_thread

from tallystick.contract.attempts import Attempt
from tallystick.contract.capability import usd
from tallystick.contract.certificate import Difference, verify
from tallystick.contract.errors import UsageError
from tallystick.contract.events import ApprovalAsked, ApprovalDecided, CallDenied, CertificateIssued
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.prefix import is_losers
from tallystick.engine.journal import Journal
from tallystick.engine.library import Library
from tallystick.engine.messages import CertificateReport, DifferenceReport, Explanation
from tallystick.engine.waiting import asked_calls

_SAID = {
    "committed": "it is committed",
    "in_flight": "it is in flight",
    "failed": "it failed; a resume executes it again",
    "unusable": "the provider answered and billed, but the answer cannot be used; it replays as that failure",
    "unresolved": "nobody knows whether it was executed; it is not sent again before somebody decides",
    "unknown": "nobody knows whether it was executed; it is read-only, so a resume makes it again",
    "resent": "it was sent again under its key, and the attempt that did so answers for both",
    "abandoned": "an operator abandoned it; a resume may execute it once more",
}
#: What is said of an attempt that another one followed.
_PAST = {
    "failed": "it failed, and was executed again",
    "unknown": "nobody knows whether it was executed; it is read-only, and was made again",
    "resent": "nobody knew whether it was executed, and it was sent again under its key",
    "abandoned": "an operator abandoned it, and it was executed again",
}


class Inquiry:
    """Answers from the journal alone; changes nothing."""

    def __init__(self, journal: Journal, library: Library) -> None:
        self._journal = journal
        self._library = library

    async def certificate(self, run: str, *, check: bool) -> CertificateReport:
        """Return the latest certificate of a run; with ``check``, recompute all of them at their own cuts.

        Raises:
            UsageError: no launch of the run has ended yet.
            StoreCorruptError: the run's events are damaged.
        """
        history = await self._library.history(run)
        if not history.certificates:
            raise UsageError(f"run {run} has no certificate yet: it gets one when a launch ends")
        latest = history.certificates[-1]
        differences = await anyio.to_thread.run_sync(self._verify, run) if check else None
        return CertificateReport(
            run=run,
            launch=latest.launch,
            at=latest.at,
            cut=latest.cut,
            entries=latest.entries,
            chain=latest.chain,
            frozen=latest.frozen,
            certificates=len(history.certificates),
            differences=None
            if differences is None
            else tuple(DifferenceReport(one.launch, one.kind, one.identity, one.message) for one in differences),
        )

    def _verify(self, run: str) -> list[Difference]:
        history = History(run)
        certificates: list[CertificateIssued] = []
        events = list(self._journal.store.read(run))
        cuts = sorted({event.cut for _, event in events if isinstance(event, CertificateIssued)})
        records_at = {}
        for sequence, event in events:
            while cuts and sequence > cuts[0]:
                records_at[cuts.pop(0)] = dict(history.records)
            history.apply(event)
            if isinstance(event, CertificateIssued):
                certificates.append(event)
        return verify(certificates, records_at)

    async def explain(self, run: str, identity: Identity) -> Explanation:
        """Say what became of one call, and why.

        Raises:
            UsageError: the run never reached it.
        """
        history = await self._library.history(run)
        record = history.records.get(identity)
        tried = [one for one in history.attempts.values() if one.started.identity == identity]
        denials = [one for one in history.denials if one.identity == identity]
        waits = [one for one in asked_calls(history) if one[0].identity == identity]
        if record is None and not tried and not denials and not waits:
            raise UsageError(
                f"run {run} has never reached {identity}", hint=f"tally attempts {run} lists what it has reached"
            )
        lines = [_attempt_line(attempt, latest=attempt is tried[-1]) for attempt in tried] + [
            _denial_line(denial) for denial in denials
        ]
        lines += [_waiting_line(*one) for one in waits]
        launch = history.launch
        ended = launch.ended if launch is not None else None
        if record is not None:
            lines.append(_record_line(history, identity))
        if ended is not None and identity in ended.orphans:
            lines.append(f"launch {ended.launch} finished without it: it is an orphan")
        elif ended is not None and identity in ended.not_reached:
            lines.append(f"launch {ended.launch} ended before it was reached")
        state = "waiting" if waits else tried[-1].state if tried else "denied"
        return Explanation(run=run, identity=identity, state=state, lines=tuple(lines))


def _attempt_line(attempt: Attempt, *, latest: bool) -> str:
    started, ended = attempt.started, attempt.ended
    said = _SAID[attempt.state] if latest else _PAST.get(attempt.state, _SAID[attempt.state])
    if attempt.survived and attempt.state in ("failed", "unknown", "unusable"):
        said = "it failed, and later calls had seen that: it replays as the same failure"
    why = f" ({ended.kind}: {ended.text})" if ended is not None and ended.kind is not None else ""
    cost = "" if attempt.cost is None else f", {usd(attempt.cost)}"
    decided = attempt.decided
    by = f"; {decided.decision} by {decided.who}: {decided.why}" if decided is not None else ""
    return f"attempt {started.attempt}, launch {started.launch}, key {started.effect_key}: {said}{why}{cost}{by}"


def _denial_line(denial: CallDenied) -> str:
    return f"launch {denial.launch} denied it [{denial.code}]: {denial.message}"


def _waiting_line(asked: ApprovalAsked, decided: ApprovalDecided | None) -> str:
    text = f"launch {asked.launch} ended waiting for an approval of it (payload digest {asked.digest[:12]})"
    if decided is None:
        return f"{text}; tally approve {asked.run} '{asked.identity}' shows it"
    why = f": {decided.why}" if decided.why else ""
    return f"{text}; {decided.who} has {'approved of' if decided.approved else 'denied'} it{why}"


def _record_line(history: History, identity: Identity) -> str:
    record = history.records[identity]
    text = (
        f"revision {record.revision} committed it in launch {record.launch}: a call with the same payload "
        f"(digest {record.digest[:12]}) replays for free, another payload there is a divergence"
    )
    if is_losers(history, identity, history.races.keys()):
        text += "; its branch lost a race, so later launches do not reach it"
    return text
