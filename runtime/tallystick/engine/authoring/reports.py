"""What clients are shown of candidates and sessions: pure functions over a run's history."""

from typing import Any

import msgspec

from tallystick.contract.candidates import Candidate
from tallystick.contract.errors import NoCandidateError
from tallystick.contract.events import ErrorInfo
from tallystick.contract.history import History
from tallystick.contract.prefix import frozen_sites
from tallystick.contract.tokens import tokens_of
from tallystick.engine.authoring.choices import AutoRepairReport, CandidateLine
from tallystick.engine.authoring.messages import CandidateReport, WritingReport
from tallystick.engine.authoring.session import Session, draft_status
from tallystick.engine.live_run import spend_of
from tallystick.engine.messages import Excerpt, RunReport
from tallystick.engine.reports import dollars
from tallystick.engine.review import conflict, diagnostic


def with_writing(report: RunReport, history: History, session: Session | None) -> RunReport:
    """Add to a run's report what a model has done for it; of a run without a launch this says how it stands."""
    writing = session is not None and session.writing
    lines = tuple(CandidateLine(**_line(candidate, writing=writing)) for candidate in history.candidates.values())
    changes: dict[str, Any] = {"candidates": lines}
    if history.launch is None and history.candidates:
        changes |= {"status": draft_status(history), "error": None, "reason": None}
        if changes["status"] == "failed" and not writing:
            changes["error"] = session.error if session and session.error else _no_script(history.run)
            changes["reason"] = changes["error"].code
    if session is not None:
        if writing:
            changes["phase"] = "writing"
        if session.auto is not None:
            why = session.error if session.over else None
            changes["auto_repair"] = AutoRepairReport(session.rewrites, session.auto.rewrites, session.over, why)
    return msgspec.structs.replace(report, **changes)


def candidate_report(candidate: Candidate, source: str | None, answer: Any, *, writing: bool) -> CandidateReport:
    """Report all of a candidate; ``source`` and ``answer`` as they were read back."""
    judged = candidate.judged
    line = _line(candidate, writing=writing)
    if judged is None:
        return CandidateReport(**line)
    return CandidateReport(
        **line,
        source=source,
        answer=answer,
        violations=tuple(map(diagnostic, judged.violations)),
        counterexamples=tuple(map(conflict, judged.counterexamples)),
        calls=judged.calls,
        calls_before=judged.calls_before,
        usage=judged.usage,
    )


def writing_report(history: History, session: Session, candidates: tuple[CandidateReport, ...]) -> WritingReport:
    """Report a session; ``candidates`` are those that it has asked for."""
    return WritingReport(
        run=history.run,
        purpose=session.purpose,
        state=session.state,
        model=session.model,
        base=session.base,
        source=next((one.source for one in reversed(candidates) if one.state == "accepted"), None),
        frozen=_frozen(history),
        candidates=candidates,
        error=session.error,
        spend=spend_of(history, 0),
    )


def kept_report(history: History, candidate: CandidateReport) -> WritingReport:
    """Report a candidate of any time as a session that asked for it alone."""
    base = history.revisions.get(candidate.revision) if candidate.revision is not None else None
    accepted = candidate.state == "accepted"
    return WritingReport(
        run=history.run,
        purpose=candidate.purpose,
        state="accepted" if accepted else "given_up",
        model=candidate.model or candidate.provider,
        base=base.source if base is not None else "",
        source=candidate.source if accepted else None,
        frozen=_frozen(history),
        candidates=(candidate,),
        error=None
        if accepted
        else ErrorInfo(NoCandidateError.code, f"candidate {candidate.candidate} was not accepted"),
        spend=spend_of(history, 0),
    )


def _frozen(history: History) -> tuple[Excerpt, ...]:
    return tuple(
        Excerpt(one.span.line, one.span.column, one.span.end_line, one.span.end_column, text=one.text)
        for one in sorted(frozen_sites(history).values(), key=lambda one: one.span)
    )


def _line(candidate: Candidate, *, writing: bool) -> dict[str, Any]:
    """Return the fields of a line; a call without an end that nobody waits for was cut off: perhaps billed."""
    asked, judged = candidate.asked, candidate.judged
    return {
        "candidate": asked.candidate,
        "purpose": asked.purpose,
        "revision": asked.revision,
        "state": candidate.state if candidate.judged is not None or writing else "unknown",
        "provider": asked.provider,
        "model": asked.model,
        "at": asked.at,
        "digest": judged.digest if judged is not None else "",
        "text": _summary(candidate),
        "cost_usd": dollars(candidate.cost),
        "tokens": tokens_of(judged.usage) if judged is not None else None,
    }


def _summary(candidate: Candidate) -> str:
    """Say in one line what stands against a candidate."""
    judged = candidate.judged
    if judged is None:
        return ""
    rules = sorted({found.rule for found in judged.violations})
    sites = [f"{found.kind} {found.site}" for found in judged.counterexamples]
    fewer = judged.outcome == "rejected" and not rules and not sites
    parts = [*rules, *sites, f"{judged.calls} call expressions of {judged.calls_before}" if fewer else "", judged.text]
    return "; ".join(part for part in parts if part)


def _no_script(run: str) -> ErrorInfo:
    return ErrorInfo(
        NoCandidateError.code,
        "a model was asked for the script of this run, and no answer of it was accepted",
        f"tally show {run} lists the candidates; tally author asks again, in a new run",
    )
