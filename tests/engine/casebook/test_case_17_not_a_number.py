"""Casebook 17: NaN, infinity, null and a missing key must not collapse into one."""

import math
from typing import Any

import pytest

from engine_witness import Witness, assert_diverges, assert_standing, witnessed
from tallystick.contract.payload import digest
from tallystick.providers.protocol import Succeeded

NON_FINITE = """
async def orchestrate(ctx, args):
    strength = float(args)
    try:
        await ctx.run("text.generate", {"prompt": "x", "schema": {"levels": [0.5, strength]}})
    except CapabilityError as error:
        return [error.kind, error.text]
"""
PRESENT = """
SCHEMA = {schema}


async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {{"prompt": "x", "schema": SCHEMA}})
    return text["text"]
"""
ONE_TEXT = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "x"})
    return text["data"]
"""


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
async def test_a_non_finite_number_is_refused_before_an_attempt_with_its_path(value: str) -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(NON_FINITE, value)
        kind, text = report.result
        assert kind == "invalid_request"
        assert "payload.schema.levels[1]" in text
        assert witness.count() == 0
        assert (await engine.history(report.run)).attempts == {}
        await assert_standing(engine, report.run)


@pytest.mark.parametrize(("committed", "rewritten"), [('{"strength": None}', "{}"), ("{}", '{"strength": None}')])
async def test_null_and_missing_are_two_payloads(committed: str, rewritten: str) -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(PRESENT.format(schema=committed))).run
        change = "None -> (absent)" if committed.count("None") else "(absent) -> None"
        await assert_diverges(engine, run, PRESENT.format(schema=rewritten), f"payload.schema.strength: {change}")
        assert witness.count() == 1
        await assert_standing(engine, run)


@pytest.mark.parametrize("rewritten", ['{"strength": float("nan")}', '{"strength": float("inf")}'])
async def test_a_committed_null_never_becomes_a_non_finite_number(rewritten: str) -> None:
    """The call with NaN is no payload at all: it fails in the guest and reaches neither the record nor the provider."""
    computed = PRESENT.replace("    text =", "    schema = SCHEMA if args else {value}\n    text =").replace(
        '"schema": SCHEMA', '"schema": schema'
    )
    async with witnessed() as (engine, witness):
        first = await engine.run(computed.format(schema='{"strength": None}', value="{}"), True)
        assert first.status == "completed"
        again = await engine.resume(
            first.run, computed.format(schema='{"strength": None}', value=rewritten), args=False
        )
        assert (again.status, again.reason, witness.count()) == ("failed", "TS-R002", 1)
        assert again.error is not None
        assert "payload.schema.strength" in again.error.message
        await assert_standing(engine, first.run)


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, math.nan]], ids=["nan", "infinity", "nested"])
async def test_a_result_with_nan_is_kept_as_unusable_and_poisons_nothing(value: Any) -> None:
    witness = Witness()
    witness.script("text.generate", 1, Succeeded(result={"text": "paid for", "data": value}, cost=1_234))
    async with witnessed(witness) as (engine, _):
        report = await engine.run(ONE_TEXT)
        assert (report.status, report.reason, witness.count()) == ("failed", "TS-R002", 1)
        assert report.spend.usd == 0.001234
        (attempt,) = (await engine.history(report.run)).attempts.values()
        assert attempt.state == "unusable"
        assert attempt.ended is not None
        assert attempt.ended.raw is not None
        assert "paid for" in attempt.ended.raw.inline
        assert "nan" in attempt.ended.text or "inf" in attempt.ended.text
        await assert_standing(engine, report.run)
    # The journal can be read by whoever comes next, and the run goes on.
    async with witnessed(witness) as (engine, _):
        again = await engine.resume(report.run)
        assert (again.status, witness.count()) == ("completed", 2)
        await assert_standing(engine, report.run)


def test_the_digest_tells_null_from_missing() -> None:
    assert digest({"strength": None}) != digest({})
