"""Ends that come from outside, and silence that is none."""

import anyio
import pytest

from docker_support import HELLO, docker_guest
from tallystick.sandbox.conformance import ONE_CALL, play, reply, start
from tallystick.sandbox.docker import sandbox as sandbox_module
from tallystick.sandbox.docker.memory_event import ran_out_of_memory
from tallystick.sandbox.docker.sandbox import DockerSandbox
from tallystick.sandbox.frames import Call, Crash, Done, FrameError
from tallystick.sandbox.protocol import EndOfGuest, Limits

pytestmark = pytest.mark.engine

HOARD = f"{HELLO}hoard = []\nwhile True: hoard.append(bytearray(os.urandom(1000) * 1000))"


async def in_call(sandbox: DockerSandbox) -> Call:
    """Run a script up to its call."""
    await start(sandbox, ONE_CALL, 7)
    (call,) = await sandbox.receive()
    assert isinstance(call, Call)
    return call


async def test_a_container_killed_from_outside_says_so(docker_image: str) -> None:
    async with docker_guest(docker_image) as sandbox:
        await in_call(sandbox)
        await sandbox._container.kill()
        with pytest.raises(EndOfGuest):
            await sandbox.receive()
        end = await sandbox.wait()
        assert (end.cause, end.signal, end.text) == ("lost", 9, "it was killed from outside")
        assert await sandbox.kill() == end


async def test_a_container_removed_from_outside_ends_the_guest(docker_image: str) -> None:
    async with docker_guest(docker_image) as sandbox:
        await in_call(sandbox)
        await sandbox._container.delete(force=True)
        with pytest.raises(EndOfGuest):
            await sandbox.receive()
        end = await sandbox.wait()
        assert end.cause == "lost"
        assert "No such container" in end.text


async def test_a_container_out_of_memory_names_its_limit(docker_image: str) -> None:
    async with docker_guest(docker_image, guest=HOARD, limits=Limits(memory=64 << 20)) as sandbox:
        await start(sandbox, "")
        with pytest.raises(EndOfGuest):
            await sandbox.receive()
        end = await sandbox.wait()
        assert (end.cause, end.signal) == ("memory", 9)
        assert "64 MiB" in end.limit
        # Where the engine's description lags behind, the event itself is found.
        state = {**await sandbox._state(), "OOMKilled": False}
        assert await ran_out_of_memory(sandbox._engine, sandbox.id, state)


async def test_silence_alone_ends_nothing(docker_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = anyio.Event()
    runs = DockerSandbox._runs

    async def noted(self: DockerSandbox) -> bool:
        answer = await runs(self)
        asked.set()
        return answer

    monkeypatch.setattr(sandbox_module, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(DockerSandbox, "_runs", noted)
    async with docker_guest(docker_image) as sandbox:
        call = await in_call(sandbox)
        async with anyio.create_task_group() as tasks:

            async def rest() -> None:
                assert isinstance((await play(sandbox))[-1], Done)

            tasks.start_soon(rest)
            for _ in range(3):
                await asked.wait()
                asked = anyio.Event()
            await sandbox.send([reply(call)])


async def test_a_container_paused_from_outside_ends_in_a_bounded_time(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "QUIET_SECONDS", 0.1)
    async with docker_guest(docker_image) as sandbox:
        await in_call(sandbox)
        await sandbox._container.pause()
        with pytest.raises(EndOfGuest, match="paused from outside"):
            await sandbox.receive()
        end = await sandbox.kill()
        assert end.cause == "lost"
        assert "paused from outside" in end.text


async def test_a_pause_that_ends_in_time_is_survived(docker_image: str) -> None:
    async with docker_guest(docker_image) as sandbox:
        call = await in_call(sandbox)
        await sandbox._container.pause()
        assert await sandbox._runs()
        await sandbox._container.unpause()
        assert await sandbox._runs()
        await sandbox.send([reply(call)])
        assert isinstance((await play(sandbox))[-1], Done)


@pytest.mark.parametrize("source", ["async def orchestrate(ctx, args:\n", "x = 1 / 0\n", "def f(): pass\n"])
async def test_a_script_that_fails_at_once_is_told_in_full(source: str, docker_image: str) -> None:
    async with docker_guest(docker_image) as sandbox:
        await start(sandbox, source)
        (crash,) = await play(sandbox)
        assert isinstance(crash, Crash)
        assert crash.phase == "load"
        assert crash.text
        end = await sandbox.wait()
        assert (end.cause, end.code) == ("exit", 1)


async def test_a_script_that_prints_a_megabyte_and_leaves_is_heard_to_its_end(docker_image: str) -> None:
    source = "async def orchestrate(ctx, args):\n    for n in range(64): print('x' * 16000)\n    return 'end'\n"
    async with docker_guest(docker_image) as sandbox:
        await start(sandbox, source)
        heard = await play(sandbox)
        assert len(heard) == 65
        end = await sandbox.wait()
        assert (end.cause, end.code) == ("exit", 0)


async def test_half_a_frame_at_the_end_of_a_guest_is_its_own_breach(docker_image: str) -> None:
    code = f"{HELLO}raw(pack(Done(nonce=nonce))[:-1])"
    async with docker_guest(docker_image, guest=code) as sandbox:
        await start(sandbox, "")
        with pytest.raises(FrameError, match="within a frame"):
            await sandbox.receive()
        assert (await sandbox.kill()).cause == "protocol"
