"""Casebook 4: answers that arrive after their container died are committed where they belong, and replay."""

import pytest

from docker_support import docker_driver
from engine_witness import assert_standing, witnessed
from tallystick.contract.errors import TallyError
from tallystick.sandbox.docker.driver import DockerDriver
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import Driver, Limits, Sandbox

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
        assert ended.status == "failed"
        assert "killed from outside" in (ended.error.message if ended.error else "")
        history = await engine.history(run)
        assert [attempt.state for attempt in history.attempts.values()] == ["committed"] * 3
        assert {identity.path for identity in history.records} == {(0,), (1,), (2,)}
        await assert_standing(engine, run)

        again = await engine.resume(run)
        assert (again.status, again.result) == ("completed", 3)
        assert (again.calls.replayed, again.calls.executed, witness.count()) == (3, 0, 3)
        await assert_standing(engine, run)


class Counted:
    """A driver that counts the guests it opens."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self.opened = 0
        self._driver = driver

    async def open(self, limits: Limits, nonce: str) -> Sandbox:
        self.opened += 1
        return await self._driver.open(limits, nonce)

    async def close(self) -> None:
        await self._driver.close()


FIRST = """
async def orchestrate(ctx, args):
    one = await ctx.run("image.generate", {"prompt": "one"})
    two = await ctx.run("image.generate", {"prompt": "two"})
    raise ValueError("here it ends")
"""
RIGHT = FIRST.replace('raise ValueError("here it ends")', 'return await ctx.run("image.generate", {"prompt": "three"})')
WRONG = RIGHT.replace('"prompt": "two"', '"prompt": "another"')


@pytest.mark.parametrize("name", ["locked", "docker"])
async def test_a_wrong_rewrite_stops_before_a_container_and_a_right_one_replays(name: str, docker_image: str) -> None:
    """The paper's third experiment: two calls commit, the script raises, a rewrite replays both and makes the third."""
    async with docker_driver(docker_image) as docker:
        driver = Counted(docker if name == "docker" else LockedDriver())
        async with witnessed(driver=driver) as (engine, witness):
            failed = await engine.run(FIRST)
            assert (failed.status, witness.count(), driver.opened) == ("failed", 2, 1)
            with pytest.raises(TallyError) as stopped:
                await engine.resume(failed.run, WRONG)
            assert stopped.value.code == "TS-G001"
            assert (witness.count(), driver.opened) == (2, 1)
            done = await engine.resume(failed.run, RIGHT)
            assert done.status == "completed"
            assert (done.calls.replayed, done.calls.executed) == (2, 1)
            assert [hit.payload["prompt"] for hit in witness.hits] == ["one", "two", "three"]
            certificate = await engine.host.inquiry.certificate(failed.run, check=True)
            assert certificate.differences == ()
            await assert_standing(engine, failed.run)
