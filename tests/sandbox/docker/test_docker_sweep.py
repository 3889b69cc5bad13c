"""What a daemon that died left behind is removed by the next one of its store, and nothing else is."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from docker_support import STORE_ID, connected, containers, docker_driver
from tallystick.sandbox.conformance import NONCE, guest
from tallystick.sandbox.docker import owner
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.docker.profile import container
from tallystick.sandbox.protocol import Limits

pytestmark = pytest.mark.engine

HOST = """
import anyio, sys
from tallystick.sandbox.conformance import ENDLESS, NONCE, start
from tallystick.sandbox.docker.driver import DockerDriver
from tallystick.sandbox.protocol import Limits
async def main():
    driver = DockerDriver(store=sys.argv[1], image=sys.argv[2])
    guests = [await driver.open(Limits(), NONCE) for _ in range(3)]
    await start(guests[1], ENDLESS)
    print(*[guest.id for guest in guests], flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


async def test_a_killed_owner_leaves_only_what_the_next_start_removes(
    docker_image: str, docker_endpoint: Endpoint
) -> None:
    command = [sys.executable, "-c", textwrap.dedent(HOST), STORE_ID, docker_image]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:  # noqa: ASYNC220 - it is waited for at once
        assert host.stdout is not None
        left = set(host.stdout.readline().split())
        assert len(left) == 3
        async with docker_driver(docker_image, store=f"{STORE_ID}-other") as neighbour:
            await neighbour.prepare()  # of another store: not its to remove, but told
            assert neighbour.swept.removed == ()
            assert left <= {each for each, store, _ in neighbour.swept.left if store == STORE_ID}
        async with connected(docker_endpoint):
            assert set(await containers(STORE_ID)) == left  # its owner is alive: nobody's to remove
        host.send_signal(signal.SIGKILL)
    async with docker_driver(docker_image, store=f"{STORE_ID}-other") as neighbour:
        await neighbour.prepare()
    assert set(await containers(STORE_ID)) == left
    async with docker_driver(docker_image) as driver, guest(driver):
        assert set(driver.swept.removed) == left
        assert len(await containers(STORE_ID)) == 1


@pytest.mark.parametrize(
    ("changes", "removed"),
    [
        ({}, False),
        ({"start": 1}, True),
        ({"boot": "another"}, True),
        ({"pid": 1 << 30}, True),
    ],
    ids=["alive", "recycled-pid", "another-boot", "no-process"],
)
async def test_an_owner_is_judged_by_more_than_its_number(
    changes: dict[str, int | str], removed: bool, docker_image: str, docker_endpoint: Endpoint
) -> None:
    store = f"{STORE_ID}-judged"
    dead = owner.current()._replace(**changes)  # type: ignore[arg-type]  # each under its own name
    async with connected(docker_endpoint) as engine:
        settings = container(docker_image, ["never"], Limits(), owner.labels(store, dead, NONCE))
        created = await engine.docker.containers.create(settings)
        try:
            async with docker_driver(docker_image, store=f"{STORE_ID}-x") as other:
                await other.prepare()
                assert created.id in {each for each, _, _ in other.swept.left}
            driver_removed = await swept_by(docker_image, store)
            assert driver_removed == ((created.id,) if removed else ())
        finally:
            if not removed:
                await created.delete(force=True)
    assert os.getpid() == owner.current().pid


async def swept_by(image: str, store: str) -> tuple[str, ...]:
    from tallystick.sandbox.docker.driver import DockerDriver

    driver = DockerDriver(store=store, image=image)
    try:
        await driver.prepare()
        return driver.swept.removed
    finally:
        await driver.close()
