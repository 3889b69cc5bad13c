"""The closed table of outcomes (contract.md, section 6.2), line by line, and never more than one request a call."""

import socket
from typing import Any

import pytest

from http_support import PROMPT, Rigs
from tallystick.providers.http.errors import Doubt, Errors, Refusal, judge
from tallystick.providers.http.retry_after import Wait
from tallystick.providers.protocol import Refused, Succeeded, Unknown, Unusable
from upstream_faults import Fault
from upstream_server import Upstream

KINDS = ["openai", "seedream", "studio"]
SAID = {"error": {"code": "Odd", "message": "the API's own words"}}

REFUSED = [
    *((status, "invalid_request") for status in (400, 404, 405, 413, 415, 422)),
    *((status, "unauthorized") for status in (401, 402, 403)),
    (429, "rate_limited"),
]
UNKNOWN = [(408, "timeout"), *((status, "unavailable") for status in (409, 425, 500, 501, 502, 503, 504, 520, 529))]
UNNAMED = [301, 302, 307, 308, 406, 410, 418, 451]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("status", "failure"), REFUSED)
async def test_a_refusal_is_a_definite_failure(
    rig: Rigs, status: int, failure: str, kind: str, upstream: Upstream
) -> None:
    upstream.script(Fault(status=status, body=SAID))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == (failure, 0)
    assert "the API's own words" in outcome.text
    assert (upstream.paid_hits, upstream.bill) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("status", "failure"), UNKNOWN)
async def test_trouble_after_sending_is_unknown(
    rig: Rigs, status: int, failure: str, kind: str, upstream: Upstream
) -> None:
    upstream.script(Fault(status=status, body=SAID))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, outcome.cost) == (failure, None)
    assert "the API's own words" in outcome.reason
    assert upstream.paid_hits == 1


@pytest.mark.parametrize("status", UNNAMED)
async def test_what_the_table_does_not_name_is_unknown(rig: Rigs, status: int, upstream: Upstream) -> None:
    upstream.script(Fault(status=status, headers={"Location": f"{upstream.url}/v1/images/generations"}))
    assert isinstance(await rig(upstream, "openai").call(), Unknown)
    assert len(upstream.hits) == 1


async def test_a_redirect_says_where_the_base_address_should_be(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=308, headers={"Location": "https://api.example/v1"}, body=""))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Unknown)
    assert "https://api.example/v1; is that the base_url to set?" in outcome.reason


async def test_a_503_that_names_a_time_refuses(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=503, headers={"Retry-After": "7"}, body=SAID))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.retry_after) == ("unavailable", 7.0)


async def test_a_profile_may_say_that_its_503_refuses(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=503, body=SAID))
    outcome = await rig(upstream, "openai", errors={"statuses": {"503": "unavailable"}}).call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "unavailable"


async def test_a_profile_may_say_that_a_status_of_refusal_is_in_doubt(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=429, body=SAID))
    outcome = await rig(upstream, "openai", errors={"statuses": {"429": "unknown"}}).call()
    assert isinstance(outcome, Unknown)


async def test_a_host_without_an_address_was_not_reached(rig: Rigs, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    outcome = await rig("http://images.invalid", "openai").call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == ("unavailable", 0)


async def test_a_refused_connection_was_not_reached(rig: Rigs) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        outcome = await rig(f"http://127.0.0.1:{taken.getsockname()[1]}", "openai").call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "unavailable"


async def test_a_failed_handshake_sends_nothing(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream.url.replace("http://", "https://"), "openai").call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "unavailable"
    assert upstream.hits == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_that_breaks_before_the_body_is_read_is_unknown(
    rig: Rigs, kind: str, upstream: Upstream
) -> None:
    upstream.script(Fault(drop="unread"))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Unknown)
    assert outcome.kind == "unavailable"
    assert (upstream.connections, upstream.bill) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drop", ["unanswered", "cut"])
async def test_an_answer_that_gets_lost_is_unknown(rig: Rigs, drop: Any, kind: str, upstream: Upstream) -> None:
    upstream.script(Fault(drop=drop))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Unknown)
    assert outcome.cost is None
    assert (upstream.paid_hits, len(upstream.works)) == (1, 1)


async def test_a_refusal_whose_words_are_cut_off_is_still_a_refusal(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body=SAID, drop="cut"))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"


