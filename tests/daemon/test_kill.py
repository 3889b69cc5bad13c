"""``kill -9`` in the middle of a fanout: nothing is paid twice, and what nobody knows is named and settled."""

import base64
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator

import anyio
import pytest

from daemon_support import PATIENCE, Client, RefusedError, assert_standing, premises
from scripted_provider import Hit
from tallystick.engine import fault_points
from tallystick.engine.messages import AttemptReport, Progress

FANOUT = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot {number}"})
        return image["images"][0]["$artifact"]

    return await ctx.parallel([shot(number) for number in range(8)])
"""
ANSWERED = {1, 2, 4, 7}


def shot(hit: Hit | AttemptReport) -> int:
    return int(hit.payload["prompt"].removeprefix("shot "))


async def commits(stream: AsyncIterator[Progress], calls: int) -> None:
    while calls:
        calls -= (await anext(stream)).kind == "committed"


async def test_killed_in_a_fanout_of_eight_with_four_answers() -> None:
    async with premises() as place:
        await place.take_calls(daemon={"warm": 1})
        async with place.open() as (daemon, client):
            run = await client.submit(FANOUT)
            async with client.watch(run) as stream:
                held = await place.desk.reached(8)
                for call in held:
                    if shot(call.hit) in ANSWERED:
                        call.answer()
                await commits(stream, len(ANSWERED))
                guests = daemon.children()
                await daemon.kill()
        assert guests
        for guest in guests:
            with anyio.fail_after(PATIENCE):  # a guest must not outlive its daemon
                await anyio.wait_readable(guest)
            os.close(guest)

        async with place.open() as (daemon, client):
            assert [entry["unresolved"] for entry in daemon.logged("run_interrupted")] == [4]
            assert "4 call(s) are unresolved" in (await daemon.says("run_stays_interrupted"))["reason"]
            report = await client.show(run)
            assert (report.status, report.reason) == ("interrupted", "TS-N003")
            assert {shot(attempt) for attempt in report.unresolved} == set(range(8)) - ANSWERED
            assert report.error is not None
            assert "4 committed call(s) are kept" in report.error.message

            refused = await refusal(client, run)
            assert [attempt["attempt"] for attempt in refused.details] == [each.attempt for each in report.unresolved]
            for attempt in report.unresolved:
                assert f"attempt {attempt.attempt} at {attempt.identity} (image.generate)" in refused.message

            supplied, abandoned = report.unresolved[:2], report.unresolved[2:]
            for attempt in supplied:
                settled = await client.reconcile(run, attempt.attempt, result=picture(attempt), cost_usd=0.02)
                assert (settled.state, settled.decision) == ("committed", "commit")
            assert len((await refusal(client, run)).details) == 2
            for attempt in abandoned:
                settled = await client.reconcile(run, attempt.attempt, abandon=True, why="the provider knows nothing")
                assert (settled.state, settled.decision) == ("abandoned", "abandon")
            assert len(place.hits) == 8

            place.desk.open()
            report = await client.resume(run)
            assert (report.status, report.unresolved, report.orphans) == ("completed", (), ())
            assert (report.calls.replayed, report.calls.executed) == (6, 2)
            assert sorted(map(shot, place.hits[8:])) == sorted(map(shot, abandoned))
            artifacts = await client.http.get(f"/v1/runs/{run}/artifacts")
            by_branch = {entry["identity"]["path"][0]: entry["sha256"] for entry in artifacts.json()}
            assert report.result == [f"sha256:{by_branch[branch]}" for branch in range(8)]
            for attempt in supplied:
                file = await client.http.get(f"/v1/files/{by_branch[shot(attempt)]}")
                assert file.content == f"by hand {shot(attempt)}".encode()
            await assert_standing(place, client, run)

        # Once more, with nothing left to pay: another start, another resume.
        async with place.open() as (_, client):
            report = await client.resume(run)
            assert (report.status, report.calls.replayed, report.calls.executed) == ("completed", 8, 0)
            assert len(place.hits) == 10


MIXED = """
async def orchestrate(ctx, args):
    async def shot(number):
        note = await ctx.run("text.generate", {"prompt": f"note {number}"})
        image = await ctx.run("image.generate", {"prompt": f"shot {number}"})
        return [note["text"], image["width"]]

    first = await shot("first")
    return [first, *await ctx.parallel([shot(number) for number in range(3)])]
"""


@pytest.mark.long
@pytest.mark.parametrize("step", fault_points.ALL)
@pytest.mark.parametrize("count", range(1, 9))
async def test_killed_at_any_step_of_any_call_each_loss_is_paid_once_more_at_most(step: str, count: int) -> None:
    async with premises() as place:
        async with place.open(fault=f"{step}:{count}") as (daemon, client):
            run = await client.submit(MIXED)
            assert await daemon.ended() == -signal.SIGKILL
        async with place.open() as (_, client):
            report = await client.end(run)
            lost = report.unresolved
            for attempt in lost:
                await client.reconcile(run, attempt.attempt, abandon=True)
            if lost:
                report = await client.resume(run)
            assert report.status == "completed"
            attempts = await assert_standing(place, client, run)
            assert sum(attempt.state == "committed" for attempt in attempts) == 8
            payloads = Counter(hit.text for hit in place.hits)
            assert len(payloads) == 8
            again = {hit.text for hit in place.hits if payloads[hit.text] > 1}
            assert len(again) <= sum(attempt.state in ("unknown", "abandoned") for attempt in attempts)
            assert max(payloads.values()) <= 2


async def refusal(client: Client, run: str) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        await client.resume(run)
    assert (refused.value.status, refused.value.code) == (409, "TS-A001")
    assert f"tally reconcile {run} ATTEMPT" in refused.value.hint
    return refused.value


def picture(attempt: AttemptReport) -> dict[str, object]:
    data = base64.b64encode(f"by hand {shot(attempt)}".encode()).decode()
    return {"images": [{"$base64": data, "media_type": "image/png"}], "width": 8, "height": 8}
