"""What a review of a script means to whoever wanted it started."""

from tallystick.contract.errors import GateStoppedError, ScriptRefusedError
from tallystick.contract.script import Script
from tallystick.engine.gate_actor import Review
from tallystick.engine.messages import CheckReport, Facts


def accepted(review: Review) -> Script:
    """Return the script of a review that nothing stopped.

    Raises:
        ScriptRefusedError: the checker found errors; the findings are in ``details``.
        GateStoppedError: the gate stopped it; the counterexamples are in ``details``.
    """
    if review.script is None:
        errors = sum(violation.severity == "error" for violation in review.report.violations)
        raise ScriptRefusedError(
            f"the checker refused the script: {errors} finding(s); nothing was started and nothing spent",
            hint="correct what is named and try again; tally check shows the same",
            details=review.report.violations,
        )
    if review.verdict is not None and not review.verdict.accepted:
        count = len(review.verdict.counterexamples)
        raise GateStoppedError(
            f"the gate stopped the rewrite: {count} committed call(s) would change or move; nothing was started and "
            "nothing spent",
            hint="leave committed calls as and where they are; append new calls after them",
            details=review.verdict.counterexamples,
        )
    return review.script


def check_report(review: Review) -> CheckReport:
    """Turn a review into the checker's report for clients."""
    report = review.report
    if report.script is None:
        return CheckReport(valid=False, violations=report.violations)
    totals = [fact.total for fact in report.script.sites if fact.kind == "call"]
    bound = None if None in totals else sum(total for total in totals if total is not None)
    facts = Facts(report.script.sites, report.facts.calls, bound, report.facts.fanouts, report.facts.loops)
    return CheckReport(valid=report.valid, violations=report.violations, facts=facts)
