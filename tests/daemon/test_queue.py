"""A limit on live sandboxes: further runs wait their turn, in the order of asking, and may leave the line."""

from daemon_support import premises

ONE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": args})
    return image["width"]
"""


async def test_with_one_place_five_runs_take_turns_and_a_cancelled_one_never_starts() -> None:
    async with premises() as place:
        await place.take_calls(daemon={"max_live": 1})
        async with place.open() as (daemon, client):
            first, second, third, fourth, fifth = [await client.submit(ONE, f"run {number}") for number in range(1, 6)]
            await place.desk.reached(1)
            status = await client.status()
            assert (status.live, status.queued) == (5, 4)
            assert len(daemon.children()) == 1
            assert [(await client.show(run)).phase for run in (first, second)] == ["running", "queued"]

            async with client.watch(fifth) as stream:
                line = await anext(stream)
                assert (line.kind, line.text) == ("snapshot", "queued")
                await client.cancel(third)
                report = await client.end(third)
                assert (report.status, report.reason) == ("cancelled", "TS-R009")
                assert await client.attempts(third) == []

                for turn, run in enumerate((first, second, fourth, fifth), 1):
                    held = await place.desk.reached(turn)
                    assert [call.hit.payload["prompt"] for call in held[turn - 1 :]] == [
                        f"run {[first, second, third, fourth, fifth].index(run) + 1}"
                    ]
                    held[-1].answer()
                    assert (await client.end(run)).status == "completed"
                kinds = [line.kind async for line in stream]
            assert kinds == ["launch", "started", "committed", "ended"]
            status = await client.status()
            assert (status.live, status.queued, status.runs) == (0, 0, 5)

            # Having left the line is not the end of it.
            place.desk.open()
            assert (await client.resume(third)).status == "completed"
        assert len(place.hits) == 5
