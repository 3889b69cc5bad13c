"""Model calls cost money like everything else: reserved before, counted after, and never lost in a crash."""

import anyio
import pytest

from authoring_support import GOOD, SHOTS, studio
from tallystick.contract.capability import Envelope
from tallystick.contract.errors import StoreCorruptError
from tallystick.contract.events import CandidateAsked, CandidateJudged, RunCreated, Stored
from tallystick.contract.history import History
from tallystick.engine.authoring.messages import RepairRequest
from tallystick.engine.config import BudgetSettings
from tallystick.store.memory import MemoryStore
from upstream_faults import Fault


async def test_a_model_is_not_asked_beyond_the_budget() -> None:
    async with studio(settings={"estimate": 0.5}) as place:
        run = await place.failed(limits={"budget_usd": 0.3})
        place.behave("fixes-at-once")
        report = await place.repair(run)
        assert report.error is not None
        assert report.error.code == "TS-P002"
        assert "nobody was asked" in report.error.message
        assert (report.candidates, place.upstream.hits) == ((), [])
        assert (await place.repair(run, budget_usd=0.9)).state == "accepted"


async def test_a_budget_of_tokens_holds_for_models_too() -> None:
    async with studio(settings={"max_tokens": 500}) as place:
        run = await place.failed(limits={"budget_tokens": 3_000})
        place.behave("fixes-at-once")
        report = await place.repair(run)
        assert report.error is not None
        assert (report.error.code, place.upstream.hits) == ("TS-P013", [])


async def test_the_cap_of_a_day_holds_for_models_too() -> None:
    async with studio(settings={"estimate": 0.5}, budget=BudgetSettings(cap_usd=0.4)) as place:
        run = await place.failed()
        place.behave("fixes-at-once")
        report = await place.repair(run)
        assert report.error is not None
        assert (report.error.code, place.upstream.hits) == ("TS-P014", [])


async def test_what_models_cost_is_not_there_for_calls() -> None:
    async with studio(settings={"estimate": 0.004}) as place:
        run = await place.failed(limits={"budget_usd": 0.0255})
        place.behave("restructures-first")
        report = await place.repair(run)
        assert report.source is not None
        ended = await place.resume(run, report.source)
        assert (ended.status, ended.reason) == ("stopped", "TS-P002")
        assert place.provider.count("image.generate") == 4, "the fourth picture was not paid for"


async def test_a_model_that_names_no_price_keeps_its_reservation() -> None:
    async with studio(settings={"estimate": 0.25}) as place:
        run = await place.failed()
        place.upstream.script(Fault(lie="usage"), kind="chat")
        place.behave("fixes-at-once")
        await place.repair(run)
        spend = (await place.host.service.report(run)).spend
        assert (spend.reserved_usd, spend.unpriced, spend.models_usd) == (0.25, 1, 0.0)


@pytest.mark.parametrize("drop", ["unanswered", "cut"])
async def test_an_answer_that_is_lost_may_have_been_billed(drop: str) -> None:
    async with studio(settings={"estimate": 0.25}) as place:
        run = await place.failed()
        place.behave("fixes-at-once")
        place.upstream.script(Fault(drop=drop), kind="chat", times=None)  # type: ignore[arg-type]  # one of its literals
        report = await place.repair(run)
        assert report.error is not None
        assert (report.error.code, [one.state for one in report.candidates]) == ("TS-M002", ["unknown"])
        assert report.spend.reserved_usd == 0.25


async def test_a_stop_of_the_daemon_leaves_an_unknown_call_that_counts() -> None:
    store = MemoryStore()
    async with studio(store=store, settings={"estimate": 0.25}) as place:
        run = await place.failed()
        place.behave("fixes-at-once")
        gate = place.upstream.hold("chat")
        await place.host.service.authoring.repair(run, RepairRequest())
        await gate.reached()
    async with studio(store=store, settings={"estimate": 0.25}) as place:
        report = await place.host.service.report(run)
        assert [one.state for one in report.candidates] == ["unknown"]
        assert report.spend.reserved_usd == 0.25
        assert (await place.resume(run, GOOD)).status == "completed"


async def test_a_crash_leaves_an_unknown_call_that_counts() -> None:
    store = MemoryStore()
    async with studio(store=store) as place:
        run = await place.failed()
    asked = CandidateAsked(
        run=run,
        at=1.0,
        candidate=1,
        purpose="repair",
        provider="model",
        model="m",
        prompt=Stored(),
        key="k",
        reserved=9,
    )
    store.append([asked])
    async with studio(store=store) as place:
        before = await place.host.service.report(run)
        assert [one.state for one in before.candidates] == ["unknown"]
        assert round(before.spend.reserved_usd * 1e6) == 9
        ended = await place.resume(run, GOOD)
        assert ended.status == "completed"
        assert [one.state for one in ended.candidates] == ["unknown"]
        assert (round(ended.spend.reserved_usd * 1e6), ended.spend.unpriced) == (9, 1)


async def test_a_launch_waits_for_no_money_of_a_model_that_was_cut_off() -> None:
    async with studio(settings={"estimate": 0.02}) as place:
        run = await place.failed(limits={"budget_usd": 0.09})
        place.upstream.script(Fault(drop="unanswered"), kind="chat", times=None)
        await place.repair(run)
        with anyio.fail_after(5):
            ended = await place.resume(run, GOOD)
        assert ended.reason == "TS-P002" or ended.status == "completed"


def asked(number: int) -> CandidateAsked:
    return CandidateAsked(
        run="r",
        at=1.0,
        candidate=number,
        purpose="author",
        provider="p",
        model="",
        prompt=Stored(),
        key="k",
        reserved=5,
    )


@pytest.mark.parametrize(
    "events",
    [
        [asked(2)],
        [asked(1), asked(1)],
        [CandidateJudged(run="r", at=1.0, candidate=1, outcome="accepted")],
        [asked(1), *[CandidateJudged(run="r", at=1.0, candidate=1, outcome="failed", cost=0)] * 2],
    ],
)
def test_a_log_that_contradicts_itself_is_damaged(events: list[CandidateAsked | CandidateJudged]) -> None:
    with pytest.raises(StoreCorruptError):
        History.fold("r", [RunCreated(run="r", at=0.0, name="", envelope=Envelope()), *events])


def test_money_is_held_until_a_cost_is_known() -> None:
    history = History.fold("r", [asked(1)])
    assert (history.held_in_flight, history.held, history.spent) == (5, 0, 0)
    history.apply(CandidateJudged(run="r", at=1.0, candidate=1, outcome="unknown"))
    assert (history.held_in_flight, history.held, history.spent, history.unpriced) == (0, 5, 0, 1)
    history.apply(asked(2))
    history.apply(CandidateJudged(run="r", at=1.0, candidate=2, outcome="rejected", cost=3))
    assert (history.held_in_flight, history.held, history.spent, history.unpriced) == (0, 5, 3, 1)


def test_shots_is_the_script_of_these_tests() -> None:
    assert SHOTS != GOOD
