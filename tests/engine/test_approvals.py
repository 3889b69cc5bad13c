"""Calls that a person must approve of: held, shown as they are, made once, and never another one (casebook 36)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import PolicyDeniedError, UsageError
from tallystick.contract.events import ApprovalAsked, ApprovalDecided
from tallystick.contract.identity import Identity
from tallystick.engine.messages import PlanRequest, ResumeRequest, RunReport
from tallystick.engine.money_messages import ApprovalRequest, WaitingCall
from tallystick.providers.protocol import Refused

SIX = """
async def orchestrate(ctx, args):
    async def shot(number):
        line = await ctx.run("text.generate", {"prompt": f"line <{number}>"})
        if number % 2:
            return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})
        return await ctx.run("text.generate", {"prompt": f"more <{number}>"})

    done = await ctx.parallel([shot(number) for number in range(6)])
    return len(done)
"""
ONE = """
async def orchestrate(ctx, args):
    prompt = "a lighthouse"
    picture = await ctx.run("image.generate", {"prompt": prompt})
    return picture["width"]
"""
RACE = """
async def orchestrate(ctx, args):
    async def picture():
        return await ctx.run("image.generate", {"prompt": "slow"})

    async def text():
        return await ctx.run("text.generate", {"prompt": "quick"})

    first = await ctx.race([picture(), text()])
    return first["text"]
