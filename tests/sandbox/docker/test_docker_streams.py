"""The wire between driver and engine: slow, split, silent and cut."""

from pathlib import Path

import anyio
import pytest

from docker_support import HELLO, docker_driver, docker_guest, wire
from tallystick.sandbox.conformance import NONCE, ONE_CALL, guest, play, start
from tallystick.sandbox.docker import client as client_module
from tallystick.sandbox.docker import sandbox as sandbox_module
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.frames import Call, Done
from tallystick.sandbox.protocol import EndOfGuest, Limits, SandboxError

pytestmark = pytest.mark.engine


async def test_a_stream_split_at_every_byte_is_the_same_stream(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path
) -> None:
    async with wire(docker_endpoint, tmp_path) as between, docker_guest(docker_image, between.endpoint) as sandbox:
        between.slice = 1
        await start(sandbox, ONE_CALL, {"prompt": "a \u2022 b"})
        frames = await play(sandbox)
        assert frames[-1] == Done(nonce=NONCE, value={"prompt": "a \u2022 b"})
        between.slice = 1 << 16


async def test_a_stream_that_is_cut_is_not_taken_for_the_end_of_the_guest(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "CONFIRM_SECONDS", 0.2)
    # The guest goes on after its stream: it takes no notice of the end of its input.
    code = f"{HELLO}import _thread; raw(b'\\0\\0'); lock = _thread.allocate_lock(); lock.acquire(); lock.acquire()"
    async with wire(docker_endpoint, tmp_path) as between:
        async with docker_guest(docker_image, between.endpoint, guest=code) as sandbox:
            await start(sandbox, "")
            async with anyio.create_task_group() as tasks:

                async def receive() -> None:
                    with pytest.raises(EndOfGuest, match="cut off while the guest ran"):
                        await sandbox.receive()

                tasks.start_soon(receive)
                await anyio.wait_all_tasks_blocked()
                between.cut()
            end = await sandbox.kill()
        assert end.cause == "lost"
        assert "cut off while the guest ran" in end.text


async def test_a_guest_whose_host_lets_go_ends_by_itself(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path
) -> None:
    async with wire(docker_endpoint, tmp_path) as between, docker_guest(docker_image, between.endpoint) as sandbox:
        await start(sandbox, ONE_CALL)
        (call,) = await sandbox.receive()
        assert isinstance(call, Call)
        between.cut()
        with pytest.raises(EndOfGuest):
            await sandbox.receive()
        end = await sandbox.wait()
        assert (end.cause, end.code) == ("lost", 2)


async def test_an_engine_that_falls_silent_ends_a_run_in_a_bounded_time(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("QUIET_SECONDS", 0.1), ("CONFIRM_SECONDS", 0.2), ("KILL_SECONDS", 0.3)):
        monkeypatch.setattr(sandbox_module, name, seconds)
    async with wire(docker_endpoint, tmp_path) as between, docker_driver(docker_image, between.endpoint) as driver:
        async with guest(driver) as sandbox:
            await start(sandbox, ONE_CALL)
            await sandbox.receive()
            between.speaks.clear()
            with anyio.fail_after(5):
                with pytest.raises(EndOfGuest, match="does not answer"):
                    await sandbox.receive()
                monkeypatch.setattr("tallystick.sandbox.docker.client.REQUEST_SECONDS", 0.3)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(sandbox.wait)
                    await anyio.wait_all_tasks_blocked()
                    end = await sandbox.kill()
            assert end.cause == "lost"
            assert "does not answer" in end.text
            between.speaks.set()
            between.cut()
        async with guest(driver):  # the engine is back: the next start removes what could not be removed
            assert driver._leftovers == set()


async def test_an_engine_that_does_not_answer_is_named(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "REQUEST_SECONDS", 0.2)
    async with wire(docker_endpoint, tmp_path) as between:
        between.speaks.clear()
        async with docker_driver(docker_image, between.endpoint) as driver:
            with pytest.raises(SandboxError, match=r"does not answer.*asked to list the guests"):
                await driver.open(Limits(), NONCE)
            between.speaks.set()
            monkeypatch.undo()
            async with guest(driver) as sandbox:  # and the next try finds it
                await start(sandbox, ONE_CALL)
