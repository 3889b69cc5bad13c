"""What a review of a script means to whoever wanted it started, in the words of the API."""

from tallystick.contract.errors import GateStoppedError, ScriptRefusedError
from tallystick.contract.report import FanoutFact, LoopFact, Report
from tallystick.contract.script import Script
from tallystick.contract.source import Counterexample, SiteFact, Span, Violation
from tallystick.engine.gate_actor import Review
from tallystick.engine.messages import (
    CheckReport,
    Conflict,
    Diagnostic,
    Excerpt,
    Facts,
    Fanout,
    GateReport,
    Loop,
    Site,
)


def accepted(review: Review) -> Script:
    """Return the script of a review that nothing stopped.

    Raises:
        ScriptRefusedError: the checker found errors; the findings are in ``details``.
        GateStoppedError: the gate stopped it; the conflicts are in ``details``.
    """
    if review.script is None:
        errors = sum(violation.severity == "error" for violation in review.report.violations)
        raise ScriptRefusedError(
            f"the checker refused the script: {errors} finding(s); nothing was started and nothing spent",
            hint="correct what is named and try again; tally check, with the same --grant, shows the same",
            details=_diagnostics(review.report),
        )
    if review.verdict is not None and not review.verdict.accepted:
        count = len(review.verdict.counterexamples)
        raise GateStoppedError(
            f"the gate stopped the rewrite: {count} committed call(s) would change or move; nothing was started and "
            "nothing spent",
            hint="leave committed calls as and where they are; append new calls after them",
            details=tuple(map(conflict, review.verdict.counterexamples)),
        )
    return review.script


def check_report(review: Review) -> CheckReport:
    """Turn a review into the checker's report for clients."""
    report = review.report
    if report.script is None:
        return CheckReport(valid=False, violations=_diagnostics(report))
    totals = [fact.total for fact in report.script.sites if fact.kind == "call"]
    facts = Facts(
        sites=tuple(map(_site, report.script.sites)),
        calls=report.facts.calls,
        call_bound=None if None in totals else sum(total for total in totals if total is not None),
        fanouts=tuple(map(_fanout, report.facts.fanouts)),
        loops=tuple(map(_loop, report.facts.loops)),
    )
    return CheckReport(valid=report.valid, violations=_diagnostics(report), facts=facts)


def gate_report(review: Review, frozen: int) -> GateReport:
    """Turn a review into the gate's report for clients; ``frozen`` sites were compared.

    Where the checker's findings stop the candidate first, they are the report.
    """
    if review.verdict is None:
        return GateReport(accepted=False, violations=_diagnostics(review.report), frozen=frozen)
    conflicts = tuple(map(conflict, review.verdict.counterexamples))
    return GateReport(accepted=review.verdict.accepted, counterexamples=conflicts, frozen=frozen)


def _diagnostics(report: Report) -> tuple[Diagnostic, ...]:
    return tuple(map(diagnostic, report.violations))


def diagnostic(violation: Violation) -> Diagnostic:
    """Turn a finding of the checker into the API's."""
    return Diagnostic(
        *_ends(violation.span),
        rule=violation.rule,
        severity=violation.severity,
        message=violation.message,
        hint=violation.hint,
    )


def conflict(found: Counterexample) -> Conflict:
    """Turn a finding of the gate into the API's."""
    new = None if found.new_span is None else Excerpt(*_ends(found.new_span), text=found.new_text or "")
    return Conflict(
        site=found.site,
        kind=found.kind,
        message=found.message,
        hint=found.hint,
        old=Excerpt(*_ends(found.old_span), text=found.old_text),
        new=new,
        moved_to=found.moved_to,
    )


def _site(fact: SiteFact) -> Site:
    return Site(
        *_ends(fact.span),
        site=fact.site,
        kind=fact.kind,
        capability=fact.capability,
        fingerprint=fact.fingerprint,
        total=fact.total,
        per_path=fact.per_path,
    )


def _fanout(fact: FanoutFact) -> Fanout:
    return Fanout(*_ends(fact.span), kind=fact.kind, width=fact.width)


def _loop(fact: LoopFact) -> Loop:
    return Loop(*_ends(fact.span), kind=fact.kind, rounds=fact.rounds)


def _ends(span: Span) -> tuple[int, int, int, int]:
    """Return the ends of a span in the order of ``Region``."""
    return span.line, span.column, span.end_line, span.end_column
