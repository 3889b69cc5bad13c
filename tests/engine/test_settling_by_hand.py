"""What an operator may decide about an attempt, and what is refused because it would not be what they meant."""

import pytest

from engine_witness import witnessed
from tallystick.contract.errors import UsageError
from tallystick.providers.protocol import Unknown

SCRIPT = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a kiln"})
    return image["width"]
"""
PICTURE = {"images": [{"$base64": "iVBORw0KGgo=", "media_type": "image/png"}], "width": 8, "height": 8}


async def test_the_same_result_again_changes_nothing_and_another_result_or_cost_is_refused() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a kiln"] = Unknown(reason="reset")
        run = (await engine.run(SCRIPT)).run
        first = await engine.reconcile(run, 1, result=PICTURE, cost_usd=0.02)
        assert (await engine.reconcile(run, 1, result=PICTURE, cost_usd=0.02)) == first
        for other in ({"result": PICTURE | {"width": 9}}, {"result": PICTURE, "cost_usd": 0.03}, {"abandon": True}):
            with pytest.raises(UsageError, match="decided otherwise") as refused:
                await engine.reconcile(run, 1, **{"cost_usd": 0.02, **other} if "result" in other else other)
            assert refused.value.code == "TS-U004"
        resumed = await engine.resume(run)
        assert (resumed.status, resumed.result, witness.count()) == ("completed", 8, 1)


async def test_a_result_that_refers_to_a_file_nobody_has_is_refused() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a kiln"] = Unknown(reason="reset")
        run = (await engine.run(SCRIPT)).run
        foreign = {"$artifact": "sha256:" + "0" * 64, "media_type": "image/png", "bytes": 8}
        with pytest.raises(UsageError, match="no such file"):
            await engine.reconcile(run, 1, result=PICTURE | {"images": [foreign]})
        assert [attempt.state for attempt in await engine.attempts(run)] == ["unresolved"]
