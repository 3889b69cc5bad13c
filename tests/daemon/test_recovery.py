"""What becomes of the runs of a daemon that ended: those that lost nothing but time go on by themselves."""

import signal

import pytest

from daemon_support import RefusedError, assert_standing, premises
from tallystick.engine import fault_points
from tallystick.engine.messages import Limits

FOUR = """
async def orchestrate(ctx, args):
    widths = []
    for number in range(4):
        image = await ctx.run("image.generate", {"prompt": f"picture {number}"})
        widths.append(image["width"])
    return widths
"""
SIDE_BY_SIDE = """
async def orchestrate(ctx, args):
    async def shot(number):
        return (await ctx.run("image.generate", {"prompt": f"shot {number}"}))["width"]

    return await ctx.parallel([shot(number) for number in range(4)])
"""
SAME = """
SHOTS = 3


async def orchestrate(ctx, args):
    for number in range(SHOTS):
        await ctx.run("image.generate", {"prompt": "the same"})
    return "all"
"""


async def test_a_run_with_nothing_unresolved_goes_on_by_itself_but_not_where_auto_resume_is_off() -> None:
    async with premises() as place:
        place.configure(daemon={"auto_resume": False})
        async with place.open(fault=f"{fault_points.COMMITTED}:2") as (daemon, client):
            run = await client.submit(FOUR)
            assert await daemon.ended() == -signal.SIGKILL
        async with place.open() as (daemon, client):
            assert [entry["run"] for entry in daemon.logged("run_interrupted")] == [run]
            assert not daemon.logged("run_goes_on")
            report = await client.show(run)
            assert (report.status, report.reason) == ("interrupted", "TS-N003")
            assert len(place.hits) == 2
        place.configure()
        async with place.open() as (daemon, client):
            assert [entry["run"] for entry in daemon.logged("run_goes_on")] == [run]
            report = await client.end(run)
            assert (report.status, report.result) == ("completed", [1024] * 4)
            assert (report.calls.replayed, report.calls.executed) == (2, 2)
            assert [launch.status for launch in report.launches] == ["interrupted", "completed"]
            await assert_standing(place, client, run)
        assert len(place.hits) == 4


async def test_it_is_not_started_again_once_three_launches_in_a_row_were_cut_off() -> None:
    async with premises() as place:
        async with place.open(fault=fault_points.BEFORE_ATTEMPT) as (daemon, client):
            run = await client.submit(FOUR)
            assert await daemon.ended() == -signal.SIGKILL
        for _ in range(2):
            daemon = place.spawn(fault=fault_points.BEFORE_ATTEMPT)
            assert await daemon.ended() == -signal.SIGKILL
        async with place.open() as (daemon, client):
            (entry,) = daemon.logged("run_stays_interrupted")
            assert entry["run"] == run
            assert entry["reason"] == "its last 3 launches were all cut off"
            report = await client.show(run)
            assert [launch.status for launch in report.launches] == ["interrupted"] * 3
            assert place.hits == []
            assert (await client.resume(run)).status == "completed"


async def test_it_goes_on_as_its_latest_launch_was_started() -> None:
    fewer = SAME.replace("SHOTS = 3", "SHOTS = 1").replace("all", "one")
    async with premises() as place:
        async with place.open(fault=f"{fault_points.COMMITTED}:2") as (daemon, client):
            run = await client.submit(SAME, budget_usd=0.02, repeat_policy="deny")
            assert (await client.end(run)).reason == "TS-P002"
            assert (await client.resume(run, fewer)).result == "one"
            # Back to the first script, with other limits and a leave.
            await client.begin(run, SAME, limits=Limits(budget_usd=1), allow_repeats=True)
            assert await daemon.ended() == -signal.SIGKILL
        async with place.open() as (_, client):
            report = await client.end(run)
            assert (report.status, report.revision, report.result) == ("completed", 0, "all")
            assert (report.calls.replayed, report.calls.executed) == (2, 1)
            assert (await client.http.get(f"/v1/runs/{run}/source")).json()["source"] == SAME
        assert len(place.hits) == 3


async def test_a_stop_lets_calls_in_flight_commit_and_the_next_start_goes_on() -> None:
    async with premises() as place:
        await place.take_calls()
        async with place.open() as (daemon, client):
            run = await client.submit(SIDE_BY_SIDE, concurrency=2)
            held = await place.desk.reached(2)
            async with client.watch(run) as stream:
                assert (await anext(stream)).kind == "snapshot"
                daemon.terminate()
                await daemon.says("daemon_stopping")
                with pytest.raises(RefusedError) as refused:
                    await client.submit(FOUR)
                assert (refused.value.status, refused.value.code) == (503, "TS-N006")
                for call in held:
                    call.answer()
                seen = [line async for line in stream]
            assert (seen[-1].kind, seen[-1].text) == ("ended", "interrupted")
            assert await daemon.ended() == 0
        assert len(place.hits) == 2

        place.desk.open()
        async with place.open() as (daemon, client):
            assert daemon.logged("run_goes_on")
            report = await client.end(run)
            assert (report.status, report.calls.replayed, report.calls.executed) == ("completed", 2, 2)
            assert report.launches[0].reason == "TS-N006"
            assert [line["run"] for line in (await client.http.get("/v1/runs")).json()] == [run]
            await assert_standing(place, client, run)
        assert len(place.hits) == 4


async def test_calls_that_do_not_settle_within_the_drain_time_are_unresolved() -> None:
    async with premises() as place:
        await place.take_calls(daemon={"drain": 0.2})
        async with place.open() as (daemon, client):
            run = await client.submit(SIDE_BY_SIDE, concurrency=3)
            held = await place.desk.reached(3)
            async with client.watch(run) as stream:
                held[0].answer()
                await place.desk.reached(4)
                daemon.terminate()
                assert [line.text async for line in stream if line.kind == "ended"] == ["interrupted"]
            assert await daemon.ended() == 0
        assert [entry["level"] for entry in daemon.events] == ["info"] * 3
        place.desk.open()
        async with place.open() as (_, client):
            report = await client.show(run)
            assert (report.status, len(report.unresolved)) == ("interrupted", 3)
            with pytest.raises(RefusedError, match="TS-A001"):
                await client.resume(run)
            for attempt in report.unresolved:
                await client.reconcile(run, attempt.attempt, abandon=True)
            assert (await client.resume(run)).status == "completed"
            await assert_standing(place, client, run)
        assert len(place.hits) == 7
