"""The table of rules: every code once, in order, each with a page whose examples are what they say they are."""

import ast
import re
import textwrap

import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.rules import RULES
from tallystick.contract.rules.rule import Rule
from tallystick.contract.survey_walk import STATEMENTS
from tallystick.contract.syntax import EXPRESSIONS, PARTS, REFUSED

HEADINGS = ["What it refuses", "Why", "Refused", "Write instead"]
GRANTS = Envelope(grants=("text.generate", "image.generate", "review.visual", "storyboard.plan"))
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def sections(rule: Rule) -> dict[str, str]:
    parts = re.split(r"^(\S[^\n]*):\n", rule.page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(textwrap.dedent, parts[2::2]), strict=True))


def test_the_codes_are_unique_and_contiguous() -> None:
    assert [rule.code for rule in RULES] == [f"R{number:02}" for number in range(13)]
    assert len({rule.slug for rule in RULES}) == len(RULES)


@every_rule
def test_a_rule_lives_in_the_module_of_its_slug(rule: Rule) -> None:
    assert rule.check.__module__.rpartition(".")[2] == rule.slug.replace("-", "_")


@every_rule
def test_a_page_has_its_four_headings(rule: Rule) -> None:
    assert rule.page.startswith(f"{rule.code}: {rule.title}.\n\n")
    assert list(sections(rule)) == HEADINGS


@every_rule
def test_the_refused_example_is_refused_by_its_rule_alone(rule: Rule) -> None:
    found = check(sections(rule)["Refused"], GRANTS).violations
    assert rule.code in {one.rule for one in found}
    assert {one.rule for one in found} - {rule.code} <= ALSO_FOUND.get(rule.code, set())


ALSO_FOUND = {"R00": {"R04"}, "R01": {"R02"}}


@every_rule
def test_what_to_write_instead_is_accepted(rule: Rule) -> None:
    assert check(sections(rule)["Write instead"], GRANTS).violations == ()


def test_every_kind_of_syntax_of_this_python_was_decided_about() -> None:
    decided = {*EXPRESSIONS, *STATEMENTS, *PARTS}
    for kind in vars(ast).values():
        if isinstance(kind, type) and issubclass(kind, ast.AST) and is_built_by_the_parser(kind):
            assert (kind in decided) is not (kind.__name__ in REFUSED), kind.__name__


def is_built_by_the_parser(kind: type[ast.AST]) -> bool:
    """Leave out the abstract bases, what a parser of modules does not build, and what older Pythons built."""
    outside = {"Expression", "Interactive", "FunctionType", "TypeIgnore", "Index", "ExtSlice", "Suite", "AugLoad"}
    outside |= {"AugStore", "Param", "Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    return kind.__name__ not in outside and not any(
        isinstance(other, type) and other is not kind and issubclass(other, kind) and kind is not ast.Constant
        for other in vars(ast).values()
    )
