"""Limits beside the run's dollars: tokens, the most that a call may cost, and a cap over all runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.engine.config import BudgetSettings, CapabilityPolicy
from tallystick.engine.messages import RunReport
from tallystick.kernel import ManualClock
from tallystick.providers.protocol import Outcome, Refused, Succeeded, Unknown
from tallystick.store.memory import MemoryDisk

TEXTS = """
async def orchestrate(ctx, args):
    async def line(number):
        return await ctx.run("text.generate", {"prompt": f"line <{number}>"})

    return len(await ctx.parallel([line(number) for number in range(6)], tolerate=True))
"""
SHOTS = """
async def orchestrate(ctx, args):
    done = 0
    for number in range(4):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        done = done + image["width"]
    return done
"""
PRICE = 20_000


class Counting(Witness):
    """Says how many tokens each call has used, where ``used`` says."""

    def __init__(self, used: int | None, **options: Any) -> None:
        super().__init__(**options)
        self.used = used

    def _answer(self, hit: Any) -> Outcome:
        outcome = super()._answer(hit)
        if isinstance(outcome, Succeeded) and self.used is not None:
            return Succeeded(result=outcome.result, cost=outcome.cost, usage={"total_tokens": self.used})
        return outcome


@asynccontextmanager
async def writing(witness: Witness, estimate: int = 1_000) -> AsyncIterator[House]:
    policies = {"text.generate": {"estimate_tokens": estimate}}
    async with witnessed(witness, policies=policies) as (engine, _):
        yield engine


async def test_tokens_are_reserved_at_dispatch_and_settled_with_what_was_used() -> None:
    witness = Counting(500)
    async with writing(witness) as engine:
        gate = witness.hold()
        run = await engine.submit(TEXTS, limits={"budget_tokens": 3_000})
        await gate.reached(3)
        assert witness.count() == 3, "no more than three reservations fit side by side"
        gate.release()
        report = await engine.end(run)
        # Six calls of 500 are 3,000 in all, but the last one's reservation of 1,000 does not fit beside 2,500.
        assert (report.status, report.reason, report.exit_code) == ("stopped", "TS-P013", 6)
        assert (report.spend.tokens, report.spend.reserved_tokens, witness.count()) == (2_500, 0, 5)
        assert report.error is not None
        assert "--budget-tokens 3500" in report.error.hint
        done = await engine.resume(run, limits={"budget_tokens": 3_500})
        assert (done.status, done.spend.tokens, witness.count()) == ("completed", 3_000, 6)
        await assert_standing(engine, run)


async def test_use_that_nobody_tells_keeps_its_reservation() -> None:
    async with writing(Counting(None)) as engine:
        report = await engine.run(TEXTS, limits={"budget_tokens": 3_000})
        assert (report.reason, report.spend.tokens, report.spend.reserved_tokens) == ("TS-P013", 0, 3_000)


async def test_what_has_failed_has_used_no_tokens() -> None:
    witness = Counting(1_000)
    witness.broken["<0>"] = Refused(kind="invalid_request", text="no")
    async with writing(witness) as engine:
        report = await engine.run(TEXTS, limits={"budget_tokens": 5_000})
        assert (report.status, report.spend.tokens, report.spend.reserved_tokens) == ("completed", 5_000, 0)


async def test_a_capability_that_takes_no_tokens_needs_no_room() -> None:
    async with witnessed(Witness()) as (engine, _):
        report = await engine.run(SHOTS, limits={"budget_tokens": 1})
        assert (report.status, report.spend.tokens, report.spend.reserved_tokens) == ("completed", 0, 0)


async def test_a_ceiling_is_what_is_set_aside_so_that_the_budget_holds_whatever_calls_cost() -> None:
    witness = Witness(cost=3 * PRICE)
    async with witnessed(witness, policies={"image.generate": {"ceiling": 0.06}}) as (engine, _):
        report = await engine.run(SHOTS, limits={"budget_usd": 0.13})
        assert (report.reason, witness.count(), report.spend.usd) == ("TS-P002", 2, 0.12)
        reserved = {attempt.started.reserved for attempt in (await engine.history(report.run)).attempts.values()}
        assert reserved == {60_000}


async def test_a_call_dearer_than_its_ceiling_is_kept_and_no_further_one_of_its_kind_is_made() -> None:
    witness = Witness(cost=3 * PRICE)
    async with witnessed(witness, policies={"image.generate": {"ceiling": 0.05}}) as (engine, _):
        report = await engine.run(SHOTS)
        assert (report.status, report.reason, witness.count()) == ("stopped", "TS-P015", 1)
        assert (report.calls.executed, report.spend.usd) == (1, 0.06)
        assert report.error is not None
        assert "cost $0.06, more than the ceiling of $0.05" in report.error.message
        again = await engine.resume(report.run)
        assert (again.reason, again.calls.replayed, witness.count()) == ("TS-P015", 1, 2), (
            "each resume is a person's word"
        )
        await assert_standing(engine, report.run)


async def test_the_overshoot_is_bounded_by_what_calls_in_flight_cost_beyond_their_ceilings() -> None:
    """Three at once, each a cent above its ceiling: never more than three cents over the budget."""
    source = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    return len(await ctx.parallel([shot(number) for number in range(10)]))
"""
    witness = Witness(cost=30_000)
    async with witnessed(witness, policies={"image.generate": {"ceiling": 0.02}}) as (engine, _):
        report = await engine.run(source, limits={"budget_usd": 0.06})
        assert (report.reason, witness.count()) == ("TS-P015", 3)
        assert report.spend.usd == pytest.approx(0.06 + 3 * 0.01)


