"""What tests of containers share: the engine they need, the image, hostile guests, and a wire that can be cut.

Elsewhere: ``from docker_support import docker_endpoint, docker_image`` in a conftest makes the fixtures known there.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiodocker.containers import DockerContainer, DockerContainers

from tallystick.sandbox.conformance import NONCE
from tallystick.sandbox.docker.client import Engine
from tallystick.sandbox.docker.discovery import Availability, Endpoint, available
from tallystick.sandbox.docker.driver import GUEST, DockerDriver, program
from tallystick.sandbox.docker.image import pinned
from tallystick.sandbox.docker.owner import STORE
from tallystick.sandbox.docker.pin import PinFile
from tallystick.sandbox.docker.sandbox import DockerSandbox
from tallystick.sandbox.protocol import Limits

Settings = dict[str, Any]

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


@asynccontextmanager
async def docker_guest(
    image: str, endpoint: Endpoint | None = None, *, guest: str | None = None, limits: Limits | None = None
) -> AsyncIterator[DockerSandbox]:
    """Have one guest of a driver of its own."""
    async with docker_driver(image, endpoint, guest=guest) as driver:
        sandbox = await driver.open(limits or Limits(), NONCE)
        try:
            yield sandbox
        finally:
            await sandbox.kill()


async def containers(store: str, endpoint: Endpoint | None = None) -> list[str]:
    """List the ids of a store's containers, in any state."""
    async with connected(endpoint or _answer().endpoint or Endpoint()) as engine:
        found = await engine.docker.containers.list(all=True, filters={"label": [f"{STORE}={store}"]})
        return [container.id for container in found]


def tampered_with(monkeypatch: pytest.MonkeyPatch, tamper: Callable[[Settings], None]) -> None:
    """Have the engine make something else of a request than the driver asked for."""
    create = DockerContainers.create

    async def other(self: DockerContainers, config: Any, *, name: str | None = None) -> DockerContainer:
        config = {**config, "HostConfig": {**config["HostConfig"]}}
        config["HostConfig"]["SecurityOpt"] = list(config["HostConfig"]["SecurityOpt"])
        tamper(config)
        return await create(self, config, name=name)

    monkeypatch.setattr(DockerContainers, "create", other)


@asynccontextmanager
async def moved_image(endpoint: Endpoint, image: str) -> AsyncIterator[tuple[str, str]]:
    """Have a name that means another image of the same content; yield it and that image's id."""
    name = f"tallystick-test-{os.getpid()}:moved"
    repository, _, tag = name.partition(":")
    async with connected(endpoint) as engine:
        found = await engine.docker.containers.create({"Image": image, "Cmd": ["never"]})
        try:
            moved = (await found.commit(repository=repository, tag=tag, changes='LABEL moved="yes"'))["Id"]
        finally:
            await found.delete()
        try:
            yield name, moved
        finally:
            await engine.docker.images.delete(name, force=True)


class Wire:
    """A socket between driver and engine that passes bytes on as it is told, until it is cut."""

    def __init__(self, endpoint: Endpoint, path: Path) -> None:
        self.endpoint = Endpoint(path=str(path))
        self.slice = 1 << 16
        self.speaks = asyncio.Event()
        self.speaks.set()
        self._engine = endpoint
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Drop every connection, in the middle of whatever it carries."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        assert self._engine.path, "the wire leads to a unix socket"
        engine_reader, engine_writer = await asyncio.open_unix_connection(self._engine.path)
        self._open |= {writer, engine_writer}
        await asyncio.gather(self._copy(reader, engine_writer), self._copy(engine_reader, writer))
        self._open -= {writer, engine_writer}

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                await self.speaks.wait()
                for at in range(0, len(data), self.slice):
                    target.write(data[at : at + self.slice])
                    await target.drain()
        target.close()


@asynccontextmanager
async def wire(endpoint: Endpoint, folder: Path) -> AsyncIterator[Wire]:
    """Have a wire to the engine."""
    between = Wire(endpoint, folder / "w")
    server = await asyncio.start_unix_server(between.pass_on, between.endpoint.path)
    try:
        yield between
    finally:
        server.close()
        between.speaks.set()
        between.cut()
