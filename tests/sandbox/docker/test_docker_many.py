"""A hundred guests at once on few cores, two thirds of them up to no good."""

import gc
from collections import Counter

import anyio
import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from docker_support import docker_driver
from tallystick.sandbox.conformance import NONCE, ONE_CALL, guest, reply, start
from tallystick.sandbox.docker.driver import DockerDriver
from tallystick.sandbox.frames import Call, Crash, Done, FrameError
from tallystick.sandbox.protocol import Limits, Sandbox

RUNS = 100
ROOM = 20 << 20  # bytes by which the host may have grown in the end

CRASH = "x = 1 / 0\nasync def orchestrate(ctx, args): pass\n"
FLOOD = """
async def orchestrate(ctx, args):
    while True: await ctx.run("text.generate", "x" * 100_000, _site="s")
"""


@pytest.mark.engine
@pytest.mark.long
@pytest.mark.timeout(180)
async def test_a_hundred_runs_at_once_each_end_with_their_true_cause(docker_image: str) -> None:
    ends: Counter[tuple[str, str, str, int | None]] = Counter()
    async with docker_driver(docker_image) as driver:
        async with guest(driver):
            pass
        before = psutil.Process().memory_info().rss
        async with anyio.create_task_group() as tasks:
            for number in range(RUNS):
                kind = ("crash", "flood", "normal")[number % 3]
                tasks.start_soon(one, driver, kind, ends)
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
    assert ends == {
        ("crash", "Crash", "exit", 1): 34,
        ("flood", "FrameError", "output", None): 33,
        ("normal", "Done", "exit", 0): 33,
    }
    assert grown < ROOM


async def one(driver: DockerDriver, kind: str, ends: Counter[tuple[str, str, str, int | None]]) -> None:
    source = {"crash": CRASH, "flood": FLOOD, "normal": ONE_CALL}[kind]
    async with guest(driver, Limits(output=4 << 20)) as sandbox:
        await start(sandbox, source, {"prompt": kind})
        try:
            last = await lean(sandbox)
        except FrameError:
            end = await sandbox.kill()
            last = "FrameError"
        else:
            end = await sandbox.wait()
        ends[(kind, last, end.cause, end.code)] += 1


async def lean(sandbox: Sandbox) -> str:
    """Answer every call and keep nothing."""
    while True:
        frames = await sandbox.receive()
        if isinstance(frames[-1], Done | Crash):
            assert frames[-1].nonce == NONCE
            return type(frames[-1]).__name__
        await sandbox.send([reply(frame) for frame in frames if isinstance(frame, Call)])
