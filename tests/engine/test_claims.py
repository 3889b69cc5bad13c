"""Two hands on one run: exactly one has it, and the other is told (casebook 2)."""

import asyncio

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import PolicyDeniedError, UsageError
from tallystick.engine.messages import ResumeRequest, RunReport
from tallystick.providers.protocol import Unknown

SCRIPT = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a mug"})
    text = await ctx.run("text.generate", {"prompt": "a line"})
    return [image["width"], text["text"]]
"""
OTHER = SCRIPT.replace("return [image", "note = len(text)\n    return [image")


async def both(engine: House, run: str, sources: tuple[str | None, str | None]) -> list[RunReport | BaseException]:
    requests = [ResumeRequest(source=source) for source in sources]
    return await asyncio.gather(
        *(engine.host.service.resume(run, request) for request in requests), return_exceptions=True
    )


@pytest.mark.parametrize("sources", [(None, None), (None, OTHER), (OTHER, SCRIPT)], ids=["same", "other", "swapped"])
async def test_of_two_resumes_at_once_exactly_one_wins(sources: tuple[str | None, str | None]) -> None:
    async with witnessed() as (engine, witness):
        witness.fail("text.generate", 1, "unavailable")
        run = (await engine.run(SCRIPT)).run
        for again in range(50):
            witness.fail("text.generate", again + 2, "unavailable")
            hits, launches = witness.count(), len((await engine.history(run)).launches)
            answers = await both(engine, run, sources)
            won = [answer for answer in answers if isinstance(answer, RunReport)]
            lost = [answer for answer in answers if isinstance(answer, PolicyDeniedError)]
            assert (len(won), len(lost)) == (1, 1)
            assert (lost[0].code, lost[0].exit_code) == ("TS-P010", 6)
            assert won[0].status == "running"
            await engine.end(run)
            assert (witness.count(), len((await engine.history(run)).launches)) == (hits + 1, launches + 1)
        await assert_standing(engine, run)


async def test_a_live_run_can_be_neither_resumed_nor_reconciled() -> None:
    async with witnessed() as (engine, witness):
        gate = witness.hold("image.generate")
        run = await engine.submit(SCRIPT)
        await gate.reached()
        with pytest.raises(PolicyDeniedError, match="another launch has it"):
            await engine.resume(run)
        with pytest.raises(PolicyDeniedError, match="another launch has it"):
            await engine.reconcile(run, 1, abandon=True)
        gate.release()
        assert (await engine.end(run)).status == "completed"
        await assert_standing(engine, run)


async def test_a_claim_is_given_back_when_a_resume_is_refused() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(SCRIPT)).run
        with pytest.raises(UsageError):
            await engine.resume(run, limits={"concurrency": 0})
        again = await engine.resume(run)
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 2, 2)


async def test_two_decisions_at_once_are_one() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = Unknown(reason="reset")
        run = (await engine.run(SCRIPT)).run
        answers = await asyncio.gather(
            engine.reconcile(run, 1, abandon=True, why="first"),
            engine.reconcile(run, 1, abandon=True, why="second"),
            return_exceptions=True,
        )
        assert any(not isinstance(answer, BaseException) for answer in answers)
        decided = [event for event in witness.disk.events if type(event).__name__ == "AttemptDecided"]
        assert len(decided) == 1


async def test_a_run_that_is_not_there_is_named() -> None:
    async with witnessed() as (engine, _):
        for operation in (engine.resume("nobody"), engine.end("nobody"), engine.attempts("nobody")):
            with pytest.raises(UsageError, match="'nobody'") as refused:
                await operation
            assert refused.value.code == "TS-U002"


async def test_runs_do_not_disturb_each_other() -> None:
    async with witnessed(Witness(shuffle=4)) as (engine, witness):
        runs = await asyncio.gather(*(engine.submit(SCRIPT) for _ in range(12)))
        assert len(set(runs)) == 12
        for run in runs:
            assert (await engine.end(run)).status == "completed"
            await assert_standing(engine, run)
        assert witness.count() == 24
