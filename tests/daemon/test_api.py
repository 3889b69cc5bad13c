"""The HTTP API under every kind of wrong request: always an error that teaches, never a fault, and nothing is lost."""

import json
import os
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon_support import PATIENCE, Daemon, Premises, premises
from tallystick.engine import messages
from tallystick.engine.messages import DoctorReport, ErrorBody, RunReport

JSON = {"content-type": "application/json"}
SCRIPT = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'
QUICK = "async def orchestrate(ctx, args):\n    return 1\n"


class Api(NamedTuple):
    """A daemon with one run that has completed, and its API's own description."""

    http: httpx.Client
    daemon: Daemon
    place: Premises
    run: str
    document: dict[str, Any]

    def refused(self, method: str, path: str, **content: Any) -> tuple[int, ErrorBody]:
        """Send what must be refused; return the status and the error."""
        response = self.http.request(method, path, **content)
        assert response.is_error, response.text
        return response.status_code, msgspec.json.decode(response.content, type=ErrorBody)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(premises()) as place,
        portal.wrap_async_context_manager(place.open()) as (daemon, client),
    ):
        run = portal.call(client.submit, SCRIPT)
        assert portal.call(client.end, run).status == "completed"
        transport = httpx.HTTPTransport(uds=os.fspath(place.socket))
        with httpx.Client(transport=transport, base_url="http://tally", timeout=PATIENCE) as http:
            yield Api(http, daemon, place, run, http.get("/schema/openapi.json").json())
            health = msgspec.json.decode(http.get("/v1/doctor").content, type=DoctorReport)
            report = msgspec.json.decode(http.get(f"/v1/runs/{run}").content, type=RunReport)
    assert health.healthy, health
    assert report.status == "completed"
    faults = [line for line in daemon.log if "Traceback" in line or "request_failed" in line]
    assert faults == []


def submission(**fields: Any) -> bytes:
    return json.dumps({"source": QUICK, **fields}).encode()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "was not understood"),
        (b"{", "truncated"),
        (b"null", "Expected `object`"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "malformed"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"source": "\\ud800"}', "was not understood"),
        (b'{"args": 1}', "missing required field `source`"),
        (b'{"source": 3}', "Expected `str`, got `int`"),
        (b'{"source": "", "sauce": ""}', "unknown field `sauce`"),
        (submission(limits={"budget": 1}), "unknown field `budget`"),
        (submission(limits={"grants": "image.generate"}), "Expected `array"),
        (submission(limits={"grants": ["image.generat"]}), "is not a capability"),
        (submission(limits={"budget_usd": 0}), "a budget of 0 dollars"),
        (submission(limits={"budget_usd": 1e300}), "cannot be used"),
        (submission(limits={"max_calls": 2**70}), "max_calls is"),
        (submission(limits={"concurrency": 0}), "concurrency is 0"),
        (submission(limits={"wall_clock": -1}), "wall_clock is -1"),
        (submission(limits={"repeat_policy": "maybe"}), "Invalid enum value 'maybe'"),
        (submission(seed=2**70), "seed"),
        (submission(seed=True), "seed"),
        (submission(latency=-5), "latency"),
        (submission(args=2**70), "more than 64 bits"),
        (b'{"source": "", "args": 1e999}', "out of range"),
        (submission(args=json.loads("[" * 80 + "]" * 80)), "nested deeper"),
        (submission(faults=["image.generate"]), "capability:execution:kind"),
        (submission(faults=["image.generate:" + "9" * 5000 + ":unknown"]), "execution"),
    ],
)
def test_a_wrong_submission_says_what_is_wrong_with_it(api: Api, body: bytes, says: str) -> None:
    before = len(api.http.get("/v1/runs", params={"limit": 1000}).json())
    status, refusal = api.refused("POST", "/v1/runs", content=body, headers=JSON)
    assert (status, refusal.error.code) == (400, "TS-U001")
    assert says in refusal.error.message
    assert len(api.http.get("/v1/runs", params={"limit": 1000}).json()) == before


def test_a_script_that_is_none_is_refused_with_the_findings(api: Api) -> None:
    status, refusal = api.refused("POST", "/v1/runs", content=submission(source="\x00 not python"), headers=JSON)
    assert (status, refusal.error.code) == (422, "TS-C001")
    assert [finding["rule"] for finding in refusal.details] == ["R00"]


@pytest.mark.parametrize("chunked", [False, True])
def test_ten_megabytes_are_refused_with_the_limit(api: Api, chunked: bool) -> None:
    body = submission(source="x" * 10_000_000)
    content = (body[start : start + 65_536] for start in range(0, len(body), 65_536)) if chunked else body
    status, refusal = api.refused("POST", "/v1/runs", content=content, headers=JSON)
    assert (status, refusal.error.code) == (413, "TS-U001")
    assert "larger than 8 MiB" in refusal.error.message


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "TS-U001"),
        ("GET", "/v2/runs", 404, "TS-U001"),
        ("DELETE", "/v1/runs", 405, "TS-U001"),
        ("GET", "/v1/runs/nobody", 404, "TS-U002"),
        ("GET", "/v1/runs/nobody/events", 404, "TS-U002"),
        ("GET", "/v1/runs/%00", 404, "TS-U002"),
        ("GET", "/v1/runs/%FF%FE", 404, "TS-U002"),
        ("GET", "/v1/runs/" + "9" * 5000, 404, "TS-U002"),
        ("POST", "/v1/runs/nobody/cancel", 404, "TS-U002"),
        ("POST", "/v1/runs/last/cancel", 400, "TS-U003"),
        ("GET", "/v1/runs?limit=many", 400, "TS-U001"),
        ("GET", "/v1/runs?before=%00", 404, "TS-U002"),
        ("GET", "/v1/runs/last/source?revision=-1", 400, "TS-U001"),
        ("GET", "/v1/runs/last/source?revision=" + "9" * 30, 400, "TS-U001"),
        ("GET", "/v1/files/..%2F..%2Fconfig.toml", 404, "TS-U001"),
        ("GET", "/v1/files/lock", 400, "TS-U001"),
        ("GET", "/v1/files/" + "A" * 64, 400, "TS-U001"),
        ("GET", "/v1/files/" + "a" * 64, 503, "TS-S003"),
    ],
)
def test_what_is_not_there_is_refused(api: Api, method: str, path: str, status: int, code: str) -> None:
    found, refusal = api.refused(method, path)
    assert (found, refusal.error.code) == (status, code)


