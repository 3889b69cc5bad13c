"""Retries by policy: the broker's, each an attempt of its own, and no sooner than the provider asks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from engine_stores import RefusingStore
from engine_support import House, passes, still
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.events import AnyEvent, AttemptStarted
from tallystick.contract.runtime_rule import Stop
from tallystick.engine.config import CapabilityPolicy
from tallystick.engine.messages import Progress, ResumeRequest
from tallystick.engine.retries import pause, shown
from tallystick.kernel import ManualClock
from tallystick.providers.protocol import Outcome, Profile, Refused, Unknown, Unusable

ONE = """
async def orchestrate(ctx, args):
    try:
        image = await ctx.run("image.generate", {"prompt": "a mug"})
    except CapabilityError as error:
        return [error.kind, error.text]
    return image["width"]
"""
READING = ONE.replace("image.generate", "text.generate").replace('image["width"]', 'image["text"]')
SIX = """
async def orchestrate(ctx, args):
    async def shot(number):
        image = await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        return image["width"]

    return len(await ctx.parallel([shot(number) for number in range(6)]))
"""
LIMITED = Refused(kind="rate_limited", text="slow down")
THRICE = {"retries": 3}


def limited(seconds: float | None = None) -> Refused:
    return Refused(kind="rate_limited", text="slow down", retry_after=seconds)


async def states(engine: House, run: str) -> list[str]:
    return [attempt.state for attempt in await engine.attempts(run)]


async def told(engine: House, run: str) -> list[Progress]:
    """Return what somebody who begins to watch now is told before anything else happens."""
    lines = engine.host.service.watch(run)
    found = [await anext(lines), await anext(lines)]
    await lines.aclose()
    return found


async def test_a_refused_call_is_tried_again_each_time_as_an_attempt_of_its_own() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy=THRICE) as (engine, witness):
        witness.script("image.generate", 1, LIMITED)
        witness.script("image.generate", 2, Refused(kind="unavailable", text="busy", cost=3))
        run = await engine.submit(ONE)
        counts = []
        for seconds in (0.9, 0.2, 1.8, 0.2):
            await passes(engine, clock, seconds)
            counts.append(witness.count())
        assert counts == [1, 2, 2, 3], "after one second, then after two"
        report = await engine.end(run)
        assert (report.status, report.result) == ("completed", 1024)
        assert (report.calls.executed, report.calls.failed) == (1, 0)
        assert await states(engine, run) == ["failed", "failed", "committed"]
        assert len({hit.key for hit in witness.hits}) == len({hit.seed for hit in witness.hits}) == 1
        await assert_standing(engine, run)


async def test_the_script_gets_the_last_failure_once_the_tries_are_used_up() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"retries": 2}) as (engine, witness):
        for nth in range(1, 9):
            witness.script("image.generate", nth, Refused(kind="rate_limited", text=f"refusal {nth}"))
        run = await engine.submit(ONE)
        for _ in range(3):
            await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.result, witness.count(), report.calls.failed) == (["rate_limited", "refusal 3"], 3, 1)
        await assert_standing(engine, run)


async def test_without_a_policy_nothing_is_tried_again() -> None:
    async with witnessed() as (engine, witness):
        witness.broken["a mug"] = limited(0)
        report = await engine.run(ONE)
        assert (report.result[0], witness.count()) == ("rate_limited", 1)


@pytest.mark.parametrize(
    "outcome",
    [
        Refused(kind="invalid_request", text="no such size"),
        Refused(kind="content_policy", text="not this"),
        Refused(kind="unauthorized", text="no"),
        Unusable(raw={}, text="empty", cost=7),
    ],
    ids=lambda outcome: getattr(outcome, "kind", "unusable"),
)
async def test_what_cannot_work_is_not_tried_again(outcome: Outcome) -> None:
    async with witnessed(policy=THRICE) as (engine, witness):
        witness.broken["a mug"] = outcome
        report = await engine.run(ONE)
        assert (report.status, witness.count()) == ("completed", 1)
        await assert_standing(engine, report.run)


async def test_an_unknown_side_effect_is_not_sent_again_to_a_provider_that_would_carry_it_out_twice() -> None:
    async with witnessed(policy={"retries": 5, "retry_on": ("rate_limited", "unavailable", "unknown")}) as (
        engine,
        witness,
    ):
        witness.broken["a mug"] = Unknown(reason="reset")
        report = await engine.run(ONE)
        assert (report.reason, witness.count(), await states(engine, report.run)) == ("TS-A002", 1, ["unresolved"])
        await assert_standing(engine, report.run)


async def test_an_unknown_reading_is_made_again_where_the_policy_says_so_and_the_report_tells() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"retries": 1, "retry_on": ("unknown",)}) as (engine, witness):
        witness.script("text.generate", 1, Unknown(reason="reset"))
        run = await engine.submit(READING)
        await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.status, report.result, witness.count()) == ("completed", "Stand-in text.", 2)
        assert await states(engine, run) == ["unknown", "committed"]
        assert any("may be billed twice" in warning for warning in report.warnings)
        await assert_standing(engine, run)


async def test_a_fanout_backs_off_together() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy={**THRICE, "concurrency": 2}) as (engine, witness):
        witness.script("image.generate", 1, limited(30))
        run = await engine.submit(SIX)
        await passes(engine, clock, 0)
        assert witness.count() == 2, "two were on their way"
        await passes(engine, clock, 29)
        assert witness.count() == 2
        await passes(engine, clock, 1.1)
        report = await engine.end(run)
        assert (report.result, witness.count()) == (6, 7)
        await assert_standing(engine, run)


async def test_the_wait_is_shown_to_whoever_watches() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy=THRICE) as (engine, witness):
        witness.script("image.generate", 1, limited(90))
        run = await engine.submit(ONE)
        await passes(engine, clock, 10)
        snapshot, line = await told(engine, run)
        assert (snapshot.kind, line.kind, line.capability) == ("snapshot", "retrying", "image.generate")
        assert f"until {shown(clock.now() + 80, clock.now())}, as its provider asks" in line.text
        await passes(engine, clock, 81)
        assert (await engine.end(run)).result == 1024


async def test_a_wait_above_the_cap_fails_the_call_with_its_time_and_sends_no_other() -> None:
    clock = ManualClock()
    script = SIX.replace("range(6)])", "range(6)], tolerate=True)")
    async with witnessed(clock=clock, policy={**THRICE, "concurrency": 1}) as (engine, witness):
        witness.script("image.generate", 1, limited(198_300))
        report = await engine.run(script)
        assert (report.status, report.reason, witness.count()) == ("stopped", "TS-P011", 1)
        assert report.error is not None
        until = shown(clock.now() + 198_300, clock.now())
        assert until in report.error.message
        (attempt,) = await engine.attempts(report.run)
        assert until in attempt.text
        assert (await engine.resume(report.run)).reason == "TS-P011"
        assert witness.count() == 1, "a resume does not hammer"
        await assert_standing(engine, report.run)
        await passes(engine, clock, 198_301)
        assert (await engine.resume(report.run)).reason != "TS-P011"
        assert witness.count() == 7


@pytest.mark.parametrize("seconds", [90, 198_300])
async def test_a_wait_outlives_a_restart(seconds: float) -> None:
    clock, witness = ManualClock(), Witness()
    async with witnessed(witness, clock=clock) as (engine, _):
        witness.script("image.generate", 1, limited(seconds))
        run = (await engine.run(ONE.replace("return [error", "raise error\n        return [error"))).run
    await clock.advance(60)
    async with witnessed(witness, clock=clock) as (engine, _):
        await engine.host.service.resume(run, ResumeRequest())
        if seconds > 120:
            assert (await engine.end(run)).reason == "TS-P011"
            return
        await passes(engine, clock, 25)
        assert witness.count() == 1
        await passes(engine, clock, 6)
        assert (await engine.end(run)).result == 1024
        assert witness.count() == 2
        await assert_standing(engine, run)


async def test_an_operator_may_pay_no_heed_to_what_providers_ask_for() -> None:
    async with witnessed(policy={"retry_after_cap": 0.0}) as (engine, witness):
        witness.script("image.generate", 1, limited(198_300))
        report = await engine.run(ONE.replace("return [error", "raise error\n        return [error"))
        assert (report.status, report.reason) == ("failed", "TS-R002")
        assert (await engine.resume(report.run)).result == 1024
        assert witness.count() == 2


async def test_a_wait_can_be_cancelled_and_the_failure_stands() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy=THRICE) as (engine, witness):
        witness.broken["<2>"] = limited(100)
        run = await engine.submit(SIX)
        await passes(engine, clock, 1)
        await engine.host.service.cancel(run, "tester")
        report = await engine.end(run)
        assert (report.status, witness.count()) == ("cancelled", 6)
        assert sorted(await states(engine, run)) == ["committed"] * 5 + ["failed"]
        await assert_standing(engine, run)


async def test_the_tries_of_a_call_that_a_crash_cut_off_count_as_one() -> None:
    clock, witness = ManualClock(), Witness()
    store = RefusingStore(witness.disk)
    async with witnessed(witness, store=store, clock=clock, policy=THRICE) as (engine, _):
        witness.script("image.generate", 1, LIMITED)
        run = await engine.submit(ONE)
        await still(engine, clock)
        gate = witness.hold()
        await passes(engine, clock, 2)
        store.die()
        gate.release()
    async with witnessed(witness, clock=clock) as (engine, _):
        report = await engine.end(run)
        assert await states(engine, run) == ["failed", "unresolved"]
        assert (report.launches[0].calls.failed, report.calls.unresolved) == (0, 1)


async def test_the_loser_of_a_race_does_not_keep_the_run_waiting() -> None:
    script = """
