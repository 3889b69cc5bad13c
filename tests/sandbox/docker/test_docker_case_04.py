"""Casebook 4: answers that arrive after their container died are committed where they belong, and replay."""

import pytest

from docker_support import docker_driver
from engine_witness import assert_standing, witnessed
from tallystick.sandbox.docker.driver import DockerDriver

pytestmark = pytest.mark.engine

THREE = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    images = await ctx.parallel([shot(number) for number in range(3)])
    return len(images)
"""


async def kill_from_outside(driver: DockerDriver) -> None:
    (sandbox,) = driver._open
    await sandbox._container.kill()


async def test_answers_that_outlive_their_container_are_committed_and_replay(docker_image: str) -> None:
    async with docker_driver(docker_image) as driver, witnessed(driver=driver) as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(THREE)
        await gate.reached(3)
        await kill_from_outside(driver)
        while (await engine.host.service.report(run)).phase == "running":
            await (await driver.prepare()).docker.version()  # a turn that takes as long as a question to the engine
        gate.release()
        ended = await engine.end(run)
        assert (ended.status, ended.reason) == ("interrupted", "TS-R011")
        assert "killed from outside" in (ended.error.message if ended.error else "")
        history = await engine.history(run)
        assert [attempt.state for attempt in history.attempts.values()] == ["committed"] * 3
        assert {identity.path for identity in history.records} == {(0,), (1,), (2,)}
        await assert_standing(engine, run)

        again = await engine.resume(run)
        assert (again.status, again.result) == ("completed", 3)
        assert (again.calls.replayed, again.calls.executed, witness.count()) == (3, 0, 3)
        await assert_standing(engine, run)
