"""A call whose outcome nobody knows: held when it may have been paid for, re-run when that is harmless."""

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.attempts import AttemptState
from tallystick.contract.errors import AttemptUnresolvedError, GateStoppedError, UsageError
from tallystick.providers.protocol import Succeeded, Unknown, Unusable

TWO = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a mug"})
    clip = await ctx.run("video.generate", {"prompt": "it turns", "duration_s": 4})
    return [image["width"], clip["duration_s"], clip["video"]["media_type"]]
"""
READING = """
async def orchestrate(ctx, args):
    text = await ctx.run("text.generate", {"prompt": "a line"})
    image = await ctx.run("image.generate", {"prompt": text["text"]})
    return text["text"]
"""
TOLERANT = """
async def orchestrate(ctx, args):
    try:
        text = await ctx.run("text.generate", {"prompt": "a line"})
    except CapabilityError as error:
        return [error.kind, error.text]
    return text["text"]
"""
CATCHES_ALL = """
async def orchestrate(ctx, args):
    try:
        image = await ctx.run("image.generate", {"prompt": "a mug"})
    except Exception:
        pass
    text = await ctx.run("text.generate", {"prompt": "went on"})
    return text["text"]
"""
LOST = Unknown(reason="the connection was reset", job="job-17")
KNOWN = {"video": {"$base64": "AAEC", "media_type": "video/mp4"}, "duration_s": 4}


async def stopped_at_the_clip(engine: House, witness: Witness) -> str:
    witness.broken["it turns"] = LOST
    report = await engine.run(TWO)
    assert (report.status, report.reason, report.exit_code) == ("stopped", "TS-A002", 5)
    assert (report.calls.executed, report.calls.unresolved, report.calls.denied, witness.count()) == (1, 1, 0, 2)
    witness.calm()
    return report.run


async def states(engine: House, run: str) -> list[AttemptState]:
    return [attempt.state for attempt in (await engine.history(run)).attempts.values()]


async def test_a_side_effect_stops_the_run_and_is_named_with_its_handle() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        report = await assert_standing(engine, run)
        (attempt,) = report.unresolved
        assert (str(attempt.identity), attempt.state, attempt.text) == (
            "orchestrate/#2 [] 0",
            "unresolved",
            LOST.reason,
        )
        assert (attempt.job, attempt.effect_key, attempt.cost_usd) == ("job-17", witness.hits[1].key, None)
        assert attempt.reserved_usd == 0.5
        assert report.error is not None
        assert attempt.effect_key in report.error.hint
        assert "reconcile" in report.error.hint


async def test_resume_refuses_up_front_with_the_list_and_starts_nothing() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        events = len(witness.disk.events)
        with pytest.raises(AttemptUnresolvedError, match=r"orchestrate/#2 \[\] 0") as refused:
            await engine.resume(run)
        assert [attempt.attempt for attempt in refused.value.details] == [2]
        assert refused.value.exit_code == 5
        assert (len(witness.disk.events), witness.count()) == (events, 2)
        await assert_standing(engine, run)


async def test_proceed_goes_on_up_to_it_and_stops_there_without_a_call() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        report = await engine.resume(run, proceed=True)
        assert (report.reason, report.calls.replayed, report.calls.unresolved, witness.count()) == ("TS-A001", 1, 1, 2)
        await assert_standing(engine, run)


async def test_a_held_site_may_not_be_changed_moved_or_removed() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        for candidate in (
            TWO.replace('"duration_s": 4', '"duration_s": 5'),
            TWO.replace("    clip =", "    if True:\n        clip ="),
        ):
            with pytest.raises(GateStoppedError) as stopped:
                await engine.resume(run, candidate, proceed=True)
            assert [(one.site, one.kind) for one in stopped.value.details] == [("orchestrate/#2", "unresolved_moved")]
        assert witness.count() == 2


async def test_reconciled_with_a_known_result_it_replays() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        settled = await engine.reconcile(run, 2, result=KNOWN, cost_usd=0.4, why="seen in the console")
        assert (settled.state, settled.decision, settled.cost_usd) == ("committed", "commit", 0.4)
        report = await engine.resume(run)
        assert (report.status, report.result) == ("completed", [1024, 4, "video/mp4"])
        assert (report.calls.replayed, report.calls.executed, witness.count()) == (2, 0, 2)
        assert report.spend.usd == pytest.approx(0.401)
        decided = (await engine.history(run)).attempts[2].decided
        assert decided is not None
        assert (decided.who, decided.why, decided.at > 0) == ("tester", "seen in the console", True)
        await assert_standing(engine, run)


async def test_abandoned_it_is_executed_once_more_under_another_key() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        settled = await engine.reconcile(run, 2, abandon=True, why="it never came")
        assert (settled.state, settled.decision, settled.cost_usd) == ("abandoned", "abandon", 0.5)
        report = await engine.resume(run)
        assert (report.status, report.calls.replayed, report.calls.executed, witness.count()) == ("completed", 1, 1, 3)
        assert report.spend.usd == pytest.approx(0.502)
        assert witness.hits[1].key != witness.hits[2].key
        assert await states(engine, run) == ["committed", "abandoned", "committed"]
        await assert_standing(engine, run)


async def test_the_same_decision_again_changes_nothing_and_another_one_is_refused() -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        first = await engine.reconcile(run, 2, abandon=True, why="gone")
        events = len(witness.disk.events)
        assert await engine.reconcile(run, 2, abandon=True, why="gone, I say") == first
        with pytest.raises(UsageError, match="decided otherwise: abandon by tester") as refused:
            await engine.reconcile(run, 2, result=KNOWN)
        assert refused.value.code == "TS-U004"
        assert len(witness.disk.events) == events


@pytest.mark.parametrize("number", [1, 9])
async def test_only_attempts_that_are_open_to_it_can_be_decided(number: int) -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        with pytest.raises(UsageError, match=f"attempt {number}"):
            await engine.reconcile(run, number, abandon=True)
        assert await states(engine, run) == ["committed", "unresolved"]


@pytest.mark.parametrize(
    "decision",
    [
        {},
        {"abandon": True, "result": KNOWN},
        {"result": {"video": "no artifact", "duration_s": 4}},
        {"result": {"video": {"$base64": "???"}, "duration_s": 4}},
        {"result": KNOWN, "cost_usd": -1.0},
        {"result": KNOWN, "cost_usd": float("nan")},
    ],
)
async def test_a_decision_that_does_not_fit_is_refused_and_changes_nothing(decision: dict[str, object]) -> None:
    async with witnessed() as (engine, witness):
        run = await stopped_at_the_clip(engine, witness)
        events = len(witness.disk.events)
        with pytest.raises(UsageError):
            await engine.reconcile(run, 2, **decision)
        assert len(witness.disk.events) == events
        assert await states(engine, run) == ["committed", "unresolved"]


async def test_a_script_cannot_catch_it_and_go_on() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = LOST
        report = await engine.run(CATCHES_ALL)
        assert (report.reason, witness.count("text.generate")) == ("TS-A002", 0)
        await assert_standing(engine, report.run)


async def test_siblings_in_flight_settle_and_those_that_wait_are_not_sent() -> None:
    script = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    return len(await ctx.parallel([shot(number) for number in range(6)]))
"""
    async with witnessed() as (engine, witness):
        witness.broken["<1>"] = LOST
        gate = witness.hold(containing="<2>")
        run = await engine.submit(script, limits={"concurrency": 3})
        await gate.reached()
        await witness.has_answered(2)
        gate.release()
        report = await engine.end(run)
        assert report.reason == "TS-A002"
        assert (report.calls.executed, report.calls.unresolved, report.calls.denied) == (witness.count() - 1, 1, 0)
        assert witness.count() in (3, 4)  # the slot of branch 0 may have gone to branch 3 before the stop was known
        await assert_standing(engine, run)
        await engine.reconcile(run, report.unresolved[0].attempt, abandon=True)
        witness.calm()
        resumed = await engine.resume(run)
        assert (resumed.status, resumed.result, resumed.calls.replayed) == ("completed", 6, report.calls.executed)
        await assert_standing(engine, run)


