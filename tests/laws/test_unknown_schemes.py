"""A run whose records are of a scheme this build does not know is refused, never paid again (contract.md, section 2)."""

import msgspec
import pytest

from engine_stores import RefusingStore
from engine_support import House
from engine_witness import Witness, witnessed
from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import Committed
from tallystick.contract.identity import Schemes
from tallystick.engine.messages import PlanRequest, RunReport
from tallystick.store.memory import MemoryDisk

SCRIPT = """
async def orchestrate(ctx, args):
    first = await ctx.run("image.generate", {"prompt": "a kiln"})
    second = await ctx.run("image.generate", {"prompt": "a wheel"})
    return [first["width"], second["width"]]
"""
unknown = pytest.mark.parametrize("schemes", [Schemes(site="s2"), Schemes(fingerprint="f2"), Schemes(digest="d2")])


def rewrite(disk: MemoryDisk, schemes: Schemes) -> None:
    """Make the records of a disk those of another release."""
    for at, event in enumerate(disk.events):
        if isinstance(event, Committed):
            record = msgspec.structs.replace(event.record, schemes=schemes)
            disk.events[at] = msgspec.structs.replace(event, record=record)


async def fail_at_the_second_call(engine: House, witness: Witness) -> RunReport:
    witness.fail("image.generate", 2, "invalid_request")
    report = await engine.run(SCRIPT)
    assert (report.status, report.calls.executed, witness.count()) == ("failed", 1, 2)
    witness.calm()
    return report


@unknown
async def test_neither_the_script_nor_a_rewrite_resumes_or_is_planned(schemes: Schemes) -> None:
    witness = Witness()
    async with witnessed(witness) as (engine, _):
        run = (await fail_at_the_second_call(engine, witness)).run
    rewrite(witness.disk, schemes)
    async with witnessed(witness) as (engine, _):
        for source in (None, f"{SCRIPT}\n\nMORE = 1\n"):
            for preflight in (True, False):
                with pytest.raises(StoreCorruptError, match=r"orchestrate/#1 \[\] 0 was written under the schemes"):
                    await engine.resume(run, source, preflight=preflight, allow_repeats=True)
            with pytest.raises(StoreCorruptError):
                await engine.host.service.plan(run, PlanRequest(source=source))
        assert witness.count() == 2
        assert len((await engine.history(run)).launches) == 1

    rewrite(witness.disk, Schemes())
    async with witnessed(witness) as (engine, _):
        resumed = await engine.resume(run)
        assert (resumed.status, resumed.calls.replayed, resumed.calls.executed) == ("completed", 1, 1)


@unknown
async def test_a_run_that_a_crash_cut_off_is_not_taken_up_again_by_itself(schemes: Schemes) -> None:
    witness = Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store) as (engine, _):
        gate = witness.hold("text.generate")
        run = await engine.submit(
            SCRIPT.replace("    return", '    await ctx.run("text.generate", {"prompt": "a"})\n    return')
        )
        await gate.reached()
        store.die()
        gate.release()
    hits = witness.count()
    rewrite(witness.disk, schemes)
    async with witnessed(witness, daemon={"auto_resume": True}) as (engine, _):
        report = await engine.end(run)
        assert (report.status, len(report.launches)) == ("interrupted", 1)
        assert witness.count() == hits

    rewrite(witness.disk, Schemes())
    async with witnessed(witness, daemon={"auto_resume": True}) as (engine, _):
        report = await engine.end(run)
        assert (report.status, report.calls.replayed) == ("completed", 2)