@pytest.mark.parametrize(
    ("attempt", "body", "says"),
    [
        (1, {"who": "me", "abandon": True}, "attempt 1 is committed"),
        (2, {"who": "me", "abandon": True}, "has no attempt 2"),
        (2**70, {"who": "me", "abandon": True}, "has no attempt"),
        (-1, {"who": "me", "abandon": True}, "has no attempt -1"),
        (1, {"who": "me"}, "say one of these"),
        (1, {"who": "me", "abandon": True, "result": None}, "say one of these"),
        (1, {"abandon": True}, "missing required field `who`"),
        (1, {"who": "me", "result": {}, "cost_usd": "free"}, "cost_usd"),
    ],
)
def test_a_wrong_decision_is_refused(api: Api, attempt: int, body: dict[str, Any], says: str) -> None:
    status, refusal = api.refused("POST", f"/v1/runs/{api.run}/attempts/{attempt}/reconcile", json=body)
    assert status == 400
    assert says in refusal.error.message


def test_noise_on_the_socket_is_survived(api: Api) -> None:
    for noise in (b"\x00" * 4096, b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/runs HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(api.place.socket))
            connection.sendall(noise)
    assert api.http.get("/v1/status").json()["pid"] == api.daemon.pid


def test_every_message_of_the_wire_is_a_schema_of_the_document(api: Api) -> None:
    wire = {
        name
        for name, value in vars(messages).items()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == messages.__name__
    }
    wire -= {base.__name__ for name in wire for base in getattr(messages, name).__bases__}
    assert len(wire) > 20
    assert wire <= set(api.document["components"]["schemas"])


def test_every_operation_is_described_with_its_refusals(api: Api) -> None:
    operations = [operation for path in api.document["paths"].values() for operation in path.values()]
    assert len(operations) >= 17
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        for status, response in operation["responses"].items():
            schema = next(iter(response.get("content", {"": {}}).values())).get("schema", {})
            assert (schema.get("$ref") == "#/components/schemas/ErrorBody") == (status >= "400")


# What follows sends what nobody would think of: any JSON, with and without the right names in it, anywhere.

_NUMBERS = st.integers() | st.integers(min_value=-(2**80), max_value=2**80) | st.floats(allow_nan=False)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS.filter(lambda number: abs(number) != float("inf")) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = sorted({name for value in vars(messages).values() for name in getattr(value, "__struct_fields__", ())})
_NEAR = st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=5)
_BODIES = (_VALUES | _NEAR).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=64)


def routes(api: Api) -> list[tuple[str, str, set[str]]]:
    """Every operation but the one that ends the daemon: method, path, documented statuses."""
    return [
        (method.upper(), path, set(operation["responses"]))
        for path, operations in api.document["paths"].items()
        for method, operation in operations.items()
        if path != "/v1/shutdown"
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_request_is_a_fault_of_the_daemon(api: Api, data: st.DataObject) -> None:
    method, path, documented = data.draw(st.sampled_from(routes(api)))
    for parameter in ("run", "sha256", "attempt"):
        known = {"run": api.run, "sha256": "0" * 64, "attempt": "1"}[parameter]
        value = data.draw(st.just(known) | st.text(min_size=1, max_size=12) | st.integers().map(str), label=parameter)
        path = path.replace(f"{{{parameter}}}", quote(value, safe=""))
    query = data.draw(
        st.dictionaries(st.sampled_from(["limit", "before", "revision"]), st.text(max_size=8), max_size=2)
    )
    body = data.draw(_BODIES) if method == "POST" else None
    response = api.http.request(method, path, params=query, content=body, headers=JSON)
    assert str(response.status_code) in {*documented, "404", "405"}
    if response.is_error:
        error = msgspec.json.decode(response.content, type=ErrorBody).error
        assert error.code.startswith("TS-")
        assert "Traceback" not in response.text


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=_NEAR)
def test_a_sound_script_with_odd_company_runs_or_is_refused(api: Api, fields: dict[str, Any]) -> None:
    response = api.http.post("/v1/runs", content=submission(**fields), headers=JSON)
    if response.is_error:
        assert response.status_code in (400, 422)
        assert msgspec.json.decode(response.content, type=ErrorBody).error.message
    else:
        run = response.json()["run"]
        with api.http.stream("GET", f"/v1/runs/{run}/events") as stream:
            assert '"kind":"ended"' in list(stream.iter_lines())[-2]
