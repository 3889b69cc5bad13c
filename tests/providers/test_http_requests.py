"""What is sent: the payload by the template, the key, the seed, and nothing that the API has no place for."""

from typing import Any

import pytest

from http_support import Rigs, operation
from tallystick.providers.protocol import Refused, Sample, Succeeded
from upstream_server import Upstream


async def test_only_what_the_payload_has_is_sent(rig: Rigs, upstream: Upstream) -> None:
    await rig(upstream, "openai").call({"prompt": "a lighthouse"})
    await rig(upstream, "openai").call({"prompt": "a lighthouse", "size": "64x48", "n": 2})
    assert [hit.payload for hit in upstream.hits] == [
        {"model": "m-1", "prompt": "a lighthouse"},
        {"model": "m-1", "prompt": "a lighthouse", "size": "64x48", "n": 2},
    ]


async def test_chat_is_asked_as_the_payload_says(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai")
    await provider.call(
        {"prompt": "Say 1.0", "system": "Be brief", "max_tokens": 9, "temperature": 1.0}, "text.generate"
    )
    await provider.call({"prompt": "Hello"}, "text.generate")
    full, bare = (hit.payload for hit in upstream.hits)
    assert full["messages"] == [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Say 1.0"}]
    assert (full["max_completion_tokens"], full["temperature"]) == (9, 1.0)
    assert bare == {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}


async def test_data_comes_back_where_a_schema_was_given(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    asked = await provider.result({"prompt": "Is it?", "schema": schema}, "text.generate")
    assert asked["data"] == {"ok": True}
    assert upstream.hits[0].payload["response_format"]["json_schema"]["schema"] == schema
    assert (await provider.result({"prompt": "Is it?"}, "text.generate"))["data"] is None


async def test_a_storyboard_and_a_review_are_read_from_the_words_of_a_model(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai")
    board = await provider.result({"brief": "A morning", "shots": 2, "style": "ink"}, "storyboard.plan")
    assert [sorted(shot) for shot in board["shots"]] == [["duration_s", "id", "prompt"]] * 2
    roles = [message["role"] for message in upstream.hits[0].payload["messages"]]
    assert roles == ["system", "user", "user"]


async def test_a_model_can_be_set_for_each_capability(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai", models={"text.generate": "words-1"})
    await provider.call({"prompt": "Hello"}, "text.generate")
    await provider.call()
    assert [hit.payload["model"] for hit in upstream.hits] == ["words-1", "m-1"]


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("openai", {"reference": None}, 'takes no "reference" for image.generate; leave it out'),
        ("seedream", {"n": 2}, '"n" is 2, and this API takes 1 only'),
    ],
)
async def test_a_field_that_the_api_does_not_take_is_refused_before_it_is_paid_for(
    kind: str, payload: dict[str, Any], said: str, rig: Rigs, upstream: Upstream
) -> None:
    outcome = await rig(upstream, kind).provider.call(
        "image.generate", {"prompt": "a lighthouse", **payload}, "key", Sample(seed=1)
    )
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"
    assert said in outcome.text
    assert upstream.hits == []


async def test_a_field_that_the_api_has_no_use_for_is_left_out(rig: Rigs, upstream: Upstream) -> None:
    assert isinstance(await rig(upstream, "seedream").call({"prompt": "x", "n": 1, "seed": 7}), Succeeded)
    assert not {"n", "seed"} & upstream.hits[0].payload.keys()


async def test_a_part_of_a_profile_can_be_changed_and_taken_away(rig: Rigs, upstream: Upstream) -> None:
    body = {"max_completion_tokens": "{$none}", "max_tokens": "{max_tokens}"}
    provider = rig(upstream, "openai", operations=operation("text.generate", body=body))
    await provider.call({"prompt": "Hello", "max_tokens": 9}, "text.generate")
    payload = upstream.hits[0].payload
    assert payload["max_tokens"] == 9
    assert "max_completion_tokens" not in payload


async def test_a_payload_may_go_into_the_path_and_the_headers(rig: Rigs, upstream: Upstream) -> None:
    changes = operation(path="/images/{prompt}", headers={"X-Size": "{size}", "X-Seed": "{$seed}"})
    await rig(upstream, "openai", operations=changes).call({"prompt": "../a b?c", "size": "64x48"})
    (hit,) = upstream.hits
    assert hit.path == "/v1/images/../a b?c"  # one segment: nothing in it could lead elsewhere
    assert (hit.headers["x-size"], hit.headers["x-seed"]) == ("64x48", "1")


async def test_a_header_that_cannot_be_sent_is_refused_before_anything_is(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai", operations=operation(headers={"X-Prompt": "{prompt}"}))
    outcome = await provider.call({"prompt": "two\r\nlines"})
    assert isinstance(outcome, Refused)
    assert outcome.text == 'nothing was sent: the header X-Prompt cannot hold "two\\r\\nlines"'
    assert upstream.connections == 0


async def test_a_capability_without_a_model_is_not_offered(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "openai", model=None, models={"image.generate": "m-1"}).provider
    assert provider.capabilities == {"image.generate"}
    outcome = await provider.call("text.generate", {"prompt": "Hello"}, "key", Sample(seed=1))
    assert isinstance(outcome, Refused)
    assert outcome.text == 'no model is set for text.generate: name one in models of the provider "openai"'


async def test_independent_samples_are_ordered_with_their_own_seeds(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "studio").provider
    for seed in (1, 2**63 - 1):
        await provider.call("image.generate", {"prompt": "a lighthouse"}, f"key-{seed}", Sample(seed=seed))
    seeds = [hit.payload["seed"] for hit in upstream.hits if hit.kind == "submit"]
    assert len(set(seeds)) == 2
    assert all(0 <= seed < 2**31 for seed in seeds)
