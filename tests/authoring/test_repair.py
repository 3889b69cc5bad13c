"""Models of given habits in the repair loop: bounded, judged, paid for, and never a duplicate (contract.md, section 9)."""

import pytest

from authoring_support import BOOK, GOOD, RESTRUCTURED, SHOTS, studio
from tallystick.contract.errors import PolicyDeniedError, UsageError

HABITS = [
    ("fixes-at-once", ["accepted"], ""),
    ("restructures-first", ["rejected", "accepted"], "removed orchestrate.still/#1"),
    ("never-learns", ["rejected"] * 3, "removed orchestrate.still/#1"),
    ("edits-the-literal", ["rejected"] * 3, "call_changed orchestrate.still/#1"),
    ("truncates", ["no_script"] * 3, "cut off"),
    ("talks", ["no_script"] * 3, "no module"),
    ("answers-nothing", ["no_script"] * 3, "empty"),
    ("floods", ["no_script"] * 3, "more than any script"),
    ("writes-javascript", ["no_script"] * 3, "a block of javascript"),
]


@pytest.mark.parametrize(("habit", "states", "why"), HABITS, ids=[habit for habit, _, _ in HABITS])
async def test_a_habit_is_bounded_and_pays_for_nothing_twice(habit: str, states: list[str], why: str) -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave(habit)
        report = await place.repair(run)
        assert [one.state for one in report.candidates] == states
        assert why in report.candidates[0].text
        assert place.upstream.count("chat") == len(states)
        assert round(report.spend.models_usd * 1e6) == place.upstream.bill > 0
        assert len(place.provider.hits) == 5, "a repair makes no call of the script"
        if report.source is None:
            assert report.error is not None
            assert (report.state, report.error.code) == ("given_up", "TS-M001")
            assert (await place.host.service.report(run)).status == "failed"
            return
        ended = await place.resume(run, report.source)
        assert (ended.status, ended.calls.replayed, ended.calls.executed) == ("completed", 4, 1)
        assert round(ended.spend.usd * 1e6) == 5 * 1_000 + place.upstream.bill
        assert place.duplicates() == []


async def test_the_model_is_told_what_is_committed_and_what_it_reads() -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave("fixes-at-once")
        await place.repair(run)
        (prompt,) = place.prompts
        assert "orchestrate.still/#1, line 9: image.generate, 3 committed" in prompt
        assert 'reads SIZE, line 1: SIZE = "1024x1024"' in prompt
        assert "invalid_request: the prompt is not allowed" in prompt
        assert "failed call: orchestrate.still/#1 [3] 0 image.generate" in prompt


async def test_the_second_prompt_holds_the_counterexample_to_the_first_answer() -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave("restructures-first")
        await place.repair(run)
        first, second = place.prompts
        assert "FINDINGS" not in first
        assert "removed orchestrate.still/#1" in second
        assert "an equal call of yours stands at draw/#1" in second
        assert RESTRUCTURED.strip() in second


async def test_fewer_calls_than_before_are_not_accepted() -> None:
    shorter = SHOTS.replace(
        '    return {"stills": stills}\n', '    await ctx.run("text.generate", {"prompt": "x"})\n    return {}\n'
    )
    async with studio() as place:
        run = await place.failed(shorter)
        place.say(f"```python\n{GOOD}```", f"```python\n{shorter}```")
        report = await place.repair(run)
        assert [one.state for one in report.candidates] == ["rejected", "accepted"]
        assert report.candidates[0].text == "2 call expressions of 3"
        assert "calls are missing" in place.prompts[1]


async def test_a_retired_call_may_be_left_out() -> None:
    without = GOOD.replace(
        '    plan = await ctx.run("storyboard.plan", {"brief": "mugs", "shots": 4})\n', "    plan = args\n"
    )
    async with studio() as place:
        run = await place.failed(args={"shots": [{"id": "s1", "prompt": "a mug"}]})
        place.say(f"```python\n{without}```")
        assert (await place.repair(run)).state == "given_up"
        from tallystick.engine.messages import RetireRequest

        await place.host.operator.retire(run, RetireRequest("orchestrate/#1", "me", "not wanted"))
        assert (await place.repair(run)).state == "accepted"


async def test_every_candidate_is_kept_with_its_verdict_its_tokens_and_its_cost() -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave("restructures-first")
        await place.repair(run)
        lines = (await place.host.service.report(run)).candidates
        assert [(one.candidate, one.state, one.revision, one.model) for one in lines] == [
            (1, "rejected", 0, "habitual-1"),
            (2, "accepted", 0, "habitual-1"),
        ]
        assert all(one.tokens and one.cost_usd and one.digest for one in lines)
        kept = await place.host.service.authoring.candidates(run)
        assert [one.source for one in kept] == [RESTRUCTURED, GOOD]
        assert kept[0].counterexamples[0].moved_to == "draw/#1"
        assert kept[1].usage["total_tokens"] == kept[1].tokens
        again = await place.host.service.authoring.report(run, 2)
        assert (again.source, again.base, again.state) == (GOOD, SHOTS, "accepted")


async def test_a_repair_has_the_run_to_itself() -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave("fixes-at-once")
        gate = place.upstream.hold("chat")
        from tallystick.engine.authoring.messages import RepairRequest

        await place.host.service.authoring.repair(run, RepairRequest())
        await gate.reached()
        assert (await place.host.service.report(run)).phase == "writing"
        with pytest.raises(PolicyDeniedError, match="another repair has it"):
            await place.resume(run, GOOD)
        gate.release()
        assert (await place.written(run)).state == "accepted"


async def test_a_cancelled_repair_asks_no_further() -> None:
    async with studio() as place:
        run = await place.failed()
        place.behave("never-learns")
        gate = place.upstream.hold("chat")
        from tallystick.engine.authoring.messages import RepairRequest

        await place.host.service.authoring.repair(run, RepairRequest())
        await gate.reached()
        await place.host.service.cancel(run, "its user")
        gate.release()
        report = await place.written(run)
        assert len(report.candidates) == 1
        assert report.error is not None
        assert "cancelled by its user" in report.error.message


async def test_what_is_not_broken_is_repaired_only_for_a_wish() -> None:
    async with studio() as place:
        run = (await place.run(SHOTS)).run
        place.behave("fixes-at-once")
        with pytest.raises(UsageError, match="has completed"):
            await place.repair(run)
        assert (await place.repair(run, wish="a table in the last one")).state == "accepted"
        assert "a table in the last one" in place.prompts[0]


async def test_a_script_of_a_stranger_is_what_the_book_says() -> None:
    assert BOOK.find("something else").good == "something else"