async def test_a_budget_does_not_take_a_capability_without_a_price() -> None:
    witness = Witness(cost=None)
    async with witnessed(witness, policies={"image.generate": {"estimate": 0.0}}) as (engine, _):
        report = await engine.run(SHOTS, limits={"budget_usd": 1.0})
        assert (report.status, report.reason, witness.count()) == ("stopped", "TS-P016", 1)
        assert (report.spend.usd, report.spend.unpriced) == (0.0, 1)
        await engine.reconcile(report.run, 1, cost_usd=0.02)
        again = await engine.resume(report.run)
        assert (again.reason, witness.count(), again.spend.usd) == ("TS-P016", 2, 0.02)


async def test_what_costs_nothing_needs_no_price() -> None:
    async with witnessed(Witness(cost=0), policies={"image.generate": {"estimate": 0.0}}) as (engine, _):
        assert (await engine.run(SHOTS, limits={"budget_usd": 0.01})).status == "completed"


class TestCap:
    """All runs together, in one day."""

    @staticmethod
    @asynccontextmanager
    async def capped(
        witness: Witness, cap: float = 0.06, clock: ManualClock | None = None, **options: Any
    ) -> AsyncIterator[House]:
        budget = BudgetSettings(cap_usd=cap)
        async with witnessed(witness, budget=budget, clock=clock, **options) as (engine, _):
            yield engine

    async def test_runs_share_it_and_the_call_that_does_not_fit_has_no_attempt(self) -> None:
        witness = Witness(cost=PRICE)
        async with self.capped(witness) as engine:
            first = await engine.run(SHOTS.replace("range(4)", "range(2)"))
            second = await engine.run(SHOTS)
            assert (first.status, second.status, second.reason) == ("completed", "stopped", "TS-P014")
            assert (second.exit_code, witness.count()) == (6, 3)
            assert len(await engine.attempts(second.run)) == 1
            assert second.error is not None
            assert "$0.06 a day and have $0.06 spent" in second.error.message

    async def test_it_holds_for_runs_side_by_side(self) -> None:
        witness = Witness(cost=PRICE)
        async with self.capped(witness) as engine:
            reports: list[RunReport] = []

            async def run() -> None:
                reports.append(await engine.run(SHOTS))

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(run)
            assert witness.count() == 3
            assert {report.reason for report in reports} == {"TS-P014"}

    async def test_a_call_waits_for_one_of_another_run_that_may_turn_out_cheaper(self) -> None:
        witness = Witness(cost=PRICE // 10)
        async with self.capped(witness, 0.022) as engine:
            gate = witness.hold()
            one = await engine.submit(SHOTS)
            await gate.reached()
            other = await engine.submit(SHOTS)
            await anyio.wait_all_tasks_blocked()
            assert witness.count() == 1
            gate.release()
            reports = [await engine.end(one), await engine.end(other)]
            assert {report.reason for report in reports} == {"TS-P014"}
            assert witness.count() == 2, "the first one came to a tenth of its estimate, and made room for one more"

    async def test_a_day_has_its_own(self) -> None:
        witness, clock = Witness(cost=PRICE), ManualClock(86_400 * 3 - 10.0)
        async with self.capped(witness, 0.04, clock) as engine:
            stopped = await engine.run(SHOTS)
            assert (stopped.reason, witness.count()) == ("TS-P014", 2)
            await clock.advance(20)
            again = await engine.resume(stopped.run)
            assert (again.status, witness.count()) == ("completed", 4)

    async def test_what_was_spent_before_a_restart_counts(self) -> None:
        disk = MemoryDisk()
        witness = Witness(disk, cost=PRICE)
        async with self.capped(witness) as engine:
            await engine.run(SHOTS.replace("range(4)", "range(2)"))
        async with self.capped(witness) as engine:
            assert (await engine.run(SHOTS)).reason == "TS-P014"
        assert witness.count() == 3

    async def test_unresolved_and_unpriced_calls_count_at_their_reservations(self) -> None:
        witness = Witness(cost=None)
        witness.broken["<1>"] = Unknown(reason="the line went dead")
        async with self.capped(witness) as engine:
            first = await engine.run(SHOTS)
            assert (first.reason, witness.count()) == ("TS-A002", 2)
            second = await engine.run(SHOTS)
            assert (second.reason, witness.count()) == ("TS-P014", 3)
            await engine.reconcile(first.run, 1, cost_usd=0.0)
            third = await engine.resume(second.run)
            assert (third.reason, witness.count()) == ("TS-A002", 4), "a price that is told later makes room"

    async def test_replays_need_no_room(self) -> None:
        witness = Witness(cost=PRICE)
        async with self.capped(witness, 0.08) as engine:
            done = await engine.run(SHOTS)
            again = await engine.resume(done.run)
            assert (done.status, again.status, again.calls.replayed, witness.count()) == (
                "completed",
                "completed",
                4,
                4,
            )


def test_a_ceiling_below_the_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match="below estimate"):
        CapabilityPolicy(provider="local", estimate=0.05, ceiling=0.02)
