"""The skill document: all that a script may use, in few tokens, with examples that run."""

import pytest

from engine_support import house
from tallystick.contract.checker import check
from tallystick.contract.rules import RULES
from tallystick.engine.authoring.skill import EXAMPLES, TOKEN_LIMIT, estimated_tokens, skill
from tallystick.providers.catalogue import CATALOGUE, spec
from tallystick.sandbox.guest.context import Context

ARGS = {"brief": "a lighthouse", "tickets": ["where is my order", "how do I pay"]}


def test_it_stays_under_its_limit() -> None:
    assert estimated_tokens(skill()) <= TOKEN_LIMIT
    assert estimated_tokens("x" * 35) == 10


def test_it_names_every_rule_capability_and_method() -> None:
    text = skill()
    assert [rule.code for rule in RULES if f"- {rule.code}: " not in text] == []
    assert [name for name in CATALOGUE if f"- `{name}` (" not in text] == []
    methods = [name for name in vars(Context) if not name.startswith("_")]
    assert [name for name in methods if f"- `ctx.{name}(" not in text] == []
    assert "ctx.run(capability, payload, take=None)" in text


def test_it_has_the_prices_and_capabilities_that_are_configured() -> None:
    text = skill({"text.generate": spec("text.generate")})
    assert "- `text.generate` (read-only, $0.001)" in text
    assert "- `image.generate`" not in text


def test_the_part_on_repairs_can_be_left_out() -> None:
    assert "## Repairing a script" in skill()
    assert "## Repairing a script" not in skill(repairing=False)


@pytest.mark.parametrize("name", EXAMPLES)
async def test_a_worked_example_runs_to_its_result(name: str) -> None:
    assert check(EXAMPLES[name]).violations == ()
    async with house() as engine:
        report = await engine.run(EXAMPLES[name], ARGS)
        assert (report.status, report.error) == ("completed", None)
        assert report.result
