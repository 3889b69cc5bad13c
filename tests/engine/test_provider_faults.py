"""Providers that raise, hang, or return what is no outcome: nobody waits for ever, nothing paid is lost."""

from typing import Any

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.engine.outcomes import TEXT_LIMIT, raised, sound
from tallystick.kernel import ManualClock
from tallystick.providers.protocol import Blob, Outcome, Refused, Sample, Succeeded, Unknown, Unusable

IMAGE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a mug"})
    return image["width"]
"""
TEXT = """
async def orchestrate(ctx, args):
    try:
        text = await ctx.run("text.generate", {"prompt": "a line"})
    except CapabilityError as error:
        return [error.kind, error.text]
    return text["text"]
"""


class Faulty(Witness):
    """Does something in place of its first answer."""

    def __init__(self, instead: Any) -> None:
        super().__init__()
        self.instead = instead

    async def call(self, capability: str, payload: Any, key: str, sample: Sample) -> Outcome:
        outcome = await super().call(capability, payload, key, sample)
        instead, self.instead = self.instead, outcome
        if isinstance(instead, Exception):
            raise instead
        answer: Outcome = instead
        return answer


@pytest.mark.parametrize(
    "instead",
    [RuntimeError("out of paper"), TimeoutError(), None, {"text": "I am not an outcome"}, "ok"],
    ids=lambda instead: type(instead).__name__,
)
async def test_a_side_effect_without_an_outcome_is_unresolved(instead: Any) -> None:
    async with witnessed(Faulty(instead)) as (engine, witness):
        report = await engine.run(IMAGE)
        assert (report.reason, report.calls.unresolved, witness.count()) == ("TS-A002", 1, 1)
        (attempt,) = report.unresolved
        assert type(instead).__name__ in attempt.text
        await assert_standing(engine, report.run, lossy=True)
        await engine.reconcile(report.run, 1, abandon=True)
        assert (await engine.resume(report.run)).result == 1024


async def test_a_read_only_call_without_an_outcome_is_unavailable() -> None:
    async with witnessed(Faulty(RuntimeError("out of paper"))) as (engine, witness):
        report = await engine.run(TEXT)
        kind, text = report.result
        assert (report.status, kind, witness.count()) == ("completed", "unavailable", 1)
        assert "RuntimeError: out of paper" in text


async def test_other_calls_of_the_capability_are_not_hit_by_a_provider_that_raises() -> None:
    async with witnessed(Faulty(RuntimeError("out of paper"))) as (engine, witness):
        gate = witness.hold(containing="a mug")
        sound_run = await engine.submit(IMAGE)
        await gate.reached()
        faulty_run = await engine.run(IMAGE.replace("a mug", "a cup"))
        assert faulty_run.reason == "TS-A002"
        gate.release()
        assert (await engine.end(sound_run)).status == "completed"


@pytest.mark.parametrize(("script", "capability"), [(IMAGE, "image.generate"), (TEXT, "text.generate")])
async def test_a_provider_that_hangs_is_given_up_after_its_time(script: str, capability: str) -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"timeout": 90.0}) as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(script)
        await gate.reached()
        await clock.advance(89)
        assert (await engine.host.service.report(run)).status == "running"
        await clock.advance(2)
        report = await engine.end(run)
        assert [hit.capability for hit in witness.cancelled] == [capability]
        (attempt,) = await engine.attempts(run)
        assert (attempt.kind, attempt.text) == ("timeout", "no answer within 90 s")
        if capability == "image.generate":
            assert (report.reason, attempt.state) == ("TS-A002", "unresolved")
        else:
            assert (report.result, attempt.state) == (["timeout", "no answer within 90 s"], "unknown")
        assert witness.count() == 1


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "text",
        {"text": 1, "data": None},
        {"text": "x"},
        {1: "x"},
        {"text": "x", "data": {1, 2}},
        {"text": "x", "data": object()},
    ],
    ids=repr,
)
async def test_an_answer_that_is_no_result_is_unusable_and_kept(result: Any) -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = Succeeded(result=result, cost=77)
        report = await engine.run(TEXT)
        assert (report.status, report.result[0], report.spend.usd) == ("completed", "unusable", 0.000077)
        attempt = (await engine.history(report.run)).attempts[1]
        assert attempt.ended is not None
        assert attempt.ended.raw is not None
        await assert_standing(engine, report.run)


async def test_an_answer_that_is_nested_without_end_is_unusable() -> None:
    endless: list[Any] = []
    for _ in range(5_000):
        endless = [endless]
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = Succeeded(result={"text": "x", "data": endless}, cost=77)
        report = await engine.run(TEXT)
        assert (report.status, report.result[0]) == ("completed", "unusable")
        assert "nested" in report.result[1]
        await assert_standing(engine, report.run)


async def test_a_usage_and_a_cost_that_are_none_do_not_lose_the_result() -> None:
    async with witnessed() as (engine, witness):
        usage: Any = {"tokens": object()}
        cost: Any = 0.5
        witness.broken["a line"] = Succeeded(result={"text": "paid", "data": None}, usage=usage, cost=cost)
        report = await engine.run(TEXT)
        assert (report.status, report.result, report.spend.unpriced) == ("completed", "paid", 1)
        (record,) = (await engine.history(report.run)).records.values()
        assert (record.usage, record.cost) == ({}, None)


def test_an_outcome_that_is_sound_stays_as_it_is() -> None:
    for outcome in (
        Succeeded(result={"a": Blob(b"x", "image/png")}, usage={"tokens": 3}, cost=5, job="j"),
        Refused(kind="rate_limited", text="slow down", retry_after=2.5, cost=None),
        Unusable(raw=b"?", text="broken", cost=1),
        Unknown(reason="reset", kind="unavailable", job="j", cost=2),
    ):
        assert sound(outcome) == outcome


@pytest.mark.parametrize("cost", [-1, 0.5, True, "3", 1 << 63, float("nan")])
def test_a_cost_that_is_none_is_unknown_and_not_zero(cost: Any) -> None:
    for outcome in (Succeeded(result=None, cost=cost), Refused(kind="unavailable", text="", cost=cost)):
        assert sound(outcome).cost is None


def test_words_are_bounded_and_can_be_written() -> None:
    kind: Any = "tired"
    refused = sound(Refused(kind=kind, text="x" * 10_000 + "\ud800", retry_after=-1))
    assert refused == Refused(kind="unavailable", text="x" * TEXT_LIMIT)
    assert sound(Unknown(reason="\ud800")) == Unknown(reason="?")
    assert len(raised(RuntimeError("x" * 10_000)).reason) == TEXT_LIMIT
