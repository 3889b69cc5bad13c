"""Calls over litellm's routes: one request each, and the closed table of outcomes, whatever litellm makes of it."""

import asyncio
import base64
import socket
from typing import Any

import anyio
import pytest

from http_support import PROMPT
from litellm_support import LitellmRigs, direct
from tallystick.providers.protocol import Refused, Succeeded, Unknown, Unusable
from upstream_content import picture
from upstream_faults import Fault
from upstream_server import Upstream

WORDS = {"prompt": "a line about the sea"}
CALLS = [
    ("openai/gpt-image-1", "image.generate", PROMPT),
    ("openai/gpt-4.1-mini", "text.generate", WORDS),
    ("deepseek/deepseek-chat", "text.generate", WORDS),
]
SAID = {"error": {"code": "Odd", "message": "the API's own words"}}
# What litellm takes for a timeout, a refusal and a refusal of content: it reads words, whatever the status.
DISGUISES = ["Request timed out", "invalid_request_error", "content_policy_violation safety system"]

REFUSED = [
    *((status, "invalid_request") for status in (400, 404, 405, 413, 415, 422)),
    *((status, "unauthorized") for status in (401, 402, 403)),
    (429, "rate_limited"),
]
UNKNOWN = [(408, "timeout"), *((status, "unavailable") for status in (307, 409, 425, 500, 502, 503, 504, 529))]


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
@pytest.mark.parametrize(("status", "kind"), REFUSED)
async def test_a_refusal_is_a_definite_failure(
    status: int, kind: str, model: str, capability: str, payload: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(status=status, body=SAID), times=None)
    outcome = await litellm_rig(direct(upstream.url, model)).call(payload, capability)
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == (kind, 0)
    assert "the API's own words" in outcome.text
    assert len(upstream.hits) == 1


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
@pytest.mark.parametrize(("status", "kind"), UNKNOWN)
async def test_trouble_after_sending_is_unknown(
    status: int, kind: str, model: str, capability: str, payload: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    there = {"Location": f"{upstream.url}/v1/images/generations"}
    upstream.script(Fault(status=status, headers=there, body=SAID), times=None)
    outcome = await litellm_rig(direct(upstream.url, model)).call(payload, capability)
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, outcome.cost) == (kind, None)
    assert len(upstream.hits) == 1


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
@pytest.mark.parametrize("words", DISGUISES)
async def test_words_do_not_make_a_failure_of_a_server_a_refusal(
    words: str, model: str, capability: str, payload: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(status=500, body={"error": {"message": words}}))
    assert isinstance(await litellm_rig(direct(upstream.url, model)).call(payload, capability), Unknown)


@pytest.mark.parametrize("words", DISGUISES[:2])
async def test_words_do_not_make_a_refusal_a_timeout(words: str, litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body={"error": {"message": words}}))
    outcome = await litellm_rig(direct(upstream.url)).call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"


async def test_a_refusal_of_content_is_told_from_other_refusals(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=400, body={"error": {"code": "content_policy_violation", "message": "no"}}))
    outcome = await litellm_rig(direct(upstream.url)).call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "content_policy"


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limited"), (503, "unavailable")])
async def test_a_wait_that_is_asked_for_is_passed_on(
    status: int, kind: str, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(status=status, headers={"Retry-After": "7"}, body=SAID))
    outcome = await litellm_rig(direct(upstream.url)).call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.retry_after) == (kind, 7.0)


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
@pytest.mark.parametrize("drop", ["unread", "unanswered", "cut"])
async def test_a_connection_that_breaks_is_unknown_and_is_not_tried_again(
    drop: Any, model: str, capability: str, payload: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(drop=drop), times=None)
    outcome = await litellm_rig(direct(upstream.url, model)).call(payload, capability)
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, outcome.cost) == ("unavailable", None)
    assert upstream.connections == 1


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_a_timeout_of_ours_is_unknown(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    gate = upstream.hold()
    outcome = await litellm_rig(direct(upstream.url, model)).time_out(payload, capability, gate=gate)
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, outcome.cost) == ("timeout", None)
    assert upstream.paid_hits == 1


