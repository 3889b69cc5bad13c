"""The repair episodes of the paper (Fig. 1, Tables III and V), counted by the provider."""

import pytest

from engine_support import House
from engine_witness import Witness, assert_diverges, assert_standing, witnessed
from tallystick.bench.paper.cases import (
    LOOP,
    LOOP_ARGS,
    LOOP_REPAIRED,
    SCOUT,
    SCOUT_CAUSE_REPAIRED,
    SCOUT_MOVED_TO_HELPER,
    SEQUENCE,
    SEQUENCE_ARGS,
    SEQUENCE_ARGS_REPAIRED,
    SEQUENCE_EDITED,
    SEQUENCE_SUPERSEDED,
    SHOTS,
)
from tallystick.contract.errors import GateStoppedError
from tallystick.sandbox.memory import MemoryDriver, MemorySandbox
from tallystick.sandbox.protocol import Limits


class CountingDriver(MemoryDriver):
    """Counts the sandboxes that were started."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        self.opened += 1
        return await super().open(limits, nonce)


async def full_rerun(engine: House, witness: Witness, script: str, args: object) -> int:
    """Run a script from nothing and return how many calls it took."""
    before = witness.count()
    assert (await engine.run(script, args)).status == "completed"
    return witness.count() - before


async def test_e388_a_fanout_pays_only_for_the_branch_that_failed() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request", "the prompt was refused")
        failed = await engine.run(SCOUT, SHOTS)
        assert (failed.status, failed.calls.executed, failed.calls.failed) == ("failed", 3, 1)
        assert witness.count() == 4

        repaired = await engine.resume(failed.run, SCOUT_CAUSE_REPAIRED)
        assert (repaired.status, repaired.calls.replayed, repaired.calls.executed) == ("completed", 3, 1)
        assert repaired.orphans == ()
        assert witness.count() == 4 + 1
        await assert_standing(engine, failed.run)

        assert 4 + await full_rerun(engine, witness, SCOUT_CAUSE_REPAIRED, SHOTS) == 8


async def test_a425_a_relocation_is_stopped_as_removed_before_a_sandbox_starts() -> None:
    driver = CountingDriver()
    async with witnessed(driver=driver) as (engine, witness):
        witness.fail("image.generate", 2, "invalid_request", "the prompt was refused")
        failed = await engine.run(SCOUT, SHOTS)
        assert driver.opened == 1

        with pytest.raises(GateStoppedError) as stopped:
            await engine.resume(failed.run, SCOUT_MOVED_TO_HELPER)
        assert [(one.site, one.kind, one.moved_to) for one in stopped.value.details] == [
            ("orchestrate.gen/#1", "removed", "gen_one/#1")
        ]
        verdict = await engine.gate(failed.run, SCOUT_MOVED_TO_HELPER)
        assert (verdict.accepted, verdict.counterexamples) == (False, stopped.value.details)
        assert witness.count() == 4
        assert driver.opened == 1

        report = await assert_standing(engine, failed.run)
        assert (report.launch, report.revision, report.result) == (1, 0, None)

        assert 3 + await full_rerun(engine, witness, SCOUT_MOVED_TO_HELPER, SHOTS) == 7


@pytest.mark.parametrize(
    ("case", "capability", "committed", "new"),
    [("5698a", "image.generate", 2, 2), ("5698b", "review.visual", 3, 1)],
)
async def test_5698_a_loop_replays_its_first_iteration(case: str, capability: str, committed: int, new: int) -> None:
    async with witnessed() as (engine, witness):
        witness.fail(capability, 2, "unavailable", case)
        failed = await engine.run(LOOP, LOOP_ARGS)
        assert (failed.status, failed.calls.executed, witness.count()) == ("failed", committed, committed + 1)

        repaired = await engine.resume(failed.run, LOOP_REPAIRED)
        assert (repaired.status, repaired.result) == ("completed", [0.9, 0.9])
        assert (repaired.calls.replayed, repaired.calls.executed) == (committed, new)
        assert repaired.orphans == ()
        assert witness.count() == 5
        history = await engine.history(failed.run)
        assert len(history.records) == 4
        await assert_standing(engine, failed.run)

        assert await full_rerun(engine, witness, LOOP_REPAIRED, LOOP_ARGS) == 4


async def test_e5_a_sequential_tail_repair_makes_five_attempts_for_four_pictures() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 4, "invalid_request", "400")
        failed = await engine.run(SEQUENCE, SEQUENCE_ARGS)
        repaired = await engine.resume(failed.run, args=SEQUENCE_ARGS_REPAIRED)
        assert (repaired.status, repaired.calls.replayed, repaired.calls.executed) == ("completed", 3, 1)
        assert (witness.count(), len((await engine.history(failed.run)).records)) == (5, 4)
        await assert_standing(engine, failed.run)


async def test_s1_a_committed_payload_that_was_edited_is_stopped_by_its_digest() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 4, "invalid_request", "400")
        failed = await engine.run(SEQUENCE, SEQUENCE_ARGS)

        await assert_diverges(engine, failed.run, SEQUENCE_EDITED, "payload.prompt: 'a kiln' -> 'a kiln at night'")
        assert witness.count() == 4
        await assert_standing(engine, failed.run)


async def test_s1_a_committed_result_is_superseded_by_an_appended_call() -> None:
    async with witnessed() as (engine, witness):
        witness.fail("image.generate", 4, "invalid_request", "400")
        failed = await engine.run(SEQUENCE, SEQUENCE_ARGS)
        repaired = await engine.resume(failed.run, SEQUENCE_SUPERSEDED)
        assert (repaired.status, repaired.calls.replayed, repaired.calls.executed) == ("completed", 3, 2)
        assert (repaired.orphans, witness.count()) == ((), 4 + 2)
        await assert_standing(engine, failed.run)
