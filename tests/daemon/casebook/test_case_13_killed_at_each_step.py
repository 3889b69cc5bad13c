"""Casebook 13: the daemon is killed at each step of one paid call. What happened is never guessed, and never repeated.

(a) before the attempt is durable, (b) attempt durable, nothing sent, (c) sent, no answer, (d) answer read, not
committed, (e) committed, not delivered. (c) is a kill while the desk holds the call, the others are fault points.
"""

import pytest

from daemon_support import Client, Daemon, Premises, RefusedError, assert_standing, premises
from tallystick.engine import fault_points
from tallystick.engine.messages import AttemptReport, RunReport

IMAGE = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a lighthouse"})
    return image["width"]
"""
TEXT = """
async def orchestrate(ctx, args):
    return (await ctx.run("text.generate", {"prompt": "a lighthouse"}))["text"]
"""
SENT = "sent"
LOST = [(fault_points.ATTEMPT_DURABLE, 0), (SENT, 1), (fault_points.ANSWERED, 1)]


async def start(place: Premises, step: str) -> Daemon:
    """Start a daemon that will die at this step of its first call."""
    if step != SENT:
        place.desk.open()
    return await place.start(fault="" if step == SENT else step)


async def dies(place: Premises, daemon: Daemon, hits: int) -> None:
    """See it die there, with so many calls made in all."""
    if daemon.process.returncode is None and not place.desk.is_open:
        await place.desk.reached(hits)
        daemon.process.kill()
    assert await daemon.ended() == -9
    assert len(place.hits) == hits


async def killed_in(place: Premises, step: str, source: str, hits: int) -> str:
    """Run a script of one call on a daemon that dies at this step of it; return the run."""
    await place.take_calls()
    daemon = await start(place, step)
    async with daemon.client() as client:
        run = await client.submit(source)
        await dies(place, daemon, hits)
    return run


async def test_a_nothing_was_written_so_it_runs_once() -> None:
    async with premises() as place:
        run = await killed_in(place, fault_points.BEFORE_ATTEMPT, IMAGE, 0)
        async with place.open() as (_, client):
            report = await client.end(run)
            assert (report.status, report.launch, report.calls.executed) == ("completed", 2, 1)
            assert [attempt.state for attempt in await assert_standing(place, client, run)] == ["committed"]
        assert len(place.hits) == 1


async def test_e_what_is_committed_replays() -> None:
    async with premises() as place:
        run = await killed_in(place, fault_points.COMMITTED, IMAGE, 1)
        async with place.open() as (_, client):
            report = await client.end(run)
            assert (report.status, report.launch) == ("completed", 2)
            assert (report.calls.executed, report.calls.replayed) == (0, 1)
            await assert_standing(place, client, run)
        assert len(place.hits) == 1


@pytest.mark.parametrize(("step", "paid"), LOST)
async def test_bcd_nobody_knows_so_somebody_decides(step: str, paid: int) -> None:
    async with premises() as place:
        run = await killed_in(place, step, IMAGE, paid)

        # Abandoned: one more execution, and that one is lost at the same step.
        daemon = await start(place, step)
        async with daemon.client() as client:
            first = await only_unresolved(client, run)
            settled = await client.reconcile(run, first.attempt, abandon=True, why="not in the provider's list")
            assert settled.state == "abandoned"
            assert len(place.hits) == paid
            await client.begin(run)
            await dies(place, daemon, 2 * paid)

        # The result is known: it replays, and nothing is sent.
        async with place.open() as (_, client):
            second = await only_unresolved(client, run)
            assert second.attempt != first.attempt
            assert second.effect_key != first.effect_key, "an execution that was permitted anew needs a key of its own"
            known = {"images": [artifact()], "width": 640, "height": 480}
            settled = await client.reconcile(run, second.attempt, result=known, cost_usd=0.02, why="found it")
            assert settled.state == "committed"
            report = await client.resume(run)
            assert (report.status, report.result) == ("completed", 640)
            assert (report.calls.executed, report.calls.replayed) == (0, 1)
            states = [attempt.state for attempt in await assert_standing(place, client, run)]
            assert states == ["abandoned", "committed"]
        assert len(place.hits) == 2 * paid
        assert [hit.key for hit in place.hits] == [first.effect_key, second.effect_key][: 2 * paid]


@pytest.mark.parametrize(("step", "paid"), LOST[:2])
async def test_bc_a_read_only_call_runs_again_by_itself_and_the_report_says_so(step: str, paid: int) -> None:
    async with premises() as place:
        run = await killed_in(place, step, TEXT, paid)
        place.desk.open()
        async with place.open() as (_, client):
            report = await client.end(run)
            assert (report.status, report.unresolved) == ("completed", ())
            assert len(place.hits) == paid + 1
            first, second = await assert_standing(place, client, run)
            assert (first.state, second.state) == ("unknown", "committed")
            assert says_so(report, first)


async def only_unresolved(client: Client, run: str) -> AttemptReport:
    """See that the run stays interrupted and that its resume is refused, naming the one attempt; return that."""
    report = await client.show(run)
    assert report.status == "interrupted"
    (attempt,) = report.unresolved
    assert attempt.payload == {"prompt": "a lighthouse"}
    assert attempt.started > 0
    assert attempt.effect_key
    with pytest.raises(RefusedError) as refused:
        await client.resume(run)
    assert refused.value.code == "TS-A001"
    assert str(attempt.identity) in refused.value.message
    return attempt


def artifact() -> dict[str, str]:
    return {"$base64": "aGFuZA==", "media_type": "image/png"}


def says_so(report: RunReport, attempt: AttemptReport) -> bool:
    return any(str(attempt.identity) in line and f"attempt {attempt.attempt}" in line for line in report.warnings)
