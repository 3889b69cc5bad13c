"""Whether a candidate is accepted: checker, gate, and no fewer calls than before (contract.md, section 9)."""

from collections.abc import Collection

import msgspec

from tallystick.contract.authoring.untrusted import harmless
from tallystick.contract.gate import Verdict
from tallystick.contract.report import Report
from tallystick.contract.source import Counterexample, SiteFact, Violation

#: Findings that one prompt shows; a model corrects the first, and the others with it.
MOST_FINDINGS = 12


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be said of a candidate; it is accepted when nothing is.

    ``violations`` are the checker's errors; only without any did the gate look, whose findings are
    ``counterexamples``; only without those were the calls counted. ``calls`` counts the candidate's call expressions,
    ``calls_before`` those that it must not fall short of.
    """

    violations: tuple[Violation, ...] = ()
    counterexamples: tuple[Counterexample, ...] = ()
    calls: int = 0
    calls_before: int = 0

    @property
    def accepted(self) -> bool:
        """Whether nothing stands against the candidate."""
        return not self.violations and not self.counterexamples and self.calls >= self.calls_before


def judge(report: Report, verdict: Verdict | None, calls_before: int = 0) -> Judgement:
    """Judge a candidate by the checker's report, the gate's verdict (None: no prefix) and the count of its calls."""
    if not report.valid or report.script is None:
        errors = tuple(violation for violation in report.violations if violation.severity == "error")
        return Judgement(violations=errors, calls_before=calls_before)
    return Judgement(
        counterexamples=verdict.counterexamples if verdict is not None else (),
        calls=call_expressions(report.script.sites),
        calls_before=calls_before,
    )


def call_expressions(sites: Collection[SiteFact], retired: Collection[str] = ()) -> int:
    """Count call expressions; a retired site may go, so it is none that a rewrite has to keep."""
    return sum(fact.kind == "call" and fact.site not in retired for fact in sites)


def findings(judgement: Judgement) -> tuple[str, ...]:
    """Say what is wrong with a candidate, a text for each finding, bounded, for its author."""
    found = [
        f"line {one.span.line}: {one.rule}: {harmless(one.message)}\n  write instead: {harmless(one.hint)}"
        for one in judgement.violations
    ]
    found += [_counterexample(one) for one in judgement.counterexamples]
    if not found and not judgement.accepted:
        found.append(
            f"the script has {judgement.calls} call expression(s) and had {judgement.calls_before}: calls are missing, "
            "perhaps because it was cut short. Keep every ctx.run of the script; one that is not needed costs nothing "
            "on replay"
        )
    more = len(found) - MOST_FINDINGS
    return (*found[:MOST_FINDINGS], *([f"... and {more} more of the kind"] if more > 0 else []))


def _counterexample(one: Counterexample) -> str:
    lines = [
        f"{one.kind} {one.site}: {harmless(one.message)}",
        f"  committed, at line {one.old_span.line}: {harmless(one.old_text, 400)}",
    ]
    if one.new_span is not None:
        lines.append(f"  yours, at line {one.new_span.line}: {harmless(one.new_text or '', 400)}")
    if one.moved_to is not None:
        lines.append(f"  an equal call of yours stands at {one.moved_to}, where it would be paid for again")
    return "\n".join([*lines, f"  what is allowed: {harmless(one.hint)}"])
