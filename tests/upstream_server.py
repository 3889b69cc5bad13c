"""An upstream of our own on loopback: it speaks what providers speak, counts, bills, and breaks on demand.

``hits`` are the requests that reached it and ``works`` the orders that it carried out: the oracle of what was paid.
Nothing sleeps: an answer waits at a gate until the test opens it. In-process:

    async with running() as upstream:
        upstream.script(Fault(status=429, headers={"Retry-After": "2"}), kind="image", nth=3)

Or as a process of its own (``python tests/upstream_server.py``), which prints its address as one JSON line, is driven
over ``/_upstream/…`` and ends with its standard input.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

import upstream_apis
from upstream_apis import Made, Order, RefusedOrderError
from upstream_faults import PAID, Fault, Gate, Hit, Kind, Rule
from upstream_wire import Reply, Request, hang_up, json_reply, read_body, read_head, write

_ORDERS: dict[tuple[str, str], tuple[Kind, Any]] = {
    ("POST", "/v1/images/generations"): ("image", upstream_apis.openai_images),
    ("POST", "/api/v3/images/generations"): ("image", upstream_apis.seedream_images),
    ("POST", "/v1/chat/completions"): ("chat", upstream_apis.openai_chat),
    ("POST", "/v1/jobs"): ("submit", None),
}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was carried out; ``cost`` in micro-dollars was billed for it."""

    kind: Kind
    payload: Any
    key: str | None
    cost: int


class Job(msgspec.Struct):
    """A job: how often it was asked after, and what its answer says when it has an end."""

    id: str
    key: str | None
    end: dict[str, Any]
    polls: int = 0
    finished: bool = False


