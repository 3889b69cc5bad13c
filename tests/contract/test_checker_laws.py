"""Laws of the checker, on scripts that nobody wrote: bounds hold, verdicts depend on meaning alone, nothing raises."""

import ast
import io
import math
import tokenize
import warnings
from collections import Counter
from pathlib import Path
from random import Random  # noqa: TID251 - hypothesis seeds it

from hypothesis import given, settings
from hypothesis import strategies as st

from checker_fanouts import FanoutScript, calls_of
from checker_generator import Script, run
from tallystick.contract.bounds.analysis import Bounds
from tallystick.contract.checker import check, check_tree
from tallystick.contract.positions import SourceMap
from tallystick.contract.rules import RULES
from tallystick.contract.survey_walk import survey

HERE = Path(__file__).parent
SOURCES = [path.read_text() for path in sorted([*HERE.glob("rules/R*/*.py"), *HERE.parent.glob("corpus/*/script.py")])]
sources = st.sampled_from(SOURCES)
seeds = st.randoms(use_true_random=True)
some = settings(max_examples=settings().max_examples // 2)
fewer = settings(max_examples=settings().max_examples // 4)  # whole scripts, several times over


def compiles(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, "<generated>", "exec")
        except SyntaxError:
            return False
    return True


@some
@given(seeds)
def test_no_script_goes_beyond_its_bounds(chance: Random) -> None:
    source = Script(chance).write()
    if not compiles(source):
        return
    found = survey(ast.parse(source), (ast.For, ast.While))
    bounds = Bounds(found)
    rounds = {node.lineno: bounds.loops.rounds(node) for kind in found.found for node, _ in found.found[kind]}
    calls = sum(bounds.callers.executions(place) for _, place in found.context_calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            most, made = run(source, chance)
            assert made <= calls, source
            for line, count in most.items():
                assert count <= rounds[line], f"line {line}\n{source}"


@some
@given(seeds)
def test_no_call_happens_more_often_than_its_bounds_say(chance: Random) -> None:
    source = FanoutScript(chance).write()
    report = check(source)
    assert report.valid, report.violations
    assert report.script is not None
    facts = {fact.site: fact for fact in report.script.sites}
    made: Counter[str] = Counter()
    for (site, path), count in calls_of(report.script).items():
        made[site] += count
        per_path = facts[site].per_path
        assert per_path is not None, source
        assert count <= per_path, f"{site} under {path}\n{source}"
    for site, count in made.items():
        total = facts[site].total
        assert total is not None, source
        assert count <= total, f"{site}\n{source}"


def test_the_generated_scripts_have_bounds_to_go_beyond() -> None:
    proved = 0
    for seed in range(20):
        source = Script(Random(seed)).write()
        if compiles(source):
            found = survey(ast.parse(source), (ast.For, ast.While))
            bounds = Bounds(found)
            proved += sum(
                0 < bounds.loops.rounds(node) < math.inf for kind in found.found for node, _ in found.found[kind]
            )
    assert proved > 20


@fewer
@given(sources, seeds)
def test_the_verdict_does_not_depend_on_the_order_of_the_rules(source: str, chance: Random) -> None:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    shuffled = list(RULES)
    chance.shuffle(shuffled)
    positions = SourceMap.of(source)
    assert check_tree(tree, positions, {}) == check_tree(tree, positions, {}, rules=shuffled)


@fewer
@given(sources, seeds)
def test_comments_and_blank_lines_change_no_finding(source: str, chance: Random) -> None:
    if not compiles(source):
        return
    ends = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NEWLINE
    }
    lines = []
    for number, line in enumerate(source.splitlines(), 1):
        lines.append(line)
        if number in ends and chance.random() < 0.3:
            lines += chance.choice([[""], ["# while True: import os"], ["", "        # eval(x)", ""]])
    padded, plain = check("\n".join(lines) + "\n").violations, check(source).violations
    assert [(one.rule, one.hint) for one in padded] == [(one.rule, one.hint) for one in plain]


@given(sources, seeds)
def test_a_script_that_lost_its_way_is_judged(source: str, chance: Random) -> None:
    lines = source.splitlines()
    for _ in range(chance.randint(1, 4)):
        here, there = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randint(0, 3):
            case 0:
                lines[here], lines[there] = lines[there], lines[here]
            case 1:
                lines.insert(here, lines[there])
            case 2:
                lines[here] = lines[here].replace(chance.choice(["await ", "ctx", "[:", "(", "for ", "="]), "", 1)
            case _:
                lines[here] = " " * chance.choice([0, 4, 8]) + lines[there].strip()
    report = check("\n".join(lines))
    assert Counter(one.rule for one in report.violations).keys() <= {rule.code for rule in RULES}
    assert (report.script is None) <= (not report.valid)


@given(st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    assert all(one.message and one.hint for one in check(text).violations)


@fewer
@given(seeds)
def test_a_generated_script_is_judged(chance: Random) -> None:
    check(Script(chance).write())
