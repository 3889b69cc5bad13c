"""Through a real LiteLLM proxy: the table of outcomes, one request behind it for one before it, and the true bill."""

from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from http_support import PROMPT
from litellm_support import LitellmRigs
from provider_support import MemoryArtifacts
from proxy_support import PROXY_SECRET, LitellmProxy
from tallystick.providers import conformance
from tallystick.providers.litellm import create
from tallystick.providers.litellm.advice import UNSEEN
from tallystick.providers.protocol import Advises, Refused, Sample, Succeeded, Unknown, Unusable
from upstream_faults import Fault, Kind

WORDS = {"prompt": "a line about the sea"}
CALLS = [("pictures", "image.generate", PROMPT), ("words", "text.generate", WORDS)]
#: What a call is at the upstream; the proxy has questions of its own at first.
KINDS: dict[str, Kind] = {"image.generate": "image", "text.generate": "chat"}
REFUSED = [(400, "invalid_request"), (404, "invalid_request"), (413, "invalid_request"), (422, "invalid_request")]
REFUSED += [(401, "unauthorized"), (402, "unauthorized"), (403, "unauthorized"), (429, "rate_limited")]
UNKNOWN = [(408, "timeout"), *((status, "unavailable") for status in (409, 500, 502, 503, 504))]


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_every_refusal_behind_the_proxy_is_a_definite_failure(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    rig = litellm_rig(litellm_proxy.settings(model), secret=PROXY_SECRET)
    async with litellm_proxy.upstream() as upstream:
        for number, (status, kind) in enumerate(REFUSED, 1):
            fault = Fault(status=status, body={"error": {"message": "its own words"}})
            upstream.script(fault, kind=KINDS[capability])
            outcome = await rig.call(payload, capability)
            assert isinstance(outcome, Refused), (status, outcome)
            assert (outcome.kind, outcome.cost, "its own words" in outcome.text) == (kind, 0, True)
            assert (upstream.paid_hits, upstream.bill) == (number, 0)


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_all_else_behind_the_proxy_is_unknown(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    rig = litellm_rig(litellm_proxy.settings(model), secret=PROXY_SECRET)
    async with litellm_proxy.upstream() as upstream:
        for number, (status, kind) in enumerate(UNKNOWN, 1):
            fault = Fault(status=status, body={"error": {"message": "its own words"}})
            upstream.script(fault, kind=KINDS[capability])
            outcome = await rig.call(payload, capability)
            assert isinstance(outcome, Unknown), (status, outcome)
            assert (outcome.kind, outcome.cost) == (kind, None)
            assert upstream.paid_hits == number
        for fault in (Fault(drop="unanswered"), Fault(drop="cut"), Fault(lie="broken")):
            hits = upstream.paid_hits
            upstream.script(fault, kind=KINDS[capability])
            assert isinstance(await rig.call(payload, capability), Unknown), fault
            assert upstream.paid_hits == hits + 1


async def test_a_refusal_of_content_keeps_its_meaning(litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy) -> None:
    said = {"code": "content_policy_violation", "message": "rejected by our safety system: content_policy_violation"}
    async with litellm_proxy.upstream() as upstream:
        upstream.script(Fault(status=400, body={"error": said}), kind="image")
        outcome = await litellm_rig(litellm_proxy.settings(), secret=PROXY_SECRET).call()
    assert isinstance(outcome, Refused)
    assert outcome.kind == "content_policy"


async def test_the_wait_of_the_provider_comes_through(litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy) -> None:
    async with litellm_proxy.upstream() as upstream:
        upstream.script(Fault(status=429, headers={"Retry-After": "3"}), kind="chat")
        outcome = await litellm_rig(litellm_proxy.settings("words"), secret=PROXY_SECRET).call(WORDS, "text.generate")
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.retry_after) == ("rate_limited", 3.0)


async def test_what_the_proxy_itself_refuses_reaches_nobody(
    litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    async with litellm_proxy.upstream() as upstream:
        unknown = await litellm_rig(litellm_proxy.settings("nosuch"), secret=PROXY_SECRET).call()
        stranger = await litellm_rig(litellm_proxy.settings(), secret="sk-somebody-else").call()
        assert upstream.paid_hits == 0
    assert isinstance(unknown, Refused)
    assert (unknown.kind, "nosuch" in unknown.text) == ("invalid_request", True)
    assert isinstance(stranger, Refused | Unknown)


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_a_timeout_of_ours_is_unknown_and_what_it_cost_is_too(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    async with litellm_proxy.upstream() as upstream:
        gate = upstream.hold(KINDS[capability], worked=True)
        rig = litellm_rig(litellm_proxy.settings(model), secret=PROXY_SECRET)
        outcome = await rig.time_out(payload, capability, gate=gate)
        assert upstream.paid_hits == 1
    assert isinstance(outcome, Unknown)
    assert (outcome.kind, outcome.cost) == ("timeout", None)


@pytest.mark.parametrize(("model", "capability", "payload"), CALLS)
async def test_the_spend_is_the_bill(
    model: str, capability: str, payload: Any, litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    rig = litellm_rig(litellm_proxy.settings(model), secret=PROXY_SECRET)
    async with litellm_proxy.upstream() as upstream:
        outcome = await rig.call(payload, capability)
        assert isinstance(outcome, Succeeded)
        assert (outcome.cost, upstream.paid_hits) == (upstream.bill, 1)
        assert outcome.usage["proxy_call_id"]
        paid = next(hit for hit in upstream.hits if hit.kind == KINDS[capability])
        assert paid.payload.keys() <= {"model", "prompt", "size", "messages"}, "nothing is slipped into the order"

        before = upstream.bill
        upstream.script(Fault(lie="empty"), kind=KINDS[capability])
        empty = await rig.call(payload, capability)
        assert isinstance(empty, Unusable)
        assert empty.cost == upstream.bill - before


async def test_what_the_proxy_has_no_price_for_is_unpriced(
    litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    async with litellm_proxy.upstream() as upstream:
        rig = litellm_rig(litellm_proxy.settings("unpriced"), secret=PROXY_SECRET)
        unpriced = await rig.call(WORDS, "text.generate")
        upstream.script(Fault(lie="usage"), kind="image")
        untold = await litellm_rig(litellm_proxy.settings(), secret=PROXY_SECRET).call()
    assert isinstance(unpriced, Succeeded)
    assert isinstance(untold, Succeeded)
    assert (unpriced.cost, untold.cost) == (None, None)


async def test_a_proxy_that_sends_again_is_seen_and_named(
    litellm_rig: LitellmRigs, litellm_proxy: LitellmProxy
) -> None:
    eager = litellm_rig(litellm_proxy.settings("eager"), secret=PROXY_SECRET).provider
    calm = litellm_rig(litellm_proxy.settings(), secret=PROXY_SECRET).provider
    stranger = litellm_rig(litellm_proxy.settings(), secret="sk-somebody-else").provider
    assert isinstance(eager, Advises)
    assert isinstance(calm, Advises)
    assert isinstance(stranger, Advises)
    async with litellm_proxy.upstream() as upstream:
        upstream.script(Fault(status=500), kind="image", times=None)
        assert isinstance(await litellm_rig(litellm_proxy.settings("eager"), secret=PROXY_SECRET).call(), Unknown)
        assert upstream.paid_hits == 2
    assert await eager.advice() == (
        "the LiteLLM proxy sends a failed request for eager again: set its num_retries to 0",
    )
    assert await calm.advice() == ()
    assert await stranger.advice() == (UNSEEN,)


@pytest.mark.parametrize("check", conformance.CHECKS, ids=str)
async def test_it_conforms(check: conformance.Check, litellm_proxy: LitellmProxy) -> None:
    words = dict.fromkeys(("text.generate", "storyboard.plan", "review.visual"), "litellm_proxy/words")
    settings = litellm_proxy.settings(models=words)
    # On a loop of its own: connections that the proxy keeps are no tasks of ours.
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(litellm_proxy.upstream()):
        await check(conformance.Subject(make=lambda artifacts: create(settings, artifacts)))


async def test_the_keys_show_nowhere(
    litellm_proxy: LitellmProxy, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    provider = create(litellm_proxy.settings(), MemoryArtifacts())
    seen = [repr(provider), str(vars(provider))]
    async with litellm_proxy.upstream() as upstream:
        for fault in (Fault(), Fault(status=500, echo=True), Fault(status=400, echo=True), Fault(drop="unanswered")):
            upstream.script(fault, kind="image")
            seen.append(repr(await provider.call("image.generate", PROMPT, "key", Sample(seed=1))))
    await provider.close()
    printed = capfd.readouterr()
    for text in (*seen, caplog.text, printed.out, printed.err):
        assert PROXY_SECRET not in text
