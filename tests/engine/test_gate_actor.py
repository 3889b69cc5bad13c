"""A script that trips the checker up is the trouble of whoever sent it, and of no live run."""

import pytest

from engine_support import house
from tallystick.engine import gate_actor
from tallystick.engine.messages import CheckRequest

ONE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a lighthouse"})
    return image["width"]
"""


async def test_a_checker_that_fails_disturbs_no_live_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with house() as engine:
        gate = engine.provider.hold()
        run = await engine.submit(ONE)
        await gate.reached()

        def trip(*_: object) -> None:
            raise ZeroDivisionError("a fault of the checker")

        with monkeypatch.context() as patched:
            patched.setattr(gate_actor, "check", trip)
            for _ in range(10):
                with pytest.raises(ZeroDivisionError):
                    await engine.host.service.check(CheckRequest("x = 1"))
            with pytest.raises(ZeroDivisionError):
                await engine.submit(ONE)
        gate.release()
        report = await engine.end(run)
        assert (report.status, len(report.launches), engine.provider.count()) == ("completed", 1, 1)
        assert (await engine.host.service.check(CheckRequest(ONE))).valid
        nodes = [engine.host.tree.tree()]
        for node in nodes:
            assert (node.status, node.restarts) == ("running", 0)
            nodes += node.children
