import pytest

from docker_support import docker_driver, docker_endpoint, docker_image
from tallystick.sandbox.acceptance import CHECKS, Check, run
from tallystick.sandbox.acceptance.check import ENGINE_CHECKS
from tallystick.sandbox.acceptance.inside import PROBES, held, probe_script
from tallystick.sandbox.acceptance.run import outcome
from tallystick.sandbox.conformance import NONCE
from tallystick.sandbox.frames import Done
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.memory import MemoryDriver

__all__ = ["docker_endpoint", "docker_image"]


def judged(found: list[Check]) -> None:
    assert [check for check in found if not check.ok] == []
    assert {check.check for check in found} == set(CHECKS) - set(ENGINE_CHECKS)
    assert len({(check.check, check.name) for check in found}) == len(found)
    assert len(found) > 100


async def test_the_locked_driver_is_accepted() -> None:
    judged(await run(LockedDriver()))


@pytest.mark.engine
async def test_the_docker_driver_is_accepted(docker_image: str) -> None:
    async with docker_driver(docker_image) as driver:
        judged(await run(driver))


@pytest.mark.parametrize("check", PROBES)
async def test_nothing_is_tried_in_a_guest_without_walls(check: str) -> None:
    seen = await outcome(MemoryDriver(), probe_script(check))
    assert seen.frames == [Done(nonce=NONCE, value="NOT CONFINED: nothing was tried")]
    assert not any(held(name, None) for name in PROBES[check])
