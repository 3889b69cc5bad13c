"""Casebook 32, with real daemons: killed once the job is known, or once its links are, nothing is ordered again."""

import json
from typing import Any

import pytest

from daemon_support import premises
from http_support import SECRET, STUDIO, operation, settings_of
from tallystick.engine import fault_points
from tallystick.engine.messages import RunReport
from upstream_server import running

IMAGE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a lighthouse", "size": "64x48"})
    return image["width"]
"""
AT_ONCE = {**STUDIO["operations"]["image.generate"]["job"], "interval": 0.001}


def inline(value: Any) -> str:
    """Write a value as TOML has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {inline(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def configuration(url: str) -> str:
    settings = {"plugin": "http", **settings_of(url, "studio", operations=operation(job=AT_ONCE))}
    lines = [f"{name} = {inline(value)}" for name, value in settings.items()]
    policy = '[capabilities."image.generate"]\nprovider = "studio"\n'
    return "\n".join(["[daemon]", "warm = 0", policy, "[providers.studio]", *lines, ""])


@pytest.mark.parametrize("step", fault_points.TOLD)
async def test_the_next_daemon_fetches_what_was_made_and_the_run_goes_on_by_itself(step: str) -> None:
    async with running() as upstream, premises() as place:
        place.write_config(configuration(upstream.url))
        secret = {"STUDIO_KEY": SECRET}
        async with place.open(fault=step, environment=secret) as (daemon, client):
            run = await client.submit(IMAGE)
            assert await daemon.ended() == -9
        assert (upstream.count("submit"), len(upstream.works)) == (1, 1)
        async with place.open(environment=secret) as (daemon, client):
            await daemon.says("run_goes_on")
            report: RunReport = await client.end(run)
            assert (report.status, report.result, report.launch) == ("completed", 64, 2)
            assert (report.calls.replayed, round(report.spend.usd * 1e6)) == (1, upstream.bill)
            (attempt,) = await client.attempts(run)
            assert (attempt.state, attempt.job) == ("committed", "job-1")
        assert (upstream.count("submit"), len(upstream.works)) == (1, 1)
