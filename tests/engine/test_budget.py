"""The budget of a run: reserved before a call, held while nobody knows what it cost, never overdrawn (casebook 11)."""

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import AttemptUnresolvedError, UsageError
from tallystick.contract.prefix import frozen_sites
from tallystick.engine.messages import RunReport
from tallystick.providers.protocol import Refused, Succeeded, Unknown, Unusable

TEN = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await ctx.parallel([shot(number) for number in range(10)])
    return len(images)
"""
ESTIMATE = 20_000  # micro-dollars that the catalogue expects a picture to cost
THREE_IMAGES = 0.06


async def refusals(engine: House, report: RunReport) -> tuple[int, int]:
    """Return how many attempts there are, and how many of the ten calls have none."""
    history = await engine.history(report.run)
    tried = {attempt.started.identity for attempt in history.attempts.values()}
    return len(history.attempts), 10 - len(tried)


async def test_three_images_of_budget_are_three_hits_and_the_rest_has_no_attempt() -> None:
    witness = Witness(cost=ESTIMATE)
    async with witnessed(witness) as (engine, _):
        stopped = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES})
        assert (stopped.status, stopped.reason, witness.count()) == ("stopped", "TS-P002", 3)
        assert await refusals(engine, stopped) == (3, 7)
        assert (stopped.calls.executed, stopped.spend.usd, stopped.spend.reserved_usd) == (3, THREE_IMAGES, 0)
        assert stopped.calls.denied >= 1
        await assert_standing(engine, stopped.run)

        history = await engine.history(stopped.run)
        assert set(frozen_sites(history)) == {"orchestrate.shot/#1"}
        still = await engine.resume(stopped.run)
        assert (still.reason, still.calls.replayed, witness.count()) == ("TS-P002", 3, 3)

        raised = await engine.resume(stopped.run, limits={"budget_usd": 1.0})
        assert (raised.status, raised.result) == ("completed", 10)
        assert (raised.calls.replayed, raised.calls.executed, witness.count()) == (3, 7, 10)
        await assert_standing(engine, stopped.run)


async def test_a_site_whose_calls_were_all_refused_is_not_frozen() -> None:
    edited = TEN.replace("shot <{number}>", "other <{number}>")
    async with witnessed() as (engine, witness):
        stopped = await engine.run(TEN, limits={"budget_usd": 0.01})
        assert (stopped.reason, witness.count()) == ("TS-P002", 0)
        assert frozen_sites(await engine.history(stopped.run)) == {}
        other = await engine.resume(stopped.run, edited, limits={"budget_usd": 1.0})
        assert (other.status, other.calls.executed) == ("completed", 10)
        await assert_standing(engine, stopped.run)


async def test_replays_cost_nothing_even_with_the_budget_used_up() -> None:
    witness = Witness(cost=ESTIMATE)
    async with witnessed(witness) as (engine, _):
        first = await engine.run(TEN, limits={"budget_usd": 0.20})
        assert (first.status, first.spend.usd) == ("completed", 0.20)
        again = await engine.resume(first.run, limits={"budget_usd": 0.000001})
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 10, 10)
        assert again.spend.replay_saved_usd == 0.20
        await assert_standing(engine, first.run)


async def test_calls_wait_while_those_in_flight_may_turn_out_cheaper() -> None:
    """Ten calls of a tenth of their estimate: all of them fit one after another, though never four at once."""
    witness = Witness(cost=ESTIMATE // 10)
    async with witnessed(witness) as (engine, _):
        gate = witness.hold()
        run = await engine.submit(TEN, limits={"budget_usd": THREE_IMAGES})
        await gate.reached(3)
        live = await engine.host.service.report(run)
        assert (live.status, live.spend.reserved_usd, witness.count()) == ("running", THREE_IMAGES, 3)
        gate.release()
        report = await engine.end(run)
        assert (report.status, report.calls.executed, report.calls.denied) == ("completed", 10, 0)
        assert witness.most_at_once == 3
        await assert_standing(engine, run)


async def test_a_call_does_not_wait_for_room_that_cannot_come() -> None:
    """Two of three are spent for good; a second one in flight would not fit whatever the first one costs."""
    witness = Witness(cost=ESTIMATE)
    async with witnessed(witness) as (engine, _):
        gate = witness.hold(containing="<2>")
        run = await engine.submit(TEN, limits={"budget_usd": THREE_IMAGES, "concurrency": 3})
        await gate.reached()
        await witness.has_answered(2)
        gate.release()
        report = await engine.end(run)
        assert (report.reason, witness.count()) == ("TS-P002", 3)
        await assert_standing(engine, run)


async def test_an_unresolved_attempt_keeps_its_share() -> None:
    witness = Witness(cost=ESTIMATE)
    witness.broken["<0>"] = Unknown(reason="the line went dead")
    async with witnessed(witness) as (engine, _):
        stopped = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES, "concurrency": 1})
        assert (stopped.reason, witness.count()) == ("TS-A002", 1)
        assert (stopped.spend.usd, stopped.spend.unpriced, stopped.spend.reserved_usd) == (0, 1, 0.02)
        with pytest.raises(AttemptUnresolvedError):
            await engine.resume(stopped.run, limits={"budget_usd": 1.0})
        await engine.reconcile(stopped.run, 1, abandon=True, why="given up")

        witness.calm()
        resumed = await engine.resume(stopped.run)
        # Abandoned, it counts as spent at its estimate: two more pictures fit, and no third.
        assert (resumed.reason, witness.count(), resumed.spend.usd) == ("TS-P002", 3, THREE_IMAGES)
        await assert_standing(engine, stopped.run)


async def test_an_unknown_cost_is_unpriced_and_still_holds_its_reservation() -> None:
    witness = Witness(cost=None)
    async with witnessed(witness) as (engine, _):
        stopped = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES})
        assert (stopped.reason, witness.count()) == ("TS-P002", 3)
        assert (stopped.spend.usd, stopped.spend.unpriced, stopped.spend.reserved_usd) == (0, 3, THREE_IMAGES)
        states = [(attempt.state, attempt.cost_usd) for attempt in await engine.attempts(stopped.run)]
        assert states == [("committed", None)] * 3
        await assert_standing(engine, stopped.run)


async def test_failed_and_unusable_answers_are_paid_for_at_their_cost() -> None:
    witness = Witness(cost=ESTIMATE)
    witness.broken["<0>"] = Refused(kind="invalid_request", text="no", cost=5_000)
    witness.broken["<1>"] = Unusable(raw={}, text="empty", cost=7_000)
    witness.broken["<2>"] = Refused(kind="invalid_request", text="no", cost=None)
    async with witnessed(witness) as (engine, _):
        report = await engine.run(TEN, limits={"budget_usd": 10.0})
        assert report.spend.usd == pytest.approx(0.152)
        assert (report.spend.unpriced, report.spend.reserved_usd) == (1, 0.02)
        await assert_standing(engine, report.run)


async def test_a_cost_above_the_estimate_counts_in_full() -> None:
    witness = Witness(cost=3 * ESTIMATE)
    async with witnessed(witness) as (engine, _):
        report = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES, "concurrency": 1})
        assert (report.reason, witness.count(), report.spend.usd) == ("TS-P002", 1, THREE_IMAGES)
        await assert_standing(engine, report.run)


async def test_a_configured_price_is_what_is_reserved() -> None:
    async with witnessed(Witness(cost=30_000), policy={"estimate": 0.03}) as (engine, witness):
        report = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES})
        assert (report.reason, witness.count()) == ("TS-P002", 2)
        assert {attempt.started.reserved for attempt in (await engine.history(report.run)).attempts.values()} == {
            30_000
        }


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), 1e9])
async def test_a_budget_that_is_none_is_refused_before_anything_starts(budget: float) -> None:
    async with witnessed() as (engine, witness):
        with pytest.raises(UsageError, match="budget"):
            await engine.run(TEN, limits={"budget_usd": budget})
        assert (witness.disk.events, witness.count()) == ([], 0)


async def test_the_budget_is_the_runs_over_all_its_launches() -> None:
    witness = Witness(cost=ESTIMATE)
    witness.script("image.generate", 2, Succeeded(result={"images": []}, cost=ESTIMATE))
    async with witnessed(witness) as (engine, _):
        first = await engine.run(TEN, limits={"budget_usd": THREE_IMAGES, "concurrency": 1})
        assert witness.count() == 3
        assert [attempt.state for attempt in await engine.attempts(first.run)] == ["committed", "unusable", "committed"]
        second = await engine.resume(first.run)
        assert (second.reason, witness.count()) == ("TS-P002", 3)
        await assert_standing(engine, first.run)
