"""Jobs: told as soon as they are known, waited for, and looked up before anything is ordered again (casebook 32)."""

import pytest

from http_support import Diary, Rigs, operation
from tallystick.providers.protocol import Absent, LooksUp, Refused, Reprocesses, Succeeded, Tracked, Unknown
from upstream_faults import Fault
from upstream_server import Upstream

DOUBTS = [408, 409, 425, 429, 500, 502, 503]


async def test_the_provider_declares_what_it_can(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "studio").provider
    assert isinstance(provider, Tracked)
    assert isinstance(provider, LooksUp)
    assert isinstance(provider, Reprocesses)
    assert (provider.profile.dedupes_keys, provider.profile.absence_final_after) == (86_400, 60)


async def test_a_job_is_told_before_it_is_asked_after(rig: Rigs, upstream: Upstream) -> None:
    asked_before: list[int] = []
    diary = Diary(lambda: asked_before.append(upstream.count("poll")))
    outcome = await rig(upstream, "studio").track(diary)
    assert isinstance(outcome, Succeeded)
    assert (diary.jobs, outcome.job, asked_before) == (["job-1"], "job-1", [0])


async def test_waiting_slows_down_to_its_limit(rig: Rigs, upstream: Upstream) -> None:
    upstream.polls_until_done = 7
    provider = rig(upstream, "studio")
    assert isinstance(await provider.call(), Succeeded)
    assert provider.clock.naps == [2.0, 3.0, 4.5, 6.75, 10.125, 15.0, 15.0]
    assert (upstream.count("submit"), upstream.count("poll")) == (1, 7)


async def test_an_api_may_ask_for_longer_pauses(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=429, headers={"Retry-After": "40"}), kind="poll")
    provider = rig(upstream, "studio")
    assert isinstance(await provider.call(), Succeeded)
    assert 40.0 in provider.clock.naps


async def test_a_job_that_outlasts_the_deadline_is_unknown_with_its_id(rig: Rigs, upstream: Upstream) -> None:
    upstream.polls_until_done = None
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unknown)
    assert (outcome.job, upstream.count("submit")) == ("job-1", 1)
    assert "job-1 has no known end" in outcome.reason


async def test_a_finished_job_is_found_without_a_new_order(rig: Rigs, upstream: Upstream) -> None:
    upstream.polls_until_done = None
    provider = rig(upstream, "studio")
    lost = await provider.call()
    assert isinstance(lost, Unknown)
    upstream.finish()
    found = await rig(upstream, "studio").lookup(job=lost.job)  # another process, so to say
    assert isinstance(found, Succeeded)
    assert (found.cost, found.job) == (upstream.bill, "job-1")
    assert (upstream.count("submit"), len(upstream.works)) == (1, 1)


async def test_a_job_that_still_runs_is_waited_for(rig: Rigs, upstream: Upstream) -> None:
    upstream.polls_until_done = None
    provider = rig(upstream, "studio")
    await provider.call()
    polled = upstream.count("poll")
    upstream.polls_until_done = polled + 3
    assert isinstance(await provider.lookup(job="job-1"), Succeeded)
    assert upstream.count("poll") == polled + 3


async def test_an_order_whose_answer_was_lost_is_found_by_its_key(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(drop="unanswered"), kind="submit")
    provider = rig(upstream, "studio")
    lost = await provider.call(key="the-key")
    assert isinstance(lost, Unknown)
    assert lost.job is None
    found = await provider.lookup(key="the-key")
    assert isinstance(found, Succeeded)
    assert (upstream.count("submit"), upstream.bill, found.cost) == (1, found.cost, upstream.bill)


async def test_an_order_that_never_arrived_is_absent(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(drop="unread"), kind="submit")
    provider = rig(upstream, "studio")
    assert isinstance(await provider.call(key="the-key"), Unknown)
    assert isinstance(await provider.lookup(key="the-key"), Absent)


async def test_a_404_to_a_key_is_absent(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=404), kind="lookup")
    assert isinstance(await rig(upstream, "studio").lookup(), Absent)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=401),
        Fault(status=200, body={"error": "maintenance"}),
        Fault(status=200, body="<html>"),
        Fault(drop="unanswered"),
    ],
)
async def test_an_answer_that_is_none_is_not_absent(fault: Fault, rig: Rigs, upstream: Upstream) -> None:
    upstream.script(fault, kind="lookup", times=None)
    assert isinstance(await rig(upstream, "studio").lookup(), Unknown)


