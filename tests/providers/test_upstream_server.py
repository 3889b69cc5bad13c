"""The upstream of the tests is an oracle: it must count, bill, hold and break exactly as it is told."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import upstream_server
from upstream_faults import Fault
from upstream_server import Upstream


@pytest.fixture
async def http(upstream: Upstream) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=upstream.url, trust_env=False) as client:
        yield client


async def order(
    http: httpx.AsyncClient, prompt: str = "a lighthouse", key: str | None = None, **more: Any
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    payload = {"prompt": prompt, "size": "8x8", **more}
    return await http.post("/v1/images/generations", json=payload, headers=headers)


async def test_each_request_is_a_hit_and_each_order_is_billed(http: httpx.AsyncClient, upstream: Upstream) -> None:
    for prompt in ("one", "two", "two"):
        await order(http, prompt)
    assert (upstream.count("image"), upstream.count(containing='"two"'), upstream.paid_hits) == (3, 2, 3)
    assert upstream.bill == sum(work.cost for work in upstream.works) == 3 * (40_000 + 5)


async def test_what_is_refused_is_a_hit_and_is_not_billed(http: httpx.AsyncClient, upstream: Upstream) -> None:
    assert (await order(http, "")).status_code == 400
    assert (await order(http, size="0x9")).status_code == 400
    assert (await order(http, n=11)).status_code == 400
    assert (await http.get("/nowhere")).status_code == 404
    assert (upstream.count("image"), upstream.bill) == (3, 0)


async def test_a_fault_meets_the_requests_it_is_meant_for(http: httpx.AsyncClient, upstream: Upstream) -> None:
    upstream.script(Fault(status=418), kind="image", containing="bad", nth=2, times=2)
    statuses = [(await order(http, prompt)).status_code for prompt in ("bad", "good", "bad", "bad", "bad")]
    assert statuses == [200, 200, 418, 418, 200]
    upstream.script(Fault(status=418), times=None)
    upstream.calm()
    assert (await order(http)).status_code == 200


@pytest.mark.parametrize(("drop", "hits", "works"), [("unread", 0, 0), ("unanswered", 1, 1), ("cut", 1, 1)])
async def test_a_broken_connection_is_counted_for_what_was_done(
    drop: Any, hits: int, works: int, http: httpx.AsyncClient, upstream: Upstream
) -> None:
    upstream.script(Fault(drop=drop))
    with pytest.raises(httpx.TransportError):
        await order(http)
    assert (len(upstream.hits), len(upstream.works)) == (hits, works)


@pytest.mark.parametrize(("worked", "billed"), [(False, 0), (True, 1)])
async def test_a_gate_holds_before_or_after_the_work(
    worked: bool, billed: int, http: httpx.AsyncClient, upstream: Upstream
) -> None:
    gate = upstream.hold("image", worked=worked)
    async with anyio.create_task_group() as group:
        group.start_soon(order, http)
        await gate.reached()
        assert (len(upstream.hits), len(upstream.works)) == (1, billed)
        gate.release()
    assert len(upstream.works) == 1
    await order(http)
    assert len(gate.waiting) == 1


@pytest.mark.parametrize(("honours", "works"), [(True, 2), (False, 3)])
async def test_keys_are_honoured_when_they_should_be(
    honours: bool, works: int, http: httpx.AsyncClient, upstream: Upstream
) -> None:
    upstream.honours_keys = honours
    answers = [await order(http, key=key) for key in ("a", "a", "b")]
    assert (answers[0].content == answers[1].content) is honours
    assert len(upstream.works) == works
    assert [hit.key for hit in upstream.hits] == ["a", "a", "b"]


async def test_links_die_when_they_are_told_to(http: httpx.AsyncClient, upstream: Upstream) -> None:
    answer = await order(http, response_format="url")
    link = answer.json()["data"][0]["url"]
    assert (await http.get(link)).content.startswith(b"\x89PNG")
    upstream.links_live = False
    assert (await http.get(link)).status_code == 403


async def test_a_job_is_done_at_the_question_it_is_set_to(http: httpx.AsyncClient, upstream: Upstream) -> None:
    upstream.polls_until_done = 3
    job = (await http.post("/v1/jobs", json={"prompt": "x"}, headers={"Idempotency-Key": "k"})).json()["id"]
    states = [(await http.get(f"/v1/jobs/{job}")).json()["status"] for _ in range(3)]
    assert states == ["queued", "running", "succeeded"]
    found = (await http.get("/v1/jobs", params={"key": "k"})).json()["data"]
    assert [entry["id"] for entry in found] == [job]
    assert (await http.get("/v1/jobs", params={"key": "other"})).json() == {"data": []}
    assert (await http.get("/v1/jobs/job-99")).status_code == 404


async def test_chat_fits_the_schema_that_is_asked_for(http: httpx.AsyncClient, upstream: Upstream) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "kind": {"type": "string", "enum": ["a"]}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = {"messages": [{"role": "user", "content": "Hello"}], "response_format": form}
    answer = (await http.post("/v1/chat/completions", json=body)).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"n": 3, "kind": "a"}
    assert upstream.bill > 0


async def test_a_body_may_come_in_chunks(http: httpx.AsyncClient, upstream: Upstream) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for part in (b'{"prompt": ', b'"in parts", "size": "8x8"}'):
            yield part

    assert (await http.post("/v1/images/generations", content=chunks())).status_code == 200
    assert upstream.hits[0].payload == {"prompt": "in parts", "size": "8x8"}


def test_it_serves_as_a_process_of_its_own() -> None:
    program = Path(upstream_server.__file__)
    with subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx.Client(base_url=url, trust_env=False) as http:
            fault = {"fault": {"status": 429}, "kind": "image", "times": 1}
            http.post("/_upstream/script", json=fault).raise_for_status()
            http.post("/_upstream/set", json={"honours_keys": True}).raise_for_status()
            payload, headers = {"prompt": "x", "size": "8x8"}, {"Idempotency-Key": "k"}
            answers = [http.post("/v1/images/generations", json=payload, headers=headers) for _ in range(3)]
            state = http.get("/_upstream/state").json()
        process.stdin.close()
        assert process.wait() == 0
    assert [answer.status_code for answer in answers] == [429, 200, 200]
    assert (state["paid_hits"], len(state["works"]), state["bill"]) == (3, 1, 40_005)
    assert [hit["kind"] for hit in state["hits"]] == ["image"] * 3
