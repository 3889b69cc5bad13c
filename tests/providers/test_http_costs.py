"""What a call cost is what was billed, or it is said that nobody knows (casebook 31)."""

from typing import Any

import msgspec
import pytest

from http_support import Rigs, operation
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.prices import Price, cost
from tallystick.providers.protocol import Succeeded
from upstream_faults import Fault
from upstream_server import Upstream

ANSWER: dict[str, Any] = {
    "usage": {"in": 1_000, "out": 250, "none": None, "odd": -3, "yes": True},
    "data": [{}, {}, {}],
    "cost": {"amount": 0.0423, "text": "0.5", "currency": "USD"},
}


@pytest.mark.parametrize(
    ("price", "micros"),
    [
        ({}, None),
        ({"fixed": 0.04}, 40_000),
        ({"fixed": 0.0}, 0),
        ({"per_unit": {"data[*]": 0.03}}, 90_000),
        ({"per_million": {"usage.in": 5.0, "usage.out": 40.0}}, 15_000),
        ({"fixed": 0.01, "per_unit": {"usage.out": 0.0001}}, 35_000),
        ({"per_million": {"usage.in": 5.0, "usage.gone": 40.0}}, None),
        ({"per_unit": {"usage.none": 1.0}}, None),
        ({"per_unit": {"usage.odd": 1.0}}, None),
        ({"per_unit": {"usage.yes": 1.0}}, None),
        ({"stated": "cost.amount"}, 42_300),
        ({"stated": "cost.text"}, 500_000),
        ({"stated": "cost.amount", "currency": "cost.currency"}, 42_300),
        ({"stated": "cost.amount", "currency": "cost.gone"}, None),
        ({"stated": "cost.amount", "currency": "cost.text"}, None),
        ({"stated": "cost.gone"}, None),
        ({"header": "X-Cost"}, 2_500),
        ({"header": "x-cost-gone"}, None),
        ({"header": "x-words"}, None),
        ({"header": "x-nan"}, None),
    ],
)
def test_a_price_is_a_sum_of_what_is_known(price: dict[str, Any], micros: int | None) -> None:
    headers = {"x-cost": "0.0025", "x-words": "free", "x-nan": "nan"}
    assert cost(msgspec.convert(price, Price), ANSWER, headers) == micros


def test_without_a_price_or_an_answer_nothing_is_known() -> None:
    assert cost(None, ANSWER, {}) is None
    assert cost(Price(per_unit={"data[*]": 0.03}), MISSING, {}) is None
    assert cost(Price(fixed=0.04), MISSING, {}) == 40_000


@pytest.mark.parametrize("kind", ["openai", "seedream", "studio"])
async def test_what_is_reported_is_what_was_billed(kind: str, rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, kind)
    payloads = [{"prompt": f"picture {number}", "n": 1} for number in range(3)]
    outcomes = [await provider.call(payload, key=f"key-{number}") for number, payload in enumerate(payloads)]
    assert all(isinstance(outcome, Succeeded) for outcome in outcomes)
    assert sum(outcome.cost or 0 for outcome in outcomes) == upstream.bill > 0


async def test_several_pictures_are_paid_as_several(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "openai").call({"prompt": "x", "n": 4})
    assert outcome.cost == upstream.bill > 160_000


@pytest.mark.parametrize("kind", ["openai", "seedream", "studio"])
@pytest.mark.parametrize("lie", ["usage", "null usage"])
async def test_an_answer_without_usage_has_an_unknown_cost(lie: Any, kind: str, rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(lie=lie))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Succeeded)
    assert (outcome.cost, outcome.usage) == (None, {})
    assert upstream.bill > 0


async def test_no_price_is_no_zero(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "openai", priced=False).call()
    assert (outcome.cost, upstream.bill > 0) == (None, True)


async def test_a_proxy_may_state_the_cost_in_a_header(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(headers={"x-litellm-response-cost": "0.0421"}))
    price = operation(price={"header": "X-LiteLLM-Response-Cost"})
    provider = rig(upstream, "openai", priced=False, operations=price)
    assert (await provider.call()).cost == 42_100