async def orchestrate(ctx, args):
    async def draw(name):
        image = await ctx.run("image.generate", {"prompt": name})
        return image["width"]

    return await ctx.race([draw("slow"), draw("fast")])
"""
    clock = ManualClock()
    async with witnessed(clock=clock, policy=THRICE) as (engine, witness):
        witness.broken["slow"] = limited(100)
        report = await engine.run(script)
        assert (report.status, report.result, witness.count()) == ("completed", 1024, 2)
        assert sorted(await states(engine, report.run)) == ["committed", "failed"]


async def test_each_try_has_a_reservation_of_its_own() -> None:
    clock = ManualClock()
    async with witnessed(clock=clock, policy=THRICE) as (engine, witness):
        witness.script("image.generate", 1, Refused(kind="rate_limited", text="billed all the same", cost=15_000))
        run = await engine.submit(ONE, limits={"budget_usd": 0.03})
        await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.reason, witness.count(), report.spend.usd) == ("TS-P002", 1, 0.015)
        assert report.spend.reserved_usd == 0
        await assert_standing(engine, run)


async def test_a_failure_that_was_tried_again_and_survived_stays_one() -> None:
    script = ONE.replace("return [error.kind, error.text]", "image = await ctx.run('text.generate', {'prompt': 'x'})")
    script = script.replace('image["width"]', "len(image)")
    clock = ManualClock()
    async with witnessed(clock=clock, policy={"retries": 1}) as (engine, witness):
        witness.broken["a mug"] = limited()
        run = await engine.submit(script)
        await passes(engine, clock, 2)
        first = await engine.end(run)
        assert (first.status, witness.count()) == ("completed", 3)
        witness.calm()
        again = await engine.resume(run)
        assert (again.status, again.calls.replayed, witness.count()) == ("completed", 2, 3)


class Deduping(Witness):
    """Carries each key out once; what it says of a first request, ``first`` says."""

    def __init__(self, first: Outcome, window: float = 3_600.0) -> None:
        super().__init__(profile=Profile(dedupes_keys=window))
        self.script("image.generate", 1, first)


async def test_an_unknown_call_is_sent_again_under_its_key_and_counts_once() -> None:
    clock = ManualClock()
    policy = {"retries": 1, "retry_on": ("unknown",)}
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock, policy=policy) as (engine, witness):
        run = await engine.submit(ONE)
        await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.status, report.result, witness.count()) == ("completed", 1024, 2)
        assert await states(engine, run) == ["resent", "committed"]
        assert len({hit.key for hit in witness.hits}) == 1
        assert (report.spend.usd, report.spend.unpriced, report.spend.reserved_usd) == (0.001, 0, 0)


async def test_a_resume_sends_it_again_within_the_window_and_asks_after_it() -> None:
    clock = ManualClock()
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock) as (engine, witness):
        run = (await engine.run(ONE)).run
        assert await states(engine, run) == ["unresolved"]
        await passes(engine, clock, 3_000)
        report = await engine.resume(run)
        assert (report.status, report.result, await states(engine, run)) == (
            "completed",
            1024,
            ["resent", "committed"],
        )
        assert witness.count() == 2


async def test_a_call_that_is_sent_again_is_no_repeat() -> None:
    async with witnessed(Deduping(Unknown(reason="reset"))) as (engine, witness):
        run = (await engine.run(ONE, limits={"repeat_policy": "deny"})).run
        report = await engine.resume(run)
        assert (report.status, report.warnings, witness.count()) == ("completed", (), 2)


async def test_a_clock_that_was_put_back_opens_no_window() -> None:
    witness = Deduping(Unknown(reason="reset"))
    async with witnessed(witness, clock=ManualClock(2_000_000_000.0)) as (engine, _):
        run = (await engine.run(ONE)).run
    async with witnessed(witness, clock=ManualClock(1_000_000_000.0)) as (engine, _):
        report = await engine.resume(run, proceed=True)
        assert (report.reason, witness.count()) == ("TS-A001", 1)


async def test_a_resume_after_the_window_leaves_it_to_a_person() -> None:
    clock = ManualClock()
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock) as (engine, witness):
        run = (await engine.run(ONE)).run
        await passes(engine, clock, 3_300)
        report = await engine.resume(run, proceed=True)
        assert (report.reason, witness.count(), await states(engine, run)) == ("TS-A001", 1, ["unresolved"])


async def test_what_is_left_open_is_graver_than_what_kept_it_from_being_sent_again() -> None:
    clock, policy = ManualClock(), {"retries": 1, "retry_on": ("unknown",)}
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock, policy=policy) as (engine, witness):
        run = await engine.submit(ONE, limits={"budget_usd": 0.02})
        await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.reason, report.calls.unresolved, witness.count()) == ("TS-A002", 1, 1)


async def test_a_window_that_ends_while_the_call_waits_is_not_used() -> None:
    clock = ManualClock()
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock, policy={"rate": "1/h"}) as (engine, witness):
        run = (await engine.run(ONE)).run
        await clock.advance(3_000)
        await engine.host.service.resume(run, ResumeRequest())
        await passes(engine, clock, 601)
        report = await engine.end(run)
        assert (report.reason, witness.count(), await states(engine, run)) == ("TS-A001", 1, ["unresolved"])


async def test_a_launch_that_is_stopped_before_it_was_sent_again_leaves_it_as_it_was() -> None:
    witness = Deduping(Unknown(reason="reset"))
    store, loop = RefusingStore(witness.disk), asyncio.get_running_loop()
    async with witnessed(witness, store=store) as (engine, _):
        run = (await engine.run(ONE)).run
        stop = Stop("TS-R009", "cancelled", "")

        def stop_it(event: AnyEvent) -> bool:
            if isinstance(event, AttemptStarted):
                loop.call_soon_threadsafe(engine.host.service.launches.cancel, run, stop)
            return False

        store.refuses = stop_it
        assert (await engine.resume(run)).status == "cancelled"
        assert (await states(engine, run), witness.count()) == (["resent", "unresolved"], 1)
        store.heal()
        assert (await engine.resume(run)).result == 1024
        assert (witness.count(), len({hit.key for hit in witness.hits})) == (2, 1)


async def test_the_window_begins_with_the_first_request() -> None:
    clock = ManualClock()
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock) as (engine, witness):
        witness.script("image.generate", 2, Unknown(reason="reset again"))
        run = (await engine.run(ONE)).run
        await clock.advance(3_000)
        assert (await engine.resume(run)).reason == "TS-A002"
        assert await states(engine, run) == ["resent", "unresolved"]
        await clock.advance(300)
        assert (await engine.resume(run, proceed=True)).reason == "TS-A001"
        assert witness.count() == 2


async def test_a_refusal_of_the_second_request_says_nothing_of_the_first() -> None:
    clock = ManualClock()
    async with witnessed(Deduping(Unknown(reason="reset")), clock=clock) as (engine, witness):
        witness.script("image.generate", 2, LIMITED)
        run = (await engine.run(ONE)).run
        report = await engine.resume(run)
        assert (report.reason, await states(engine, run)) == ("TS-A002", ["resent", "unresolved"])
        assert report.spend.unpriced == 1
        assert (await engine.resume(run)).result == 1024
        assert await states(engine, run) == ["resent", "resent", "committed"]
        assert (witness.count(), len({hit.key for hit in witness.hits})) == (3, 1)


@pytest.mark.parametrize(
    ("policy", "tried", "outcome", "expected"),
    [
        ({}, 1, LIMITED, None),
        ({"retries": 2}, 1, LIMITED, 1.0),
        ({"retries": 2}, 2, LIMITED, 2.0),
        ({"retries": 2}, 3, LIMITED, None),
        ({"retries": 20}, 20, LIMITED, 60.0),
        ({"retries": 20, "retry_pause": 300.0}, 9, LIMITED, 300.0),
        ({"retries": 2}, 1, limited(0), 1.0),
        ({"retries": 2}, 1, limited(90), 90.0),
        ({"retries": 2}, 1, limited(121), None),
        ({"retries": 2, "retry_after_cap": 0.0}, 1, limited(121), 1.0),
        ({"retries": 2, "retry_on": ("unavailable",)}, 1, LIMITED, None),
        ({"retries": 2}, 1, Unknown(reason="reset"), None),
        ({"retries": 2, "retry_on": ("unknown",)}, 1, Unknown(reason="reset"), 1.0),
    ],
)
def test_the_pause_before_the_next_try(
    policy: Mapping[str, Any], tried: int, outcome: Outcome, expected: float | None
) -> None:
    assert pause(CapabilityPolicy(provider="x", **policy), tried, outcome) == expected


def test_a_moment_is_shown_with_its_day_where_that_is_not_today() -> None:
    now = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC
    assert shown(now + 60, now) == "15:07:40 UTC"
    assert shown(now + 86_400, now) == "2025-06-16 15:06 UTC"
