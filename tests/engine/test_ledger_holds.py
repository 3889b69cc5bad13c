"""Ways round the ledger that were tried once: each would have paid for the same picture twice."""

import pytest

from engine_witness import witnessed
from tallystick.contract.errors import PolicyDeniedError
from tallystick.providers.protocol import Refused

HEAD = "async def orchestrate(ctx, args):\n"
DRAW = '    await ctx.run("image.generate", {"prompt": "a harbour"})\n'
HELPER = (
    "    async def other():\n"
    '        return await ctx.run("image.generate", {"prompt": "a harbour"})\n'
    "    await other()\n"
)
FAIL = '    raise ValueError("later")\n'


async def test_a_place_that_failed_once_is_no_leave_to_pay_for_what_stands_elsewhere() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a harbour"] = Refused(kind="rate_limited", text="slow down")
        run = (await engine.run(HEAD + DRAW)).run
        witness.calm()
        await engine.resume(run, HEAD + HELPER + FAIL)
        assert witness.count() == 2
        with pytest.raises(PolicyDeniedError) as denied:
            await engine.resume(run, HEAD + HELPER + DRAW)
        assert (denied.value.code, witness.count()) == ("TS-P005", 2)


NODE = (
    "async def orchestrate(ctx, args):\n"
    "    async def draw(done):\n"
    '        return await ctx.run("image.generate", {"prompt": "a harbour"}, take="second")\n'
    '    await ctx.dag({"NAME": ([], draw)})\n'
    '    raise ValueError("later")\n'
)


async def test_the_same_take_under_another_name_is_a_repeat_and_another_take_is_not() -> None:
    async with witnessed() as (engine, witness):
        run = (await engine.run(NODE.replace("NAME", "left"))).run
        with pytest.raises(PolicyDeniedError) as denied:
            await engine.resume(run, NODE.replace("NAME", "right"))
        assert (denied.value.code, witness.count()) == ("TS-P005", 1)
        third = '    await ctx.run("image.generate", {"prompt": "a harbour"}, take="third")\n'
        wanted = NODE.replace("NAME", "left").replace("    raise", third + "    raise")
        report = await engine.resume(run, wanted)
        assert (report.reason, witness.count()) == ("TS-R001", 2)
