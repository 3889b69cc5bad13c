"""Scripts that a model writes: within the envelope, as a draft that somebody starts (contract.md, section 9)."""

import pytest

from authoring_support import SHOTS, studio
from tallystick.contract.errors import UsageError
from tallystick.engine.authoring.choices import ModelChoice
from tallystick.engine.messages import Limits, ResumeRequest

FENCED = f"```python\n{SHOTS}```"


async def test_a_script_is_written_and_starts_when_it_is_resumed() -> None:
    async with studio() as place:
        place.say(FENCED)
        report = await place.author("Four stills of a mug", args={"brief": "a mug"})
        assert (report.state, report.source, report.purpose) == ("accepted", SHOTS, "author")
        draft = await place.host.service.report(report.run)
        assert (draft.status, draft.reason, draft.exit_code, draft.name) == ("draft", None, 0, "Four stills of a mug")
        assert place.provider.hits == []
        assert "Four stills of a mug" in place.prompts[0]
        ended = await place.resume(report.run)
        assert (ended.status, ended.calls.executed, ended.revision) == ("completed", 5, 0)
        assert (await place.history(report.run)).revision.args == {"brief": "a mug"}


async def test_the_checkers_findings_come_back_until_the_script_passes() -> None:
    async with studio() as place:
        place.say(FENCED.replace("[:4]", ""), FENCED.replace('"image.generate"', '"image.draw"'), FENCED)
        report = await place.author("Four stills")
        assert [(one.state, one.text) for one in report.candidates] == [
            ("rejected", "R05"),
            ("rejected", "R11"),
            ("accepted", ""),
        ]
        assert "R05" in place.prompts[1]
        assert "there is no capability 'image.draw'" in place.prompts[2]


async def test_a_capability_beyond_the_grants_is_not_written_into_it() -> None:
    async with studio() as place:
        place.say(FENCED)
        limits = Limits(grants=("text.generate",))
        from tallystick.engine.authoring.messages import AuthorRequest

        started = await place.host.service.authoring.author(AuthorRequest("Four stills", limits=limits, attempts=1))
        report = await place.written(started.run)
        assert [one.text for one in report.candidates] == ["R11"]


async def test_a_run_without_a_script_says_so_and_takes_one_by_hand() -> None:
    async with studio() as place:
        place.behave("talks")
        report = await place.author("Four stills", attempts=2)
        assert len(report.candidates) == 2
        failed = await place.host.service.report(report.run)
        assert (failed.status, failed.reason, failed.exit_code) == ("failed", "TS-M001", 3)
        with pytest.raises(UsageError, match="has no script"):
            await place.resume(report.run)
        with pytest.raises(UsageError, match="no script to repair"):
            await place.repair(report.run)
        assert (await place.resume(report.run, SHOTS)).status == "completed"


async def test_a_draft_is_planned_before_it_starts() -> None:
    from tallystick.engine.messages import PlanRequest

    async with studio() as place:
        place.say(FENCED)
        report = await place.author("Four stills")
        plan = await place.host.service.plan(report.run, PlanRequest())
        assert (plan.state, plan.replay, [call.capability for call in plan.new]) == ("blocked", 0, ["storyboard.plan"])


async def test_a_draft_that_exists_is_what_the_model_begins_with() -> None:
    async with studio() as place:
        place.say(FENCED)
        await place.author("Correct it", draft=SHOTS.replace("[:4]", ""))
        assert "<<SCRIPT-" in place.prompts[0]


async def test_what_is_wrong_with_a_request_is_said_before_anybody_is_asked() -> None:
    async with studio() as place:
        for request, more in ((" ", {}), ("x" * 9_000, {}), ("x", {"args": {"a": float("nan")}}), ("x", {"seed": -1})):
            with pytest.raises(UsageError):
                await place.author(request, **more)
        assert place.upstream.hits == []


async def test_a_model_that_cannot_be_reached_ends_the_writing() -> None:
    async with studio() as place:
        report = await place.author("x", model=ModelChoice("m", "http://127.0.0.1:9/v1"))
        assert report.error is not None
        assert (report.error.code, len(report.candidates)) == ("TS-M002", 1)
        assert report.candidates[0].cost_usd == 0.0


async def test_a_draft_is_listed_and_survives_the_daemon() -> None:
    from tallystick.store.memory import MemoryStore

    store = MemoryStore()
    async with studio(store=store) as place:
        place.say(FENCED)
        run = (await place.author("Four stills")).run
    async with studio(store=store) as place:
        report = await place.host.service.report(run)
        assert (report.status, len(report.candidates)) == ("draft", 1)
        row = store.row(run)
        assert row is not None
        assert row.status == "draft"
        await place.host.service.resume(run, ResumeRequest())
        assert (await place.end(run)).status == "completed"
