"""The live stream of a run: from a snapshot to its end, for whoever reads it, and whoever does not."""

import socket

from daemon_support import premises

WIDE = """
async def orchestrate(ctx, args):
    async def line(number):
        await ctx.run("text.generate", {"prompt": "a line of text, and not a short one " * 8, "max_tokens": number + 1})

    await ctx.parallel([line(number) for number in range(150)])
    await ctx.parallel([line(number) for number in range(150)])
"""
TWO = """
async def orchestrate(ctx, args):
    await ctx.run("image.generate", {"prompt": "one"})
    await ctx.run("image.generate", {"prompt": "two"})
"""


async def test_a_stream_begins_with_a_snapshot_and_ends_with_the_end() -> None:
    async with premises() as place:
        await place.take_calls()
        async with place.open() as (_, client):
            run = await client.submit(TWO)
            await place.desk.reached(1)
            async with client.watch(run) as first, client.watch(run) as second:
                for stream in (first, second):
                    line = await anext(stream)
                    assert (line.kind, line.text, line.in_flight) == ("snapshot", "running", 1)
                place.desk.open()
                seen, same = [line async for line in first], [line async for line in second]
            assert seen == same
            assert [line.kind for line in seen] == ["committed", "started", "committed", "ended"]
            assert seen[0].identity is not None
            assert (seen[0].identity.site, seen[0].capability) == ("orchestrate/#1", "image.generate")
            assert (seen[-1].text, seen[-1].calls.executed, seen[-1].in_flight) == ("completed", 2, 0)
            assert [line.at for line in seen] == sorted(line.at for line in seen)

            over = await client.lines(run)
            assert [(line.kind, line.text) for line in over] == [("snapshot", ""), ("ended", "completed")]
            assert over[-1].calls.executed == 2


async def test_who_does_not_read_or_goes_away_holds_nothing_up() -> None:
    async with premises() as place:
        async with place.open() as (daemon, client):
            run = await client.submit(WIDE, concurrency=4)
            with socket.socket(socket.AF_UNIX) as deaf:
                deaf.connect(str(place.socket))
                deaf.sendall(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: tally\r\n\r\n".encode())
                async with client.watch(run) as hasty:
                    assert (await anext(hasty)).kind == "snapshot"
                lines = await client.lines(run)
                assert (lines[-1].kind, lines[-1].text) == ("ended", "completed")
                assert (await client.show(run)).calls.executed == 300
                await daemon.stop()
        assert all("Traceback" not in line for line in daemon.log if "timeout graceful shutdown" not in line)