"""


@asynccontextmanager
async def guarded(witness: Witness | None = None, approval: Any = True, **image: Any) -> AsyncIterator[House]:
    policies = {"image.generate": {"approval": approval, **image}}
    async with witnessed(witness, policies=policies) as (engine, _):
        yield engine


async def decide(engine: House, run: str, call: WaitingCall, **changes: Any) -> WaitingCall:
    fields = {"identity": call.identity, "digest": call.digest, "who": "ada", **changes}
    return await engine.host.approver.decide(run, ApprovalRequest(**fields))


async def approve_all(engine: House, report: RunReport) -> RunReport:
    for call in report.waiting:
        await decide(engine, report.run, call)
    return await engine.resume(report.run)


async def test_a_run_waits_with_all_its_calls_at_once_after_their_siblings_have_settled() -> None:
    async with guarded() as engine:
        report = await engine.run(SIX)
        assert (report.status, report.reason, report.exit_code) == ("waiting", "TS-P004", 6)
        assert report.calls.executed == 9, "six lines, and the three branches that need nobody went on to their end"
        assert [call.payload["prompt"] for call in report.waiting] == ["shot <1>", "shot <3>", "shot <5>"]
        assert engine.provider.count("image.generate") == 0
        assert {attempt.capability for attempt in await engine.attempts(report.run)} == {"text.generate"}
        done = await approve_all(engine, report)
        assert (done.status, done.result, done.waiting) == ("completed", 6, ())
        assert (done.calls.replayed, done.calls.executed, engine.provider.count("image.generate")) == (9, 3, 3)
        await assert_standing(engine, report.run)


async def test_what_is_approved_is_made_and_the_rest_goes_on_waiting() -> None:
    async with guarded() as engine:
        first = await engine.run(SIX)
        await decide(engine, first.run, first.waiting[1])
        second = await engine.resume(first.run)
        assert second.status == "waiting"
        assert [call.payload["prompt"] for call in second.waiting] == ["shot <1>", "shot <5>"]
        assert engine.provider.count("image.generate") == 1
        await assert_standing(engine, first.run)


async def test_a_resume_without_an_approval_waits_again_and_sends_nothing() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        again = await engine.resume(first.run)
        assert (again.status, again.reason, engine.provider.count()) == ("waiting", "TS-P004", 0)
        assert again.waiting == first.waiting


async def test_an_approval_does_not_fit_a_changed_payload() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        await decide(engine, first.run, first.waiting[0])
        other = await engine.resume(first.run, ONE.replace("a lighthouse", "a harbour"))
        assert (other.status, engine.provider.count()) == ("waiting", 0)
        assert other.waiting[0].payload == {"prompt": "a harbour"}
        assert other.waiting[0].decision is None
        with pytest.raises(UsageError) as refused:
            await decide(engine, first.run, first.waiting[0])
        assert (refused.value.code, "another payload" in refused.value.message) == ("TS-U005", True)


async def test_an_approval_holds_for_the_same_call_of_another_revision() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        await decide(engine, first.run, first.waiting[0])
        other = await engine.resume(first.run, ONE.replace("return picture", "print('done')\n    return picture"))
        assert (other.status, other.revision, engine.provider.count()) == ("completed", 1, 1)
        await assert_standing(engine, first.run)


async def test_an_approval_is_used_up_by_the_attempt_that_it_permits() -> None:
    witness = Witness()
    witness.broken["lighthouse"] = Refused(kind="invalid_request", text="no")
    async with guarded(witness) as engine:
        failed = await approve_all(engine, await engine.run(ONE))
        assert (failed.status, witness.count()) == ("failed", 1)
        witness.calm()
        again = await engine.resume(failed.run)
        assert (again.status, witness.count()) == ("waiting", 1), "a second execution is asked for anew"
        assert (await approve_all(engine, again)).status == "completed"


async def test_tries_of_one_call_share_its_approval() -> None:
    witness = Witness()
    witness.fail("image.generate", 1, "unavailable")
    async with guarded(witness, retries=1, retry_pause=0.001) as engine:
        report = await approve_all(engine, await engine.run(ONE))
        assert (report.status, witness.count()) == ("completed", 2)


async def test_a_denied_call_is_never_made_until_somebody_approves_after_all() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        denied = await decide(engine, first.run, first.waiting[0], approve=False, why="too dear")
        assert (denied.decision, denied.who, denied.why) == ("denied", "ada", "too dear")
        report = await engine.host.service.report(first.run)
        assert (report.status, report.reason) == ("stopped", "TS-P009")
        assert (await engine.host.service.report(first.run)).waiting[0].decision == "denied"
        stopped = await engine.resume(first.run)
        assert (stopped.status, stopped.reason, engine.provider.count()) == ("stopped", "TS-P009", 0)
        assert stopped.error is not None
        assert "too dear" in stopped.error.message


async def test_a_denial_can_be_taken_back_while_the_run_waits() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        await decide(engine, first.run, first.waiting[0], approve=False)
        await decide(engine, first.run, first.waiting[0])
        assert (await engine.host.service.report(first.run)).status == "waiting"
        assert (await engine.resume(first.run)).status == "completed"


async def test_the_same_decision_again_changes_nothing() -> None:
    witness = Witness()
    async with guarded(witness) as engine:
        first = await engine.run(ONE)
        once = await decide(engine, first.run, first.waiting[0])
        events = len(witness.disk.events)
        assert await decide(engine, first.run, first.waiting[0], who="bob") == once
        assert len(witness.disk.events) == events


async def test_questions_and_answers_are_events_with_who_and_the_whole_payload() -> None:
    witness = Witness()
    async with guarded(witness) as engine:
        first = await engine.run(ONE)
        await decide(engine, first.run, first.waiting[0], why="the cover")
        asked, decided = (event for event in witness.disk.events if isinstance(event, ApprovalAsked | ApprovalDecided))
        assert isinstance(asked, ApprovalAsked)
        assert isinstance(decided, ApprovalDecided)
        assert (asked.payload, asked.reserved) == ({"prompt": "a lighthouse"}, 20_000)
        assert (decided.digest, decided.who, decided.why) == (asked.digest, "ada", "the cover")


async def test_what_does_not_wait_cannot_be_approved() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        with pytest.raises(UsageError, match="does not wait"):
            await decide(engine, first.run, first.waiting[0], identity=Identity("orchestrate/#2", (), 0))
        done = await approve_all(engine, first)
        with pytest.raises(UsageError, match="does not wait"):
            await decide(engine, done.run, first.waiting[0])


async def test_a_live_run_takes_no_approval() -> None:
    async with guarded() as engine:
        first = await engine.run(ONE)
        gate = engine.provider.hold()
        await decide(engine, first.run, first.waiting[0])
        await engine.host.service.resume(first.run, ResumeRequest())
        await gate.reached()
        with pytest.raises(PolicyDeniedError):
            await decide(engine, first.run, first.waiting[0])
        gate.release()
        await engine.end(first.run)


async def test_a_branch_that_lost_its_race_waits_for_nobody() -> None:
    async with guarded() as engine:
        report = await engine.run(RACE)
        assert (report.status, report.waiting) == ("completed", ())
        assert engine.provider.count("image.generate") == 0


@pytest.mark.parametrize(
    ("approval", "status"),
    [(False, "completed"), (True, "waiting"), ("always", "waiting"), (0.02, "waiting"), (0.021, "completed")],
)
async def test_a_threshold_is_the_price_from_which_on_a_call_is_asked_for(approval: Any, status: str) -> None:
    async with guarded(approval=approval) as engine:
        assert (await engine.run(ONE)).status == status


async def test_a_threshold_of_one_dollar_is_not_taken_for_always() -> None:
    async with guarded(approval=1.0) as engine:
        assert (await engine.run(ONE)).status == "completed"


async def test_a_plan_names_the_calls_that_will_wait() -> None:
    async with guarded() as engine:
        report = await engine.run(SIX)
        plan = await engine.host.service.plan(report.run, PlanRequest())
        assert [stop.code for stop in plan.stops] == ["TS-P004"] * 3
        assert (plan.replay, plan.new) == (9, ())


async def test_explain_says_what_a_call_waits_for() -> None:
    async with guarded() as engine:
        report = await engine.run(ONE)
        identity = report.waiting[0].identity
        told = await engine.host.inquiry.explain(report.run, identity)
        assert (told.state, len(told.lines)) == ("waiting", 1)
        assert "tally approve" in told.lines[0]
        await decide(engine, report.run, report.waiting[0], approve=False, why="too dear")
        assert "ada has denied it: too dear" in (await engine.host.inquiry.explain(report.run, identity)).lines[0]
