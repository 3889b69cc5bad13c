import io
import platform
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest

from docker_support import connected, docker_driver
from tallystick.sandbox.conformance import NONCE
from tallystick.sandbox.docker import image
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.docker.image import Recipe, build, pinned, recipe
from tallystick.sandbox.docker.pin import Pin, PinFile
from tallystick.sandbox.protocol import Limits, SandboxError

pytestmark = pytest.mark.engine

ELSEWHERE = f"127.0.0.1:1/nobody@sha256:{'0' * 64}"


@pytest.fixture(autouse=True)
def no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "BASES", {sys.version_info[:2]: ELSEWHERE})


async def test_without_a_registry_the_image_is_made_of_this_hosts_interpreter(docker_endpoint: Endpoint) -> None:
    said: list[str] = []
    async with connected(docker_endpoint) as engine:
        first = await build(engine, said.append)
        again = await build(engine, said.append)
    assert first == again  # what did not change is not built again
    assert first.image.startswith("sha256:")
    assert first.python == platform.python_version()
    assert f"fetching {ELSEWHERE}" in said
    assert any("no registry can be reached" in line for line in said)
    assert any("Step" in line for line in said)


async def test_an_image_is_built_on_any_base_with_this_python(docker_endpoint: Endpoint) -> None:
    """As from a registry: the base is fetched, and the recipe collects from it."""
    async with connected(docker_endpoint) as engine:
        host = await build(engine, print)
        assert await build(engine, print, base=host.base) == host


async def test_a_base_that_is_there_already_is_taken(
    docker_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(docker_endpoint) as engine:
        host = await build(engine, print)
        monkeypatch.setattr(image, "BASES", {sys.version_info[:2]: host.base})
        said: list[str] = []
        assert (await build(engine, said.append)).image == host.image
    assert not any("fetching" in line for line in said)


async def test_a_base_that_does_not_fit_says_why(docker_endpoint: Endpoint, docker_image: str) -> None:
    async with connected(docker_endpoint) as engine:
        with pytest.raises(SandboxError, match="the engine could not build the image"):
            await build(engine, print, base=docker_image)  # it has no root to write to: the guest's user is not root


async def test_an_engine_of_another_kind_is_refused(docker_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    async with connected(docker_endpoint) as engine:
        with pytest.raises(SandboxError, match="this host linux on s390x"):
            await build(engine, print)


async def test_a_registry_that_never_answers_is_not_waited_for(
    docker_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "REGISTRY_PATIENCE", 0)
    said: list[str] = []
    async with connected(docker_endpoint) as engine:
        await build(engine, said.append)
    assert "the registry does not answer" in said


async def test_the_image_holds_an_interpreter_and_nothing_else_that_runs(
    docker_image: str, docker_endpoint: Endpoint
) -> None:
    async with connected(docker_endpoint) as engine:
        found = await engine.docker.images.inspect(docker_image)
        created = await engine.docker.containers.create({"Image": docker_image, "Cmd": ["never"]})
        try:
            async with engine.docker._query(f"containers/{created.id}/export") as answer:
                data = await answer.read()
        finally:
            await created.delete()
    assert found["Config"]["User"] == "65534:65534"
    assert found["Size"] < 80 << 20
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = list(tar)
        files = [
            entry for entry in members if entry.isfile() and not entry.name.startswith((".dockerenv", "etc/", "dev/"))
        ]
        modules = {entry.name: contents(tar, entry) for entry in files if entry.name.endswith(".pyc")}
    assert [entry.name for entry in files if entry.mode & 0o6000] == []
    assert {(entry.uid, entry.gid) for entry in files} == {(0, 0)}
    programs = {entry.name for entry in files if entry.mode & 0o111 and ".so" not in entry.name}
    assert programs == {"usr/bin/python3"}
    names = {entry.name for entry in files}
    for absent in ("socket", "subprocess", "asyncio", "pathlib", "urllib", "_socket"):
        assert not any(f"/{absent}." in name or f"/{absent}/" in name for name in names), absent
    assert "opt/guest/tallystick/sandbox/guest/core.pyc" in modules
    assert [name for name, code in modules.items() if sys.base_prefix.encode() in code] == []  # where it was made


def contents(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    assert file is not None
    return file.read()


async def test_the_pin_holds_until_the_guest_changes_or_the_image_is_gone(
    docker_endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PinFile(tmp_path / "image.json")
    said: list[str] = []
    async with connected(docker_endpoint) as engine:
        first = await pinned(engine, file, said.append)
        assert file.read() == first
        said.clear()
        assert await pinned(engine, file, said.append) == first
        assert said == []
        gone = msgspec.structs.replace(first, image="sha256:" + "0" * 64)
        file.write(gone)
        assert await pinned(engine, file, said.append) == first
        assert f"the pinned image {gone.image} is gone" in said
        changed = Recipe({**recipe().files, "guest/extra.py": b""}, "changed")
        monkeypatch.setattr(image, "recipe", lambda: changed)
        assert (await pinned(engine, file, said.append)).recipe == "changed"
        assert f"the pinned image {first.image} holds an older guest" in said
        file.path.write_text("nonsense")
        with pytest.raises(SandboxError, match="is not an image pin"):
            await pinned(engine, file, said.append)


async def test_the_first_use_builds_the_image_and_tells(docker_endpoint: Endpoint, tmp_path: Path) -> None:
    file = PinFile(tmp_path / "image.json")
    async with docker_driver(file, docker_endpoint) as driver:
        assert driver.image == ""
        sandbox = await driver.open(Limits(), NONCE)
        await sandbox.kill()
        pin = file.read()
        assert isinstance(pin, Pin)
        assert driver.image == pin.image


def test_a_host_that_cannot_be_collected_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Recipe({**recipe().files, "guest/tallystick/sandbox/frames.py": b"1 / 0"}, "broken")
    with pytest.raises(SandboxError, match=r"could not be collected for an image: ZeroDivisionError"):
        image._host_files(broken)


def test_what_is_collected_depends_on_the_files_alone() -> None:
    assert image._host_files(recipe()) == image._host_files(recipe())