class Upstream:
    """The server: its state is open to the tests.

    ``honours_keys``: whether a second order under an idempotency key gets the first one's answer. ``polls_until_done``:
    which question after a job finds it done; None means that only ``finish`` ends it. ``links_live``: whether files
    are still served. ``scribe``: what a chat answers to its messages; by default something of no meaning.
    """

    def __init__(self) -> None:
        self.url = ""
        self.hits: list[Hit] = []
        self.works: list[Work] = []
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, bytes] = {}
        self.connections = 0
        self.honours_keys = False
        self.polls_until_done: int | None = 2
        self.links_live = True
        self.scribe: Callable[[list[Any]], str] | None = None
        self._rules: list[Rule] = []
        self._gates: list[Gate] = []
        self._answers: dict[str, Reply] = {}
        self._hit = asyncio.Condition()

    @property
    def bill(self) -> int:
        """What is owed, in micro-dollars."""
        return sum(work.cost for work in self.works)

    def count(self, kind: Kind | None = None, containing: str = "") -> int:
        """Return how many requests arrived."""
        return sum(kind in (None, hit.kind) and containing in hit.text for hit in self.hits)

    @property
    def paid_hits(self) -> int:
        """How many requests arrived that cost money when they are answered."""
        return sum(hit.kind in PAID for hit in self.hits)

    def script(
        self, fault: Fault, *, kind: Kind | None = None, containing: str = "", nth: int = 1, times: int | None = 1
    ) -> None:
        """Let ``fault`` happen to matching requests from the nth on, so many ``times`` (None: always)."""
        self._rules.append(Rule(fault, kind, containing, nth - 1, times))

    def calm(self) -> None:
        """Forget all faults."""
        self._rules.clear()

    def hold(self, kind: Kind | None = None, *, containing: str = "", worked: bool = False) -> Gate:
        """Hold matching requests from now on, before their work is done, or after it where ``worked``."""
        gate = Gate(kind, containing, worked=worked)
        self._gates.append(gate)
        return gate

    async def arrived(self, kind: Kind, times: int = 1) -> None:
        """Wait until so many requests of a kind have arrived."""
        async with self._hit:
            await self._hit.wait_for(lambda: self.count(kind) >= times)

    def finish(self, job: str | None = None) -> None:
        """End a job, or all of them: the next question finds it so."""
        for one in self.jobs.values():
            one.finished = one.finished or job in (None, one.id)

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side ends it."""
        self.connections += 1
        try:
            while (head := await read_head(reader)) is not None:
                kind = _kind(head)
                if self._breaks_off(kind, head.path):
                    hang_up(writer)
                    return
                request = msgspec.structs.replace(head, body=await read_body(reader, head))
                reply = await self._answer(kind, request)
                if reply is None:
                    hang_up(writer)
                    return
                await write(writer, reply)
                if reply.cut:
                    hang_up(writer)
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _breaks_off(self, kind: Kind, path: str) -> bool:
        return any(rule.takes(kind, path) for rule in self._rules if rule.fault.drop == "unread")

    async def _answer(self, kind: Kind, request: Request) -> Reply | None:
        """Return the reply, or None where the connection breaks instead."""
        if request.path.startswith("/_upstream/"):
            return self._control(request)
        hit = Hit(kind=kind, method=request.method, path=request.path, payload=request.json(), headers=request.headers)
        async with self._hit:
            self.hits.append(hit)
            self._hit.notify_all()
        rules = [rule for rule in self._rules if rule.fault.drop != "unread"]
        fault = next((rule.fault for rule in rules if rule.takes(kind, hit.text)), Fault())
        for gate in self._gates:
            await gate.pass_through(hit, worked=False)
        reply = self._reply(hit, request, fault)
        for gate in self._gates:
            await gate.pass_through(hit, worked=True)
        if fault.drop == "unanswered":
            return None
        if fault.echo:
            reply = json_reply({"error": {"message": f"got {request.headers}"}, "got": request.headers}, reply.status)
        return msgspec.structs.replace(reply, cut=fault.drop == "cut")

    def _reply(self, hit: Hit, request: Request, fault: Fault) -> Reply:
        if fault.status is not None:
            if isinstance(fault.body, str):
                return Reply(status=fault.status, headers=fault.headers, body=fault.body.encode())
            return json_reply(fault.body if fault.body is not None else {}, fault.status, fault.headers)
        try:
            reply = self._order(hit, fault) if hit.kind in PAID else self._question(hit, request)
        except RefusedOrderError as error:
            return json_reply(error.body, error.status)
        return msgspec.structs.replace(reply, headers={**reply.headers, **fault.headers})

    def _order(self, hit: Hit, fault: Fault) -> Reply:
        known = self._answers.get(hit.key or "") if self.honours_keys else None
        if known is not None:
            return known
        payload = hit.payload if isinstance(hit.payload, dict) else {}
        if fault.lie == "size":
            payload = {**payload, "size": "64x48"}
        order = Order(payload, len(self.works) + 1, self._publish, self.scribe)
        _, make = _ORDERS[hit.method, hit.path]
        made: Made = make(order) if make is not None else self._submit(order, hit, fault)
        self.works.append(Work(kind=hit.kind, payload=hit.payload, key=hit.key, cost=made.cost))
        reply = json_reply(_bent(made.body, fault), 202 if hit.kind == "submit" else 200)
        if fault.lie == "broken":
            reply = msgspec.structs.replace(reply, body=reply.body[:-7])
        if hit.key is not None:
            self._answers[hit.key] = reply
        return reply

    def _submit(self, order: Order, hit: Hit, fault: Fault) -> Made:
        upstream_apis.check_job(order)
        job = Job(f"job-{len(self.jobs) + 1}", hit.key, {})
        self.jobs[job.id] = job
        if fault.fails is not None:
            code, message = fault.fails
            job.end = {"status": "failed", "error": {"code": code, "message": message}}
            return Made({"id": job.id, "status": "queued"}, 0)
        made = upstream_apis.job_output(order)
        job.end = {"status": "succeeded", **_bent(made.body, fault)}
        return Made({"id": job.id, "status": "queued"}, made.cost)

    def _question(self, hit: Hit, request: Request) -> Reply:
        name = request.path.rsplit("/", 1)[-1]
        match hit.kind:
            case "poll" if name in self.jobs:
                job = self.jobs[name]
                job.polls += 1
                if self.polls_until_done is not None and job.polls >= self.polls_until_done:
                    job.finished = True
                return json_reply(_shown(job))
            case "lookup":
                found = [job for job in self.jobs.values() if job.key == request.query.get("key")]
                return json_reply({"data": [_shown(job) for job in found]})
            case "file" if name in self.files:
                if self.links_live:
                    return Reply(headers={"Content-Type": "application/octet-stream"}, body=self.files[name])
                return Reply(status=403, body=b"the link has expired")
        raise RefusedOrderError(404, "NotFound", f"there is nothing at {request.path}")

    def _publish(self, data: bytes) -> str:
        name = f"{len(self.files) + 1}.png"
        self.files[name] = data
        return f"{self.url}/files/{name}?signature=5e1f"

    def _control(self, request: Request) -> Reply:
        wanted = request.json() or {}
        match request.path.removeprefix("/_upstream/"):
            case "script":
                self.script(msgspec.convert(wanted.pop("fault"), Fault), **wanted)
            case "set":
                for name, value in wanted.items():
                    setattr(self, name, value)
            case "calm":
                self.calm()
        return json_reply({"hits": self.hits, "works": self.works, "bill": self.bill, "paid_hits": self.paid_hits})


@asynccontextmanager
async def running(port: socket.socket | None = None) -> AsyncIterator[Upstream]:
    """Serve on a free port of loopback, or on one that is bound, until the block ends.

    What is still held then is broken off.
    """
    upstream = Upstream()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await upstream.serve_connection(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            serving.discard(task)

    port = port or socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(serve, sock=port, limit=1 << 20)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield upstream
    finally:
        server.close()
        for task in tuple(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()


def _kind(request: Request) -> Kind:
    order = _ORDERS.get((request.method, request.path))
    if order is not None:
        return order[0]
    if request.path == "/v1/jobs":
        return "lookup"
    folders: dict[str, Kind] = {"/v1/jobs/": "poll", "/files/": "file"}
    return next((kind for folder, kind in folders.items() if request.path.startswith(folder)), "other")


def _bent(body: dict[str, Any], fault: Fault) -> dict[str, Any]:
    match fault.lie:
        case "empty":
            return {**body, **{name: [] for name in ("data", "choices", "output") if name in body}}
        case "usage":
            return {name: value for name, value in body.items() if name not in ("usage", "cost")}
        case "null usage":
            return {**body, **{name: None for name in ("usage", "cost") if name in body}}
        case _:
            return body


def _shown(job: Job) -> dict[str, Any]:
    if job.finished:
        return {"id": job.id, **job.end}
    return {"id": job.id, "status": "running" if job.polls > 1 else "queued"}


async def _main() -> None:
    async with running() as upstream:
        sys.stdout.write(json.dumps({"url": upstream.url}) + "\n")
        sys.stdout.flush()
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await reader.read()


if __name__ == "__main__":
    asyncio.run(_main())
