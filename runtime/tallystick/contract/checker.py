"""The static checker: one walk over the source, then the rules (contract.md, section 4).

Nothing of the source is executed. A source that parses always gets a report, whatever is in it.
"""

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tallystick.contract.bounds.analysis import Bounds
from tallystick.contract.bounds.effect import INF, Number
from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.positions import SourceMap
from tallystick.contract.report import Facts, FanoutFact, LoopFact, Report
from tallystick.contract.rules import RULES
from tallystick.contract.rules.rule import Evidence, Rule
from tallystick.contract.scopes import COMPREHENSIONS, Place
from tallystick.contract.script import ScriptSyntaxError, read_script
from tallystick.contract.sites import collect_sites
from tallystick.contract.source import Level, Span, Violation
from tallystick.contract.survey import FANOUTS, Survey
from tallystick.contract.survey_walk import survey

_LOOPS: dict[type[ast.AST], str] = {
    ast.For: "for",
    ast.AsyncFor: "for",
    ast.While: "while",
    **dict.fromkeys(COMPREHENSIONS, "comprehension"),
}

_TOO_DEEP = Violation(
    "R00",
    "error",
    Span(1, 0, 1, 0),
    "the statements of the script are nested too deep, or its chains of elif are too long, to be judged",
    "move inner blocks into functions, and long chains of elif into a dict",
)


def check(
    source: str, envelope: Envelope | None = None, catalogue: Mapping[str, CapabilitySpec] | None = None
) -> Report:
    """Judge a script.

    Args:
        source: the text.
        envelope: what the run may do; None leaves the envelope rules out.
        catalogue: the known capabilities by name; None leaves unknown names to the grants.
    """
    try:
        script = read_script(source)
    except ScriptSyntaxError as error:
        return _refused(source, error.violation)
    sites = {found.node: found.site for found in script.nodes}
    try:
        violations, facts = check_tree(script.tree, script.positions, sites, envelope=envelope, catalogue=catalogue)
    except RecursionError:  # within the limits of the parser, but not of what looks closer
        return Report((_TOO_DEEP,), Facts(), None)
    return Report(violations, facts, script.with_bounds(facts.bounds, facts.routes))


def check_tree(
    tree: ast.Module,
    positions: SourceMap,
    sites: Mapping[ast.Call, str],
    *,
    envelope: Envelope | None = None,
    catalogue: Mapping[str, CapabilitySpec] | None = None,
    rules: Sequence[Rule] = RULES,
) -> tuple[tuple[Violation, ...], Facts]:
    """Judge a parsed script; ``sites`` names its capability calls and races.

    Returns:
        The findings, in the order of the source, and the facts.
    """
    table: dict[type[ast.AST], list[Rule]] = defaultdict(list)
    for rule in rules:
        for kind in rule.nodes:
            table[kind].append(rule)
    found = survey(tree, {*table, *_LOOPS, *(kind for rule in rules for kind in rule.sees)})
    bounds = Bounds(found)
    evidence = Evidence(found, bounds, positions, envelope, catalogue)
    violations = {
        Violation(rule.code, finding.severity, positions.span(finding.node), finding.message, finding.hint)
        for kind, concerned in table.items()
        for node, place in found.found[kind]
        for rule in concerned
        for finding in rule.check(node, place, evidence)
    }
    return tuple(sorted(violations, key=_order)), _facts(found, bounds, positions, sites)


def _refused(source: str, violation: Violation) -> Report:
    """Report a source that could not be read; where it parses all the same, a rule may say better what is wrong."""
    try:
        positions = SourceMap.of(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(positions.data.decode())
        collect_sites(tree)
        better, facts = check_tree(tree, positions, {})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Report((violation,), Facts(), None)
    if any(one.rule != "R00" and _overlap(one.span, violation.span) for one in better):
        return Report(better, facts, None)
    return Report(tuple(sorted((violation, *better), key=_order)), facts, None)


def _overlap(left: Span, right: Span) -> bool:
    return (left.line, left.column) < (right.end_line, right.end_column) and (right.line, right.column) < (
        left.end_line,
        left.end_column,
    )


def _order(violation: Violation) -> tuple[Span, str, str, str]:
    return violation.span, violation.rule, violation.message, violation.hint


def _facts(found: Survey, bounds: Bounds, positions: SourceMap, sites: Mapping[ast.Call, str]) -> Facts:
    calls: Counter[str] = Counter()
    fanouts: list[FanoutFact] = []
    limits: dict[str, tuple[int | None, int | None]] = {}
    routes: dict[str, tuple[tuple[Level, ...], ...] | None] = {}
    for node, place in found.context_calls:
        method = node.func.attr
        if method in FANOUTS:
            fanouts.append(FanoutFact(method, positions.span(node), _known(bounds.fanouts.width(node, place))))
        elif method == "run":
            calls[_capability(node)] += 1
        if node in sites:
            total, per_path = bounds.callers.executions(place), bounds.paths.per_path(node, place)
            limits[sites[node]] = (_known(total), _known(min(total, per_path)))
            if method == "run":
                routes[sites[node]] = bounds.paths.routes(node, place, sites)
    loops = [
        LoopFact(name, positions.span(node), _known(_rounds(node, place, bounds)))
        for kind, name in _LOOPS.items()
        for node, place in found.found[kind]
    ]
    return Facts(
        tuple(sites.values()),
        dict(sorted(calls.items())),
        tuple(sorted(fanouts, key=lambda fact: fact.span)),
        tuple(sorted(loops, key=lambda fact: fact.span)),
        limits,
        routes,
    )


def _rounds(node: Any, place: Place, bounds: Bounds) -> Number:
    return bounds.loops.comprehension(node, place) if isinstance(node, COMPREHENSIONS) else bounds.loops.rounds(node)


def _capability(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "?"


def _known(number: Number) -> int | None:
    return None if number == INF else int(max(number, 0))
