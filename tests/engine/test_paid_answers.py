"""What was paid for and could not be used is read again without a new call; what came without a price gets one."""

from typing import Any

import pytest

from broker_support import CAUGHT, PAID, Knowing, states
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import AttemptUnresolvedError, UsageError
from tallystick.engine.messages import AttemptReport
from tallystick.providers.protocol import Blob, Outcome, Refused, Succeeded, Unknown, Unusable

PICTURE = {"images": [Blob(b"\x89PNG late", "image/png")], "width": 64, "height": 48}
BROKEN = Unusable(raw={"data": "half"}, text="cut off", cost=20_000)


async def test_a_kept_answer_becomes_the_result_without_a_new_call() -> None:
    provider = Knowing()
    async with witnessed(provider) as (engine, _):
        provider.broken["a mug"] = BROKEN
        first = await engine.run(CAUGHT)
        assert (first.result, provider.count()) == (["unusable", "cut off"], 1)
        provider.calm()
        provider.readings["a mug"] = Succeeded(result=PICTURE, usage={"images": 1})
        settled = await engine.reconcile(first.run, 1, reprocess=True)
        assert (settled.state, settled.decision, settled.cost_usd) == ("committed", "commit", 0.02)
        report = await engine.resume(first.run)
        assert (report.result, report.calls.replayed, provider.count()) == (64, 1, 1)
        assert (report.spend.usd, provider.read) == (0.02, [{"data": "half"}])
        assert await engine.reconcile(first.run, 1, reprocess=True) == settled


async def test_one_that_still_cannot_be_used_stays_kept() -> None:
    provider = Knowing()
    async with witnessed(provider) as (engine, _):
        provider.broken["a mug"] = BROKEN
        run = (await engine.run(CAUGHT)).run
        events = len(provider.disk.events)
        readings: list[tuple[Outcome, str]] = [
            (Unusable(raw={}, text="no picture"), "no picture"),
            (Unknown(reason="the link is gone"), "the link is gone"),
            (Succeeded(result={"images": []}), "no result of image.generate"),
        ]
        for reading, said in readings:
            provider.readings["a mug"] = reading
            with pytest.raises(AttemptUnresolvedError, match=said) as refused:
                await engine.reconcile(run, 1, reprocess=True)
            assert refused.value.code == "TS-A003"
        assert (len(provider.disk.events), await states(engine, run), provider.count()) == (events, ["unusable"], 1)


async def test_nothing_is_read_again_where_nothing_was_kept_or_nobody_can() -> None:
    async with witnessed(Knowing()) as (engine, witness):
        witness.broken["a mug"] = Unknown(reason="reset")
        run = (await engine.run(PAID)).run
        with pytest.raises(UsageError, match="has no kept answer"):
            await engine.reconcile(run, 1, reprocess=True)
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = BROKEN
        run = (await engine.run(CAUGHT)).run
        with pytest.raises(UsageError, match='came from "scripted"'):
            await engine.reconcile(run, 1, reprocess=True)


async def test_an_answer_that_another_attempt_has_replaced_decides_nothing() -> None:
    async with witnessed(Knowing()) as (engine, witness):
        reading = CAUGHT.replace("image.generate", "text.generate").replace(', "size": "64x48"', "")
        witness.broken["a mug"] = BROKEN
        run = (await engine.run(reading.replace('image["width"]', 'image["text"]'))).run
        witness.calm()
        await engine.resume(run)
        assert await states(engine, run) == ["unusable", "committed"]
        with pytest.raises(UsageError, match="attempt 1 was followed by attempt 2"):
            await engine.reconcile(run, 1, reprocess=True)


async def test_a_call_that_came_without_a_price_gets_one_later() -> None:
    async with witnessed(Witness(cost=None)) as (engine, _):
        first = await engine.run(PAID, limits={"budget_usd": 0.03})
        assert (first.spend.usd, first.spend.unpriced, first.spend.reserved_usd) == (0, 1, 0.02)
        settled: AttemptReport = await engine.reconcile(first.run, 1, cost_usd=0.005)
        assert (settled.state, settled.cost_usd, settled.reserved_usd) == ("committed", 0.005, 0)
        report = await engine.host.service.report(first.run)
        assert (report.spend.usd, report.spend.unpriced, report.spend.reserved_usd) == (0.005, 0, 0)
        again = await engine.resume(first.run)
        assert (again.status, again.spend.replay_saved_usd) == ("completed", 0.005)
        inquiry = engine.host.inquiry
        assert (await inquiry.certificate(first.run, check=True)).differences == (), "a price changes no record"


async def test_a_price_can_be_corrected_and_the_same_again_changes_nothing() -> None:
    async with witnessed(Witness(cost=None)) as (engine, witness):
        run = (await engine.run(PAID)).run
        await engine.reconcile(run, 1, cost_usd=50.0)
        events = len(witness.disk.events)
        await engine.reconcile(run, 1, cost_usd=50.0)
        assert len(witness.disk.events) == events
        await engine.reconcile(run, 1, cost_usd=0.0)
        assert (await engine.host.service.report(run)).spend.usd == 0


async def test_what_a_provider_has_billed_is_not_changed() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(PAID)).run
        with pytest.raises(UsageError, match="has its price"):
            await engine.reconcile(run, 1, cost_usd=0.005)
        await assert_standing(engine, run)
        witness.broken["a mug"] = Unknown(reason="reset")
        lost = (await engine.run(PAID)).run
        with pytest.raises(UsageError, match="no price before it has an end"):
            await engine.reconcile(lost, 1, cost_usd=0.005)
        for wrong in (-1.0, float("nan")):
            with pytest.raises(UsageError):
                await engine.reconcile(lost, 1, abandon=True, cost_usd=wrong)
        settled = await engine.reconcile(lost, 1, abandon=True, cost_usd=0.005)
        assert (settled.state, settled.cost_usd) == ("abandoned", 0.005)


@pytest.mark.parametrize("outcome", [Refused(kind="invalid_request", text="no", cost=None), Unusable(raw=1, text="?")])
async def test_failures_without_a_price_get_one_too(outcome: Any) -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = outcome
        report = await engine.run(CAUGHT)
        assert (report.spend.unpriced, report.spend.reserved_usd) == (1, 0.02)
        await engine.reconcile(report.run, 1, cost_usd=0.0)
        report = await engine.host.service.report(report.run)
        assert (report.spend.unpriced, report.spend.reserved_usd) == (0, 0)