async def test_a_read_only_call_is_run_again_and_the_report_says_so() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = LOST
        failed = await engine.run(READING)
        assert (failed.status, failed.reason, failed.calls.failed, failed.unresolved) == ("failed", "TS-R002", 1, ())
        assert await states(engine, failed.run) == ["unknown"]
        witness.calm()
        resumed = await engine.resume(failed.run)
        assert (resumed.status, resumed.calls.executed, witness.count()) == ("completed", 2, 3)
        assert any("runs again" in warning for warning in resumed.warnings)
        await assert_standing(engine, failed.run)


async def test_a_script_may_catch_a_read_only_timeout() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = LOST
        report = await engine.run(TOLERANT)
        assert (report.status, report.result, witness.count()) == ("completed", ["timeout", LOST.reason], 1)
        await assert_standing(engine, report.run)


async def test_an_unusable_answer_replays_as_the_same_error_until_it_is_settled() -> None:
    script = TOLERANT.replace("text.generate", "image.generate").replace('text["text"]', 'text["width"]')
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = Unusable(raw={"half": "a picture"}, text="cut off", cost=900)
        first = await engine.run(script)
        assert (first.result, first.calls.failed, witness.count()) == (["unusable", "cut off"], 1, 1)
        assert first.spend.usd == pytest.approx(0.0009)
        witness.calm()
        for _ in range(2):
            again = await engine.resume(first.run)
            assert (again.status, again.result, again.calls.replayed, witness.count()) == (
                "completed",
                first.result,
                1,
                1,
            )
        await assert_standing(engine, first.run)

        attempt = (await engine.history(first.run)).attempts[1]
        assert attempt.ended is not None
        assert attempt.ended.raw is not None
        assert attempt.ended.raw.inline == {"half": "a picture"}
        await engine.reconcile(first.run, 1, abandon=True, why="draw it again")
        drawn = await engine.resume(first.run)
        assert (drawn.result, drawn.calls.executed, witness.count()) == (1024, 1, 2)
        await assert_standing(engine, first.run)


async def test_a_result_against_the_schema_is_an_unusable_answer_and_not_a_lost_one() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a line"] = Succeeded(result={"images": [], "width": 1, "height": 1}, cost=5)
        report = await engine.run(TOLERANT.replace("text.generate", "image.generate"))
        kind, text = report.result
        assert kind == "unusable"
        assert "images" in text
        assert await states(engine, report.run) == ["unusable"]
        assert report.spend.usd == pytest.approx(0.000005)
        await assert_standing(engine, report.run)
