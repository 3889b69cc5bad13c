"""Every rule against its fixtures: scripts with the expected findings as comments on the lines they begin on.

``# R03`` expects one finding of R03 on that line, ``# R02 R02`` two; ``# grants: a, b; max_calls: 3`` at the top gives
the script an envelope. A fixture has all the findings it expects and no others.
"""

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.rules import RULES
from tallystick.contract.rules.rule import Rule

FIXTURES = sorted((Path(__file__).parent / "rules").glob("R*/*.py"))
_EXPECTED = re.compile(r"#((?: R\d\d)+)$")


def _expected(source: str) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(source.splitlines(), 1):
        match = _EXPECTED.search(line)
        for code in match[1].split() if match else ():
            found[number, code] += 1
    return found


def _envelope(source: str) -> Envelope | None:
    first = source.partition("\n")[0]
    if not first.startswith("# grants:"):
        return None
    fields = dict(field.strip().split(": ", 1) for field in first.removeprefix("# ").split(";"))
    grants = fields.pop("grants").split(", ")
    return msgspec.convert({"grants": grants, **fields}, Envelope, strict=False)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixture_has_the_findings_it_expects(path: Path) -> None:
    source = path.read_text()
    found = check(source, _envelope(source)).violations
    assert Counter((one.span.line, one.rule) for one in found) == _expected(source), "\n".join(
        f"{one.rule} {one.span.line}: {one.message}" for one in found
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_refused_and_an_allowed_fixture(rule: Rule) -> None:
    folder = Path(__file__).parent / "rules" / f"{rule.code}_{rule.slug.replace('-', '_')}"
    assert list(folder.glob("refused*.py"))
    assert list(folder.glob("allowed*.py"))


@pytest.mark.parametrize("path", [path for path in FIXTURES if path.stem.startswith("refused")], ids=str)
def test_a_refused_fixture_hits_its_own_rule(path: Path) -> None:
    assert path.parent.name[:3] in {code for _, code in _expected(path.read_text())}
