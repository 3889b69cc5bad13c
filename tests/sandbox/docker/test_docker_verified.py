"""What started is compared with what was asked for; on any difference no script is sent, and nothing stays."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from docker_support import Settings, containers, docker_driver, moved_image, tampered_with
from tallystick.sandbox.conformance import NONCE
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.docker.driver import DockerDriver
from tallystick.sandbox.docker.sandbox import DockerSandbox
from tallystick.sandbox.protocol import Limits, SandboxError

pytestmark = pytest.mark.engine


def without_filter(settings: Settings) -> None:
    settings["HostConfig"]["SecurityOpt"] = ["no-new-privileges:true"]


def with_a_weak_filter(settings: Settings) -> None:
    settings["HostConfig"]["SecurityOpt"][1] = "seccomp=unconfined"


def with_new_privileges(settings: Settings) -> None:
    settings["HostConfig"]["SecurityOpt"] = ["seccomp=unconfined"]


def as_root(settings: Settings) -> None:
    settings["User"] = "0:0"


def with_capabilities(settings: Settings) -> None:
    settings["HostConfig"]["CapDrop"] = []


def with_a_network(settings: Settings) -> None:
    settings["NetworkDisabled"] = False
    settings["HostConfig"]["NetworkMode"] = "host"


def with_a_writable_root(settings: Settings) -> None:
    settings["HostConfig"]["ReadonlyRootfs"] = False


def with_more_memory(settings: Settings) -> None:
    settings["HostConfig"]["Memory"] = settings["HostConfig"]["MemorySwap"] = 2 << 30


def with_a_mount(settings: Settings) -> None:
    settings["HostConfig"]["Binds"] = ["/proc:/host:ro"]


def with_the_hosts_processes(settings: Settings) -> None:
    settings["HostConfig"]["PidMode"] = "host"


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (without_filter, ("SecurityOpt", "seccomp=")),
        (with_a_weak_filter, ("SecurityOpt", "unconfined")),
        (with_new_privileges, ("SecurityOpt", "no-new-privileges")),
        (as_root, ("Config.User is '0:0', not '65534:65534'", "the kernel's Uid is")),
        (with_capabilities, ("HostConfig.CapDrop is []", "the kernel's CapBnd is")),
        (with_a_network, ("HostConfig.NetworkMode is 'host', not 'none'", "the network is ['host']")),
        (with_a_writable_root, ("ReadonlyRootfs is False, not True", "the kernel's mount of the root is 'rw")),
        (with_more_memory, ("HostConfig.Memory is 2147483648, not 536870912",)),
        (with_a_mount, ("HostConfig.Binds is ['/proc:/host:ro'], not None", "Mounts")),
        (with_the_hosts_processes, ("HostConfig.PidMode is 'host', not None",)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_container_that_is_not_as_asked_gets_no_script(
    tamper: Callable[[Settings], None], named: tuple[str, ...], docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered_with(monkeypatch, tamper)
    async with docker_driver(docker_image) as driver:
        with pytest.raises(SandboxError, match="got no script and was removed") as refused:
            await driver.open(Limits(), NONCE)
        for name in named:
            assert name in str(refused.value)


async def test_a_container_of_another_image_is_refused_naming_both(
    docker_image: str, docker_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a name that once meant the pinned image means another one now."""
    async with moved_image(docker_endpoint, docker_image) as (name, moved):
        tampered_with(monkeypatch, lambda settings: settings.update(Image=name))
        async with docker_driver(docker_image) as driver:
            with pytest.raises(SandboxError, match="got no script") as refused:
                await driver.open(Limits(), NONCE)
            assert f"the image is '{moved}', not '{docker_image}'" in str(refused.value)


async def test_no_script_is_sent_before_the_comparison(docker_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = DockerSandbox.send

    def note(self: DockerSandbox, frames: Any) -> Awaitable[None]:
        sent.extend(type(frame).__name__ for frame in frames)
        return send(self, frames)

    monkeypatch.setattr(DockerSandbox, "send", note)
    tampered_with(monkeypatch, with_more_memory)
    async with docker_driver(docker_image) as driver:
        with pytest.raises(SandboxError):
            await driver.open(Limits(), NONCE)
    assert sent == ["Boot"]


async def test_a_container_that_cannot_start_is_removed_and_says_why(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered_with(monkeypatch, lambda settings: settings.update(Entrypoint=["/usr/bin/perl"]))
    async with docker_driver(docker_image) as driver:
        with pytest.raises(SandboxError, match=r"the engine could not start a guest: .*/usr/bin/perl"):
            await driver.open(Limits(), NONCE)


async def test_an_image_that_the_engine_does_not_have_says_how_to_get_it(docker_endpoint: Endpoint) -> None:
    missing = "sha256:" + "0" * 64
    async with docker_driver(missing, docker_endpoint) as driver:
        with pytest.raises(SandboxError, match=r"does not have the pinned image .* tally image build"):
            await driver.open(Limits(), NONCE)


async def test_a_create_that_is_cancelled_leaves_nothing(docker_image: str, docker_endpoint: Endpoint) -> None:
    async with docker_driver(docker_image) as driver:
        await driver.prepare()
        for tick in range(12):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(driver.open, Limits(), NONCE)
                for _ in range(tick * 3):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert await containers(driver._store, docker_endpoint) == []


def test_a_driver_needs_no_engine_to_be_made() -> None:
    assert DockerDriver(store="s", image="sha256:aa").image == "sha256:aa"
