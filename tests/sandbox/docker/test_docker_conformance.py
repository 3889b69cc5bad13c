import pytest

from docker_support import docker_driver
from tallystick.sandbox.conformance import CHECKS, WALLED, Check

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("check", [*CHECKS, *WALLED], ids=lambda check: check.__name__)
async def test_the_docker_driver_conforms(check: Check, docker_image: str) -> None:
    async with docker_driver(docker_image) as driver:
        await check(driver)
