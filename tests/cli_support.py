"""A daemon that says what a test tells it to: HTTP over a unix socket, with what was asked kept for a look."""

import io
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, RenderableType

from tallystick.contract.events import ErrorInfo
from tallystick.contract.identity import Identity
from tallystick.engine.messages import (
    AttemptReport,
    Calls,
    Conflict,
    Diagnostic,
    ErrorBody,
    Excerpt,
    Progress,
    RunReport,
    Spend,
    Status,
)

RUN = "1m4v0q7xk2ab3c"
SCRIPT = 'async def orchestrate(ctx, args):\n    return await ctx.run("text.generate", {"prompt": "x"})\n'
VIOLATION = Diagnostic(
    2, 17, 2, 58, rule="R11", severity="error", message="text.generate is not granted", hint="grant it"
)
COUNTEREXAMPLE = Conflict(
    site="orchestrate/#1",
    kind="removed",
    message="the committed call is gone",
    hint="put it back",
    old=Excerpt(2, 17, 2, 58, text='ctx.run("text.generate", {"prompt": "x"})'),
)
SHOT = Identity("orchestrate.shot/#1", (3,), 0)


class Stream:
    """A live stream of one run: the lines to send, then a gate that a test may hold shut, then how it ends."""

    def __init__(self, *lines: Progress, hold: bool = False, cut: bool = False) -> None:
        self.lines = lines
        self.cut = cut
        self.sent = threading.Event()
        self.go_on = threading.Event()
        if not hold:
            self.go_on.set()


class Turns:
    """One answer per request, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self._left = list(answers)

    def next(self) -> Any:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


class FakeDaemon:
    """Answers by a table of (method, path); what is not in it is not found."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Any] = {}
        self.asked: list[tuple[str, str, Any]] = []

    def says(self, method: str, path: str, answer: Any) -> None:
        self.answers[method, "/v1" + path] = answer

    def refuses(self, method: str, path: str, code: str, message: str, *, hint: str = "", details: Any = None) -> None:
        self.says(method, path, ErrorBody(ErrorInfo(code, message, hint), details))

    def body(self, method: str, path: str) -> Any:
        """Return the body of the latest request to a path."""
        return next(body for asked, at, body in reversed(self.asked) if (asked, at) == (method, "/v1" + path))

    def answer(self, method: str, path: str, body: Any) -> Any:
        self.asked.append((method, path, body))
        found = self.answers.get((method, path.partition("?")[0]))
        return found.next() if isinstance(found, Turns) else found

    @contextmanager
    def serve(self, path: Path) -> Iterator["FakeDaemon"]:
        """Listen on a unix socket until the block ends."""
        path.parent.mkdir(parents=True, exist_ok=True)
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._handle()

            def do_POST(self) -> None:
                self._handle()

            def _handle(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_file = self.headers.get("Content-Type") == "application/octet-stream"
                body = content if is_file else json.loads(content) if content else None
                answer = daemon.answer(self.command, self.path, body)
                if isinstance(answer, Stream):
                    self._stream(answer)
                    return
                status = 404 if answer is None else 409 if isinstance(answer, ErrorBody) else 200
                data = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, stream: Stream) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in stream.lines:
                    self._chunk(b": keep-alive\n\nevent: progress\ndata: " + msgspec.json.encode(line) + b"\n\n")
                stream.sent.set()
                stream.go_on.wait(30)
                self.close_connection = True
                if not stream.cut:
                    self._chunk(b"")

            def _chunk(self, data: bytes) -> None:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

            def log_message(self, *_: Any) -> None:
                """Say nothing: a test's output is its own."""

            def address_string(self) -> str:
                return "unix"

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_: Any) -> None:
                """A client that left is what some tests are about."""

        with Server(str(path), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def rendered(content: RenderableType, *, width: int = 180, terminal: bool = False) -> list[str]:
    """Return the lines that are printed of something, in a pipe or in a terminal of this width."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, no_color=True, color_system=None)
    console.print(content, soft_wrap=not terminal)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def report(**changes: Any) -> RunReport:
    """Return a completed run's report, with changes."""
    plain = RunReport(
        run=RUN,
        status="completed",
        name="shots",
        result={"ok": True},
        calls=Calls(executed=7, replayed=0),
        spend=Spend(usd=0.122),
        created=1_700_000_000.0,
        updated=1_700_000_002.5,
    )
    return msgspec.structs.replace(plain, **changes)


def attempt(**changes: Any) -> AttemptReport:
    """Return an unresolved attempt, with changes."""
    plain = AttemptReport(
        attempt=4,
        identity=SHOT,
        capability="image.generate",
        effect="side_effecting",
        state="unresolved",
        revision=0,
        launch=1,
        started=1_700_000_001.0,
        payload={"prompt": "a lighthouse"},
        effect_key="k",
    )
    return msgspec.structs.replace(plain, **changes)


def progress(kind: Any, **fields: Any) -> Progress:
    """Return one line of a stream."""
    return Progress(kind=kind, **({"at": 1_700_000_001.0} | fields))


def status(**changes: Any) -> Status:
    """Return an idle daemon's status, with changes."""
    plain = Status(
        version="0.1.0", pid=1, home="/h", store="/h/log", driver="locked", started=0.0, live=0, queued=0, runs=3
    )
    return msgspec.structs.replace(plain, **changes)


def ran(daemon: FakeDaemon, ended: RunReport, *lines: Progress) -> None:
    """Have the daemon accept a run (and a resume), stream it, and report how it ended."""
    running = report(status="running", result=None)
    daemon.says("POST", "/runs", running)
    daemon.says("POST", f"/runs/{RUN}/resume", running)
    daemon.says("POST", f"/runs/{RUN}/cancel", running)
    daemon.says("GET", f"/runs/{RUN}/events", Stream(progress("snapshot"), *lines, progress("ended")))
    daemon.says("GET", f"/runs/{RUN}", ended)