async def test_a_job_that_is_no_longer_known_was_accepted_all_the_same(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "studio").lookup(job="job-77")
    assert isinstance(outcome, Unknown)
    assert (outcome.job, upstream.count("submit")) == ("job-77", 0)


async def test_a_fresh_job_may_not_be_known_at_once(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=404), kind="poll", times=2)
    assert isinstance(await rig(upstream, "studio").call(), Succeeded)
    assert upstream.count("submit") == 1


async def test_an_api_without_jobs_and_keys_cannot_be_asked(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "openai").lookup(job="job-1")
    assert isinstance(outcome, Unknown)
    assert upstream.hits == []


@pytest.mark.parametrize("status", DOUBTS)
async def test_questions_are_repeated_through_trouble(status: int, rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=status), kind="poll")
    upstream.script(Fault(drop="unanswered"), kind="poll")
    upstream.script(Fault(drop="cut"), kind="poll")
    upstream.script(Fault(status=200, body="<html>"), kind="poll")
    assert isinstance(await rig(upstream, "studio").call(), Succeeded)
    assert (upstream.count("submit"), len(upstream.works)) == (1, 1)


@pytest.mark.parametrize("status", [400, 401, 403, 302])
async def test_a_question_that_is_refused_leaves_the_job_unknown(status: int, rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=status), kind="poll")
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unknown)
    assert (outcome.job, upstream.count("poll")) == ("job-1", 1)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("PromptBlocked", "content_policy"), ("InvalidParameter", "invalid_request"), ("OutOfMemory", "unavailable")],
)
async def test_a_failed_job_is_a_definite_failure_of_its_own_kind(
    code: str, kind: str, rig: Rigs, upstream: Upstream
) -> None:
    upstream.script(Fault(fails=(code, "it did not work out")), kind="submit")
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost, upstream.bill) == (kind, 0, 0)
    assert "it did not work out" in outcome.text


async def test_a_failed_job_that_says_what_it_used_is_billed(rig: Rigs, upstream: Upstream) -> None:
    body = {"id": "job-1", "status": "failed", "usage": {"steps": 3}}
    upstream.script(Fault(status=200, body=body), kind="poll")
    outcome = await rig(
        upstream, "studio", operations=operation(price={"per_unit": {"usage.steps": 0.01}, "stated": None})
    ).call()
    assert isinstance(outcome, Refused)
    assert outcome.cost == 30_000


async def test_a_job_that_is_done_at_once_is_not_asked_after(rig: Rigs, upstream: Upstream) -> None:
    first = await rig(upstream, "studio").call(key="a")
    assert isinstance(first, Succeeded)
    done = {"id": "job-9", "status": "succeeded", "output": [{"url": f"{upstream.url}/files/1.png"}]}
    polled = upstream.count("poll")
    upstream.script(Fault(status=200, body=done), kind="submit")
    assert isinstance(await rig(upstream, "studio").call(key="b"), Succeeded)
    assert upstream.count("poll") == polled


async def test_a_refused_submission_that_names_a_job_keeps_it(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=504, body={"id": "job-1", "message": "still at it"}), kind="submit")
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unknown)
    assert outcome.job == "job-1"


async def test_a_job_id_cannot_lead_elsewhere(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=202, body={"id": "../files/1.png?x", "status": "queued"}), kind="submit")
    await rig(upstream, "studio", operations=operation(job={"deadline": 3})).call()
    assert [hit.path for hit in upstream.hits[1:]] == ["/v1/jobs/../files/1.png?x"]  # one segment, as the API sent it


async def test_the_key_goes_with_every_order_and_decides_what_is_paid(rig: Rigs, upstream: Upstream) -> None:
    upstream.honours_keys = True
    provider = rig(upstream, "studio")
    once, again, other = [await provider.call(key=key) for key in ("a", "a", "b")]
    assert isinstance(once, Succeeded)
    assert isinstance(again, Succeeded)
    assert once.result == again.result
    assert once != other
    assert [hit.key for hit in upstream.hits if hit.kind == "submit"] == ["a", "a", "b"]
    assert len(upstream.works) == 2
