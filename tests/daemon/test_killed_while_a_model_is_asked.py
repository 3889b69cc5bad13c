"""A daemon that is killed while a model writes: the call may have been billed, so it counts, and nothing is lost."""

from daemon_support import premises
from tallystick.engine.messages import RunReport

SCRIPT = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'


async def test_a_model_call_that_was_cut_off_keeps_its_reservation() -> None:
    async with premises() as place:
        await place.take_calls(daemon={"auto_resume": False})
        path = place.state / "config.toml"
        path.write_text(path.read_text() + '\n[authoring]\nprovider = "desk"\nestimate = 0.25\n')
        async with place.open() as (daemon, client):
            response = await client.http.post(
                "/v1/author", json={"request": "write something", "limits": {"grants": ["text.generate"]}}
            )
            run = response.json()["run"]
            await place.desk.reached(1)
            await daemon.kill()
        async with place.open() as (_, client):
            report: RunReport = await client.show(run)
            assert [one.state for one in report.candidates] == ["unknown"]
            assert (report.status, report.spend.reserved_usd) == ("failed", 0.25)
            place.desk.open()
            started = await client.begin(run, SCRIPT)
            assert (started.run, (await client.end(run)).spend.reserved_usd) == (run, 0.25)
