import json

import pytest

from tallystick.cli.main import main
from tallystick.contract.rules import RULES


def test_all_rules_are_listed_without_a_daemon(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [rule.code for rule in RULES]
    assert main(["rules", "--json"]) == 0
    assert [rule["slug"] for rule in json.loads(capsys.readouterr().out)["rules"]] == [rule.slug for rule in RULES]


@pytest.mark.parametrize("name", ["R03", "r03", "unbounded-loop"])
def test_a_rule_is_explained_by_its_code_or_its_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith("R03  unbounded-loop")
    assert [line for line in out.splitlines() if line and not line.startswith((" ", "R03"))] == [
        "what it refuses",
        "why",
        "refused",
        "write instead",
    ]
    assert '      for ticket in args["tickets"][:20]:\n' in out
    assert main(["rules", name, "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["code"], rule["refused"].splitlines()[2]) == ("R03", '    for ticket in args["tickets"]:')


@pytest.mark.parametrize(("name", "hint"), [("R99", "they are R00 to R12"), ("unbound-loop", "unbounded-loop?")])
def test_an_unknown_rule_is_named_with_what_there_is(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", name]) == 2
    assert hint in capsys.readouterr().err
