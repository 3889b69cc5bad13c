"""Which driver a daemon takes, and why."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tallystick.contract.errors import RunFailedError, UsageError
from tallystick.engine import sandboxes
from tallystick.engine.config import SandboxSettings
from tallystick.engine.sandboxes import Chosen
from tallystick.sandbox.docker.pin import PinFile


@asynccontextmanager
async def engine(path: Path, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\nOK") -> AsyncIterator[None]:
    """Have something that answers a ping."""

    async def pong(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(pong, path)
    try:
        yield
    finally:
        server.close()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine is looked for."""
    path = tmp_path / "s"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


async def chosen(home: Path, **settings: object) -> Chosen:
    found = await sandboxes.choose(
        SandboxSettings(**settings),  # type: ignore[arg-type]  # each test knows what it sets
        store="s",
        home=home,
        news=lambda _: None,
    )
    await found.driver.close()
    return found


async def test_docker_is_taken_where_an_engine_answers(at: Path, tmp_path: Path) -> None:
    async with engine(at):
        found = await chosen(tmp_path)
    assert (found.driver.name, found.reason) == ("docker", f"an engine answers at unix://{at}")


async def test_locked_is_taken_where_none_answers_and_the_reason_is_told(at: Path, tmp_path: Path) -> None:
    found = await chosen(tmp_path)
    assert found.driver.name == "locked"
    assert found.reason == (
        f"no engine can be used: there is no engine at unix://{at}; start one, or point DOCKER_HOST at it"
    )
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(at))
    assert "is down" in (await chosen(tmp_path)).reason
    os.unlink(at)  # noqa: PTH108 - no reason for a thread
    async with engine(at, b"HTTP/1.1 404 Not Found\r\n\r\n"):
        assert "is no Docker Engine" in (await chosen(tmp_path)).reason


async def test_a_driver_that_is_named_is_taken_whatever_answers(at: Path, tmp_path: Path) -> None:
    found = await chosen(tmp_path, driver="docker")
    assert found.driver.name == "docker"
    assert found.reason.startswith("sandbox.driver is docker; no engine can be used: there is no engine at")
    async with engine(at):
        found = await chosen(tmp_path, driver="locked")
    assert (found.driver.name, found.reason) == ("locked", "sandbox.driver is locked")


async def test_an_image_that_is_named_is_the_drivers(at: Path, tmp_path: Path) -> None:
    image = "sha256:" + "a" * 64
    async with engine(at):
        assert (await chosen(tmp_path, image=image)).driver.image == image
        assert (await chosen(tmp_path)).driver.image == ""


@pytest.mark.parametrize("driver", ["auto", "docker", "locked"])
async def test_a_lock_that_cannot_be_done_without_is_refused_under_every_driver(
    driver: str, at: Path, tmp_path: Path
) -> None:
    async with engine(at):
        with pytest.raises(UsageError, match="walls"):
            await chosen(tmp_path, driver=driver, allow_missing=("walls",))


async def test_an_image_is_not_built_without_an_engine(at: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=f"there is no engine at unix://{at}") as refused:
        await sandboxes.build_image(tmp_path, None, lambda _: None)
    assert refused.value.code == "TS-R007"
    assert not PinFile(tmp_path / sandboxes.PIN_NAME).stamp()
