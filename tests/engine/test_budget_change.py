"""Another budget for a run that exists: at once where it is live, and for every later launch."""

import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import PolicyDeniedError, UsageError
from tallystick.contract.events import BudgetChanged
from tallystick.engine.messages import BudgetRequest
from tallystick.store.memory import MemoryDisk, MemoryStore

FOUR = """
async def orchestrate(ctx, args):
    made = []
    for number in range(4):
        made.append(await ctx.run("image.generate", {"prompt": f"shot <{number}>"}))
    return len(made)
"""
SIDE_BY_SIDE = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    return len(await ctx.parallel([shot(number) for number in range(4)]))
"""
ESTIMATE = 20_000  # micro-dollars that the catalogue expects a picture to cost


async def test_a_budget_lowered_while_the_run_lives_holds_from_the_next_dispatch_on() -> None:
    async with witnessed(Witness(cost=ESTIMATE)) as (engine, witness):
        gate = witness.hold(containing="<1>")
        run = await engine.submit(FOUR, limits={"budget_usd": 1.0})
        await gate.reached()
        await engine.host.budgets.change(run, BudgetRequest(0.04, "ann"))
        gate.release()
        stopped = await engine.end(run)
        assert (stopped.status, stopped.reason) == ("stopped", "TS-P002")
        assert (stopped.calls.executed, stopped.calls.denied, witness.count()) == (2, 1, 2)
        assert len((await engine.history(run)).attempts) == 2  # what exceeds it has no attempt
        await assert_standing(engine, run)

        still = await engine.resume(run)
        assert (still.reason, still.calls.replayed, witness.count()) == ("TS-P002", 2, 2)
        raised = await engine.resume(run, limits={"budget_usd": 1.0})
        assert (raised.status, raised.result, witness.count()) == ("completed", 4, 4)
        await assert_standing(engine, run)


async def test_what_was_set_is_in_the_journal_with_who_and_survives_a_crash() -> None:
    disk = MemoryDisk()
    async with witnessed(Witness(disk, cost=ESTIMATE)) as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request", "400")
        failed = await engine.run(FOUR, limits={"budget_usd": 1.0})
        await engine.host.budgets.change(failed.run, BudgetRequest(0.03, "ann"))
    changes = [(event.launch, event.budget, event.who) for event in disk.events if isinstance(event, BudgetChanged)]
    assert changes == [(1, 30_000, "ann")]
    witness.calm()
    async with witnessed(witness, store=MemoryStore(disk)) as (engine, _):
        stopped = await engine.resume(failed.run)
        assert (stopped.reason, stopped.calls.replayed, stopped.calls.executed) == ("TS-P002", 1, 0)


async def test_a_call_that_waits_for_room_in_the_budget_sees_it_change() -> None:
    async with witnessed(Witness(cost=ESTIMATE)) as (engine, witness):
        gate = witness.hold(containing="<0>")
        run = await engine.submit(SIDE_BY_SIDE, limits={"budget_usd": 0.03})
        await gate.reached()  # the others do not fit beside it, and wait for what it really costs
        await engine.host.budgets.change(run, BudgetRequest(1.0))
        await witness.has_answered(3)
        gate.release()
        report = await engine.end(run)
        assert (report.status, report.result, witness.count()) == ("completed", 4, 4)


@pytest.mark.parametrize("amount", [0.0, -1.0, float("nan"), 1e12])
async def test_what_is_no_budget_changes_nothing(amount: float) -> None:
    async with witnessed() as (engine, _):
        report = await engine.run(FOUR)
        with pytest.raises(UsageError, match="a budget of"):
            await engine.host.budgets.change(report.run, BudgetRequest(amount))
        assert (await engine.history(report.run)).launches[1].envelope.budget is None


async def test_a_run_that_another_operation_holds_keeps_its_budget() -> None:
    async with witnessed() as (engine, _):
        report = await engine.run(FOUR)
        with (
            engine.host.service.launches.claim(report.run, "plan"),
            pytest.raises(PolicyDeniedError, match="another plan has it"),
        ):
            await engine.host.budgets.change(report.run, BudgetRequest(1.0))
