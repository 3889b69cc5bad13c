"""Runs in containers, with an engine that may let them down: true causes, no lost work, nothing left behind."""

import gc
from collections import Counter
from pathlib import Path

import anyio
import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from docker_support import docker_driver, moved_image, tampered_with, wire
from engine_support import House
from engine_witness import assert_standing, witnessed
from tallystick.engine.config import SandboxSettings
from tallystick.sandbox.docker.discovery import Endpoint

pytestmark = pytest.mark.engine

THREE = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    return len(await ctx.parallel([shot(number) for number in range(3)]))
"""
CRASH = "COUNT = 1 / 0\nasync def orchestrate(ctx, args):\n    return 1\n"
# None of these calls fits the schema: each is refused without an attempt, and the next one follows at once.
FLOOD = """
async def orchestrate(ctx, args):
    for number in range(100):
        try:
            await ctx.run("text.generate", {"nothing": "x" * 100000})
        except Exception:
            continue
"""
NORMAL = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": args["prompt"]})
"""
ROOM = 20 << 20  # bytes by which the engine may have grown in the end


async def test_an_engine_that_drops_the_stream_costs_no_call(
    docker_image: str, docker_endpoint: Endpoint, tmp_path: Path
) -> None:
    async with (
        wire(docker_endpoint, tmp_path) as between,
        docker_driver(docker_image, between.endpoint) as driver,
        witnessed(driver=driver) as (engine, witness),
    ):
        gate = witness.hold()
        run = await engine.submit(THREE)
        await gate.reached(3)
        between.cut()
        async for line in engine.host.service.watch(run):
            if line.kind == "settling":
                gate.release()
        lost = await engine.host.service.report(run)
        assert lost.error is not None
        assert "was cut off" in lost.error.message
        assert (lost.status, lost.reason, lost.calls.executed) == ("interrupted", "TS-R011", 3)
        await assert_standing(engine, run)
        again = await engine.resume(run)
        assert (again.status, again.calls.replayed, again.calls.executed, witness.count()) == ("completed", 3, 0, 3)


async def test_a_container_of_another_image_than_the_pinned_one_gets_no_script(
    docker_image: str, docker_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        moved_image(docker_endpoint, docker_image) as (name, moved),
        docker_driver(docker_image) as driver,
        witnessed(driver=driver) as (engine, witness),
    ):
        tampered_with(monkeypatch, lambda settings: settings.update(Image=name))
        refused = await engine.run(THREE)
        assert (refused.status, refused.reason, witness.count()) == ("failed", "TS-R007", 0)
        assert refused.error is not None
        assert f"the image is '{moved}', not '{docker_image}'" in refused.error.message
        monkeypatch.undo()
        resumed = await engine.resume(refused.run)
        assert resumed.status == "completed"
        assert [launch.image for launch in resumed.launches] == [docker_image, docker_image]


@pytest.mark.timeout(180)
async def test_a_hundred_runs_at_once_each_end_with_their_true_cause(docker_image: str) -> None:
    ends: Counter[tuple[str, str, str | None]] = Counter()
    told: set[str] = set()

    async def one(engine: House, kind: str, number: int) -> None:
        source = {"crash": CRASH, "flood": FLOOD, "normal": NORMAL}[kind]
        report = await engine.run(source, {"prompt": f"p{number}"})
        ends[kind, report.status, report.reason] += 1
        told.add(report.error.message if report.error is not None else report.result["text"][:0])

    async with (
        docker_driver(docker_image) as driver,
        witnessed(driver=driver, daemon={"max_live": 100}, sandbox=SandboxSettings(output_mb=1)) as (engine, witness),
    ):
        await engine.run(NORMAL, {"prompt": "first"})
        gc.collect()
        before = psutil.Process().memory_info().rss
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, engine, ("crash", "flood", "normal")[number % 3], number)
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
        assert ends == {
            ("crash", "failed", "TS-R001"): 34,
            ("flood", "failed", "TS-R005"): 33,
            ("normal", "completed", None): 33,
        }
        assert any("ZeroDivisionError at line 1" in text for text in told)
        assert any("may send 1 MiB" in text for text in told)
        assert witness.count() == 1 + 33
        assert engine.host.service.launches.live == {}
        assert grown < ROOM
