"""What the host holds when a guest is lost, and what it keeps of it, with a real engine round each driver."""

import pytest

from docker_support import docker_driver, docker_endpoint, docker_image
from tallystick.engine.acceptance import episodes
from tallystick.sandbox.acceptance import Check
from tallystick.sandbox.acceptance.check import ENGINE_CHECKS
from tallystick.sandbox.locked import LockedDriver

__all__ = ["docker_endpoint", "docker_image"]


def judged(found: list[Check]) -> None:
    assert [check for check in found if not check.ok] == []
    assert {check.check for check in found} == set(ENGINE_CHECKS)
    assert len({(check.check, check.name) for check in found}) == len(found)


async def test_the_host_holds_with_the_locked_driver() -> None:
    judged(await episodes(LockedDriver()))


@pytest.mark.engine
async def test_the_host_holds_with_the_docker_driver(docker_image: str) -> None:
    async with docker_driver(docker_image) as driver:
        judged(await episodes(driver))