@pytest.mark.parametrize("capability", ["image.generate", "text.generate"])
async def test_a_slow_answer_is_unknown_and_is_not_asked_for_again(
    rig: Rigs, capability: str, upstream: Upstream
) -> None:
    gate = upstream.hold()
    payload = PROMPT if capability == "image.generate" else {"prompt": "a poem"}
    outcome = await rig(upstream, "openai").time_out(payload, capability, gate=gate)
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, upstream.paid_hits) == ("timeout", 1)
    gate.release()


@pytest.mark.parametrize("kind", ["openai", "seedream"])
async def test_a_complete_answer_that_is_broken_is_unusable_with_its_text(
    rig: Rigs, kind: str, upstream: Upstream
) -> None:
    upstream.script(Fault(lie="broken"))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Unusable)
    assert outcome.text == "the answer is not JSON"
    assert outcome.raw.data.startswith(b'{"')
    assert len(upstream.works) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_without_pictures_is_unusable_with_its_cost(rig: Rigs, kind: str, upstream: Upstream) -> None:
    upstream.script(Fault(lie="empty"))
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Unusable)
    assert "no file" in outcome.text
    assert outcome.cost == upstream.bill > 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "the answer is empty"),
        ([1, 2], "no file"),
        ({"data": [{"b64_json": ""}]}, "file 1 of the answer is empty"),
        ({"data": [{"b64_json": "%%%"}]}, "not base64"),
        ({"data": [{"b64_json": "aGVsbG8="}]}, "of no known format"),
        ({"data": [{"b64_json": "T2dnUw=="}]}, "is audio/ogg, and must be image/"),
        ({"data": [{}] * 17}, "17 files; 16 are the limit"),
        ({"data": [{"url": "ftp://files.example/1.png"}]}, "is not a link"),
    ],
)
async def test_an_answer_against_the_schema_is_unusable(rig: Rigs, body: Any, said: str, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body=body))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Unusable)
    assert said in outcome.text
    assert upstream.paid_hits == 1


async def test_an_answer_that_is_too_large_is_kept_in_part_and_not_asked_for_again(
    rig: Rigs, upstream: Upstream
) -> None:
    outcome = await rig(upstream, "openai", max_answer=100).call()
    assert isinstance(outcome, Unusable)
    assert "max_answer is the limit" in outcome.text
    assert len(outcome.raw.data) >= 100
    assert upstream.paid_hits == 1


async def test_a_picture_of_another_size_is_reported_as_it_is(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(lie="size"))
    result = await rig(upstream, "openai").result({"prompt": "a lighthouse", "size": "128x96"})
    assert (result["width"], result["height"]) == (64, 48)


async def test_a_submission_without_a_job_is_unusable(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=202, body={"status": "queued"}))
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unusable)
    assert 'names no job at "id"' in outcome.text


@pytest.mark.parametrize("kind", KINDS)
async def test_a_good_answer_costs_one_request_and_what_is_billed(rig: Rigs, kind: str, upstream: Upstream) -> None:
    outcome = await rig(upstream, kind).call()
    assert isinstance(outcome, Succeeded)
    assert (upstream.paid_hits, outcome.cost) == (1, upstream.bill)


@pytest.mark.parametrize("kind", KINDS)
async def test_paid_requests_do_not_share_a_connection(rig: Rigs, kind: str, upstream: Upstream) -> None:
    provider = rig(upstream, kind)
    for seed in (1, 2, 3):
        await provider.call(key=f"key-{seed}")
    questions = upstream.count("poll") + upstream.count("file")
    assert upstream.paid_hits == 3
    assert upstream.connections >= 3 + (questions > 0)


async def test_a_body_that_only_the_end_of_the_connection_ends_may_be_cut_off(rig: Rigs, upstream: Upstream) -> None:
    # Without a length nobody can tell a broken answer from half of one.
    provider = rig(upstream, "openai")
    upstream.script(Fault(status=200, body='{"data": [', headers={"Content-Length": ""}))
    assert isinstance(await provider.call(), Unknown)


@pytest.mark.parametrize("timed", [False, True])
def test_the_table_is_closed(timed: bool) -> None:
    wait = Wait(3.0) if timed else Wait()
    ends = {status: judge(Errors(), status, wait, {}) for status in range(100, 600)}
    assert {status for status, end in ends.items() if end is None} == set(range(200, 300))
    refused = {status: end.kind for status, end in ends.items() if isinstance(end, Refusal)}
    assert refused == dict(REFUSED) | ({503: "unavailable"} if timed else {})
    assert {status for status, end in ends.items() if isinstance(end, Doubt) and end.kind == "timeout"} == {408}
