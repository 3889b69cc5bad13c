"""Casebook 18: sets, shared objects, and things that are not the payload."""

from typing import Any

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import ScriptRefusedError
from tallystick.contract.payload import digest
from tallystick.providers.protocol import Outcome, Sample

REFUSED = """
async def orchestrate(ctx, args):
    WORDS = [word for word in "one two three four five six".split()]
    value = EXPRESSION
    try:
        await ctx.run("text.generate", {"prompt": "x", "schema": {"value": value}})
    except CapabilityError as error:
        return [error.kind, error.text]
"""
ASKED = """
async def orchestrate(ctx, args):
    part = {{"a": 1, "b": [1, 2]}}
    schema = {schema}
    text = await ctx.run("text.generate", {{"prompt": "x", "schema": schema}})
    return text["text"]
"""


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("set(WORDS)", "sorted("),
        ("frozenset(WORDS)", "sorted("),
        ('"x".encode()', "artifact"),
        ("{len(WORDS): 1}", "str("),
        ("range(3)", "list("),
        ("(word for word in WORDS)", "list"),
        ("2 ** 64", "str("),
    ],
)
async def test_what_cannot_be_a_payload_is_refused_with_its_path_and_a_suggestion(expression: str, advice: str) -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(REFUSED.replace("EXPRESSION", expression))
        kind, text = report.result
        assert kind == "invalid_request"
        assert text.startswith("payload.schema.value")
        assert advice in text
        assert witness.count() == 0
        assert (await engine.history(report.run)).attempts == {}
        await assert_standing(engine, report.run)


@pytest.mark.parametrize(("literal", "advice"), [("{*WORDS}", "sorted("), ('{1: "a", "1": "b"}', "str(")])
async def test_what_is_seen_to_be_no_payload_is_refused_before_the_start(literal: str, advice: str) -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(ScriptRefusedError) as refused:
            await engine.run(REFUSED.replace("EXPRESSION", literal))
        assert [one.rule for one in refused.value.details] == ["R08"]
        assert advice in refused.value.details[0].hint
        assert (witness.disk.events, witness.count()) == ([], 0)


@pytest.mark.parametrize(
    ("committed", "rewritten"),
    [
        ('{"x": part, "y": part}', '{"x": {"a": 1, "b": [1, 2]}, "y": {"b": [1, 2], "a": 1}}'),
        ('{"x": (1, 2)}', '{"x": [1, 2]}'),
        ('{"first": 1, "second": 2}', '{"second": 2, "first": 1}'),
    ],
    ids=["shared or copied", "tuple or list", "order of keys"],
)
async def test_equal_values_replay_whatever_their_making(committed: str, rewritten: str) -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(ASKED.format(schema=committed))).run
        again = await engine.resume(run, ASKED.format(schema=rewritten))
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 1, 1)
        await assert_standing(engine, run)


class NewRelease(Witness):
    """A provider that fills in what the payload leaves out, and uses the payload it was handed for that."""

    async def call(self, capability: str, payload: Any, key: str, sample: Sample) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        payload["quality"] = "high"
        payload.get("schema", {})["added"] = True
        return outcome


async def test_what_a_provider_adds_to_its_request_is_outside_the_digest_and_the_journal() -> None:
    script = ASKED.format(schema="part")
    async with witnessed(NewRelease()) as (engine, witness):
        run = (await engine.run(script)).run
        (attempt,) = (await engine.history(run)).attempts.values()
        assert attempt.started.payload == {"prompt": "x", "schema": {"a": 1, "b": [1, 2]}}
        assert digest(attempt.started.payload) == attempt.started.digest
        again = await engine.resume(run)
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 1, 1)


async def test_nonces_and_site_annotations_are_no_part_of_the_payload() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(ASKED.format(schema="part"))
        (hit,) = witness.hits
        assert hit.payload.keys() == {"prompt", "schema"}
        (attempt,) = await engine.attempts(report.run)
        assert attempt.payload == hit.payload
