"""What tests of containers share: the engine they need, the image, hostile guests, and a wire that can be cut.

Elsewhere: ``from docker_support import docker_endpoint, docker_image`` in a conftest makes the fixtures known there.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import anyio
import anyio.abc
import pytest

from tallystick.sandbox.docker.client import Engine
from tallystick.sandbox.docker.discovery import Availability, Endpoint, available, open_stream
from tallystick.sandbox.docker.driver import GUEST, DockerDriver, program
from tallystick.sandbox.docker.image import pinned
from tallystick.sandbox.docker.owner import STORE
from tallystick.sandbox.docker.pin import PinFile

#: The store that tests' containers belong to: one a process, so that test runs side by side leave each other alone.
STORE_ID = f"tests-{os.getpid()}"

# These programs are not confined by themselves: the container alone holds them.
SPEAK = """
import os, sys
import msgspec
from tallystick.sandbox.frames import *
def raw(data):
    while data: data = data[os.write(1, data):]
def frame(body): raw(HEAD.pack(len(body)) + body)
def say(*frames): raw(b"".join(map(pack, frames)))
def hear():
    size, body = HEAD.unpack(os.read(0, 4))[0], b""
    while len(body) < size: body += os.read(0, size - len(body))
    return body
def for_ever():
    while os.read(0, 1): pass
boot = decode_boot(hear())
nonce = boot.nonce
"""
HELLO = SPEAK + "say(Ready(nonce=nonce, landlock=7, seccomp=True))\nhear()\n"


@cache
def _answer() -> Availability:
    return anyio.run(available)


def require_engine(found: Availability) -> Endpoint:
    """Return the engine; skip the test where none answers, or fail it in CI, where one was to be started."""
    if found.endpoint is not None:
        return found.endpoint
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have an engine: {found.reason}")
    pytest.skip(found.reason)


@pytest.fixture(scope="session")
def docker_endpoint() -> Endpoint:
    """The engine that the tests use."""
    return require_engine(_answer())


@pytest.fixture(scope="session")
def docker_image(docker_endpoint: Endpoint, pytestconfig: pytest.Config) -> str:
    """The id of the guests' image, built where it is not there yet."""
    pin_file = PinFile(pytestconfig.cache.mkdir("tallystick") / "image.json")

    async def build() -> str:
        async with connected(docker_endpoint) as engine:
            return (await pinned(engine, pin_file, print)).image

    return anyio.run(build)


@asynccontextmanager
async def connected(endpoint: Endpoint) -> AsyncIterator[Engine]:
    """Have a client of the engine."""
    engine = Engine(endpoint)
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def docker_driver(
    image: str | PinFile, endpoint: Endpoint | None = None, *, guest: str | None = None, store: str = STORE_ID
) -> AsyncIterator[DockerDriver]:
    """Have a driver; in the end none of its containers is there any more."""
    code = GUEST if guest is None else program(guest)
    driver = DockerDriver(store=store, image=image, endpoint=endpoint, guest=code)
    try:
        yield driver
    finally:
        await driver.close()
    assert await containers(store, endpoint) == [], "a container was left behind"


async def containers(store: str, endpoint: Endpoint | None = None) -> list[str]:
    """List the ids of a store's containers, in any state."""
    async with connected(endpoint or _answer().endpoint or Endpoint()) as engine:
        found = await engine.docker.containers.list(all=True, filters={"label": [f"{STORE}={store}"]})
        return [container.id for container in found]


class Wire:
    """A socket between driver and engine that passes bytes on as it is told, until it is cut."""

    def __init__(self, endpoint: Endpoint, path: Path) -> None:
        self.endpoint = Endpoint(path=str(path))
        self.slice = 1 << 16
        self.holds_back: Callable[[bytes], bool] = lambda _: False
        self._engine = endpoint
        self._open: set[anyio.abc.SocketStream] = set()

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Pass connections on until cancelled."""
        async with await anyio.create_unix_listener(self.endpoint.path) as listener:
            task_status.started()
            await listener.serve(self._pass_on)

    async def cut(self) -> None:
        """Drop every connection, in the middle of whatever it carries."""
        for stream in tuple(self._open):
            await stream.aclose()

    async def _pass_on(self, client: anyio.abc.SocketStream) -> None:
        async with client, await open_stream(self._engine) as engine, anyio.create_task_group() as tasks:
            self._open |= {client, engine}
            tasks.start_soon(self._copy, client, engine, tasks.cancel_scope)
            await self._copy(engine, client, tasks.cancel_scope)
        self._open -= {client, engine}

    async def _copy(
        self, source: anyio.abc.SocketStream, target: anyio.abc.SocketStream, scope: anyio.CancelScope
    ) -> None:
        try:
            while True:
                data = await source.receive()
                if self.holds_back(data):
                    await anyio.sleep_forever()
                for at in range(0, len(data), self.slice):
                    await target.send(data[at : at + self.slice])
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            scope.cancel()


@asynccontextmanager
async def wire(endpoint: Endpoint, folder: Path) -> AsyncIterator[Wire]:
    """Have a wire to the engine."""
    between = Wire(endpoint, folder / "w")
    async with anyio.create_task_group() as tasks:
        await tasks.start(between.serve)
        yield between
        tasks.cancel_scope.cancel()