@pytest.mark.parametrize(
    ("model", "capability", "payload"), [*CALLS, ("gemini/gemini-2.5-flash-image", "image.generate", PROMPT)]
)
async def test_what_was_not_sent_is_a_definite_failure(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    outcome = await litellm_rig(direct(f"http://127.0.0.1:{port}", model)).call(payload, capability)
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == ("unavailable", 0)


async def test_what_litellm_refuses_itself_is_not_sent(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    outcome = await litellm_rig(direct(upstream.url, "nosuchroute/model")).call()
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.cost) == ("invalid_request", 0)
    assert "nothing was sent" in outcome.text
    assert upstream.connections == 0


@pytest.mark.parametrize("lie", ["broken", "empty"])
@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_an_answer_that_is_no_result_is_unusable_and_kept(
    model: str, capability: str, payload: Any, lie: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(lie=lie), times=None)
    outcome = await litellm_rig(direct(upstream.url, model)).call(payload, capability)
    assert isinstance(outcome, Unusable)
    assert outcome.raw
    assert outcome.cost in (None, upstream.bill)
    assert upstream.paid_hits == 1


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_what_is_reported_as_spent_is_the_bill(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    outcome = await litellm_rig(direct(upstream.url, model)).call(payload, capability)
    assert isinstance(outcome, Succeeded)
    assert outcome.cost == upstream.bill
    assert outcome.usage["total_tokens"] > 0


@pytest.mark.parametrize("lie", ["usage", "null usage"])
@pytest.mark.parametrize(("model", "capability", "payload"), CALLS[:2])
async def test_usage_that_is_not_told_is_unknown_and_not_zero(
    model: str, capability: str, payload: Any, lie: Any, *, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(Fault(lie=lie))
    outcome = await litellm_rig(direct(upstream.url, model, prices={})).call(payload, capability)
    assert isinstance(outcome, Succeeded)
    assert outcome.cost is None
    assert "total_tokens" not in outcome.usage


async def test_a_model_without_a_price_is_unpriced(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    outcome = await litellm_rig(direct(upstream.url, "openai/house-model", prices={})).call(WORDS, "text.generate")
    assert isinstance(outcome, Succeeded)
    assert outcome.cost is None


async def test_the_answer_is_found_again_by_its_id(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    outcome = await litellm_rig(direct(upstream.url, "openai/gpt-4.1-mini")).call(WORDS, "text.generate", key="key-7")
    assert isinstance(outcome, Succeeded)
    assert outcome.usage["response_id"] == "chat-1"
    assert upstream.hits[0].key == "key-7"


async def test_a_schema_a_system_and_limits_arrive(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    asked = {
        "prompt": "name a lamp",
        "system": "be brief",
        "max_tokens": 40,
        "temperature": 0.5,
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    result = await litellm_rig(direct(upstream.url, "openai/gpt-4.1-mini")).result(asked, "text.generate")
    assert set(result["data"]) == {"name"}
    sent = upstream.hits[0].payload
    assert (sent["messages"][0]["content"], sent["max_tokens"], sent["temperature"]) == ("be brief", 40, 0.5)


def gemini(upstream: Upstream) -> dict[str, Any]:
    """Let the upstream answer as Gemini does, and return the settings for it."""
    data = base64.b64encode(picture(64, 48, "gemini")).decode()
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    used = {"promptTokenCount": 6, "candidatesTokenCount": 1290, "totalTokenCount": 1296}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}], "usageMetadata": used}
    upstream.script(Fault(status=200, body=body), kind="other", times=None)
    # By name, so that addresses are looked up while pictures are waited for.
    return direct(upstream.url.replace("127.0.0.1", "localhost"), "gemini/gemini-2.5-flash-image")


async def test_gemini_makes_a_picture_in_one_request(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    result = await litellm_rig(gemini(upstream)).result()
    assert (result["width"], result["height"]) == (64, 48)
    assert [hit.path for hit in upstream.hits] == ["/v1/models/gemini-2.5-flash-image:generateContent"]


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(drop="unanswered"), Fault(status=200, body={"no": "picture"})]
)
async def test_gemini_is_asked_once_whatever_happens(
    fault: Fault, litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    upstream.script(fault, times=None)
    outcome = await litellm_rig(direct(upstream.url, "gemini/gemini-2.5-flash-image")).call()
    assert isinstance(outcome, Unusable if fault.status == 200 else Unknown)
    assert upstream.connections == 1


async def test_more_pictures_than_the_loop_has_threads_are_waited_for(
    litellm_rig: LitellmRigs, upstream: Upstream
) -> None:
    rig = litellm_rig(gemini(upstream))
    gate, abreast = upstream.hold("other"), 40
    outcomes = []

    async def call() -> None:
        outcomes.append(await rig.call())

    async with anyio.create_task_group() as group:
        for _ in range(abreast):
            group.start_soon(call)
        await gate.reached(abreast)
        gate.release()
    assert all(isinstance(one, Succeeded) for one in outcomes)
    assert upstream.count("other") == abreast


@pytest.mark.parametrize("model", ["openai/gpt-image-1", "gemini/gemini-2.5-flash-image"])
async def test_a_cancelled_call_leaves_nothing_behind(model: str, litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    rig = litellm_rig(direct(upstream.url, model))
    gate = upstream.hold()
    before = asyncio.all_tasks()
    async with anyio.create_task_group() as group:
        group.start_soon(rig.call)
        await gate.reached()
        group.cancel_scope.cancel()
    assert not {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)}


async def test_a_kept_answer_is_read_again_without_a_call(litellm_rig: LitellmRigs, upstream: Upstream) -> None:
    upstream.script(Fault(lie="empty"))
    rig = litellm_rig(direct(upstream.url))
    kept = await rig.call()
    assert isinstance(kept, Unusable)
    again = await rig.provider.reprocess("image.generate", PROMPT, kept.raw)
    assert isinstance(again, Unusable)
    assert upstream.paid_hits == 1
