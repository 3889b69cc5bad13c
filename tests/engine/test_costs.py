"""What a run has cost: the upstream's bill, or what of it nobody knows (casebook 31)."""

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.engine.costs import cost_report
from tallystick.engine.money_messages import CostReport
from tallystick.kernel import ManualClock
from tallystick.providers.protocol import Refused, Unknown, Unusable

FOUR = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    plan = await ctx.run("storyboard.plan", {"brief": "x", "shots": 4})
    done = await ctx.parallel([shot(number) for number in range(4)], tolerate=True)
    return len(done)
"""
LAST_FAILS = FOUR.replace(", tolerate=True", "")
PRICE = 20_000


async def cost_of(engine: House, run: str) -> CostReport:
    return cost_report(await engine.history(run), engine.host.service.launches.live.get(run))


def usd_of(witness: Witness) -> float:
    return witness.billed / 1_000_000


async def test_every_way_of_cutting_it_sums_up_to_the_bill() -> None:
    witness = Witness(cost=PRICE)
    witness.broken["<1>"] = Unusable(raw={}, text="empty", cost=7_000)
    witness.broken["<2>"] = Refused(kind="invalid_request", text="no", cost=None)
    async with witnessed(witness) as (engine, _):
        report = await engine.run(FOUR)
        cost = await cost_of(engine, report.run)
        assert cost.total.usd == pytest.approx(usd_of(witness))
        assert cost.total.unpriced == witness.unbilled
        for lines in (cost.by_capability, cost.by_site, cost.by_outcome, [one.paid for one in cost.by_launch]):
            assert sum(line.usd for line in lines) == pytest.approx(cost.total.usd)
            assert sum(line.unpriced for line in lines) == 1
            assert sum(line.calls for line in lines) == witness.count() == 5
            assert sum(line.reserved_usd for line in lines) == pytest.approx(cost.total.reserved_usd)
        outcomes = {line.name: (line.calls, line.unpriced) for line in cost.by_outcome}
        assert outcomes == {"committed": (3, 0), "unusable": (1, 0), "failed": (1, 1)}
        await assert_standing(engine, report.run)


async def test_what_replay_saved_and_what_a_rerun_would_have_cost() -> None:
    witness = Witness(cost=PRICE)
    witness.broken["<3>"] = Refused(kind="invalid_request", text="no")
    async with witnessed(witness) as (engine, _):
        first = await engine.run(LAST_FAILS)
        witness.calm()
        done = await engine.resume(first.run)
        assert (done.status, witness.count()) == ("completed", 6)
        cost = await cost_of(engine, first.run)
        assert [(one.launch, one.replayed, one.saved_usd) for one in cost.by_launch] == [(1, 0, 0.0), (2, 4, 0.08)]
        assert cost.total.usd == pytest.approx(0.10)
        assert cost.rerun_usd == pytest.approx(0.18)


async def test_an_unknown_saving_is_not_nothing() -> None:
    witness = Witness(cost=None)
    async with witnessed(witness) as (engine, _):
        first = await engine.run(FOUR)
        again = await engine.resume(first.run)
        assert (again.spend.replay_saved_usd, again.spend.replay_unpriced) == (0.0, 5)
        cost = await cost_of(engine, first.run)
        assert (cost.total.usd, cost.total.unpriced, cost.rerun_usd, cost.rerun_unpriced) == (0.0, 5, 0.0, 10)


async def test_unresolved_calls_keep_their_reservation_and_abandoned_ones_count_as_spent() -> None:
    witness = Witness(cost=PRICE)
    witness.broken["<0>"] = Unknown(reason="the line went dead")
    async with witnessed(witness) as (engine, _):
        stopped = await engine.run(LAST_FAILS)
        cost = await cost_of(engine, stopped.run)
        unresolved = next(line for line in cost.by_outcome if line.name == "unresolved")
        assert (unresolved.usd, unresolved.unpriced, unresolved.reserved_usd) == (0.0, 1, 0.02)
        number = stopped.unresolved[0].attempt
        await engine.reconcile(stopped.run, number, abandon=True, why="given up")
        after = await cost_of(engine, stopped.run)
        abandoned = next(line for line in after.by_outcome if line.name == "abandoned")
        assert (abandoned.usd, abandoned.unpriced, abandoned.reserved_usd) == (0.02, 0, 0.0)
        assert after.total.usd == pytest.approx(cost.total.usd + 0.02)


async def test_calls_in_flight_are_reserved_and_not_unpriced() -> None:
    witness = Witness(cost=PRICE)
    async with witnessed(witness, clock=ManualClock()) as (engine, _):
        gate = witness.hold("image.generate")
        run = await engine.submit(FOUR)
        await gate.reached(4)
        cost = await cost_of(engine, run)
        assert (cost.total.calls, cost.total.unpriced, cost.total.reserved_usd) == (5, 0, 0.08)
        gate.release()
        await engine.end(run)


async def test_a_listing_says_what_runs_have_cost_and_what_of_it_nobody_knows() -> None:
    witness = Witness(cost=PRICE)
    witness.broken["<2>"] = Refused(kind="invalid_request", text="no", cost=None)
    async with witnessed(witness) as (engine, _):
        report = await engine.run(FOUR)
        (row,) = engine.host.service.journal.store.rows()
        assert (row.spent, row.unpriced) == (witness.billed, 1)
        number = next(one.attempt for one in await engine.attempts(report.run) if one.cost_usd is None)
        await engine.reconcile(report.run, number, cost_usd=0.03)
        (row,) = engine.host.service.journal.store.rows()
        assert (row.spent, row.unpriced) == (witness.billed + 30_000, 0)
