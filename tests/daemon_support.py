"""Real daemons for tests: a home of their own, a log that is read as it is written, a client, and a desk.

Nothing here polls: a daemon is ready when its log says so, it has ended when its process has, a call is out when the
desk has it. ``premises`` ends and removes everything, also when a test fails.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import msgspec
from anyio.abc import SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

import desk_provider
from scripted_provider import Hit, recorded
from tallystick.engine.messages import (
    AttemptReport,
    DoctorReport,
    ErrorBody,
    Limits,
    Progress,
    ReconcileRequest,
    ResumeRequest,
    RunReport,
    RunRequest,
    Status,
)
from tallystick.providers.catalogue import CATALOGUE

T = TypeVar("T")

TESTS = Path(__file__).parent
ALL = tuple(CATALOGUE)
#: Seconds after which a daemon that neither starts nor ends is a failure of the test.
PATIENCE = 30.0


class RefusedError(Exception):
    """The daemon refused: the HTTP status and the body."""

    def __init__(self, status: int, body: ErrorBody) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.code = body.error.code
        self.message = body.error.message
        self.hint = body.error.hint
        self.details = body.details


class HeldCall:
    """A call that stands at the desk."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self._answer = anyio.Event()

    def answer(self) -> None:
        """Let it succeed."""
        self._answer.set()

    async def answered(self) -> None:
        """Wait until it may."""
        await self._answer.wait()


class Desk:
    """Where the calls of a daemon arrive; they are held until the test answers them, or at once after ``open``."""

    def __init__(self) -> None:
        self.held: list[HeldCall] = []
        self.is_open = False
        self._arrived = anyio.Event()

    async def reached(self, calls: int) -> list[HeldCall]:
        """Wait until so many calls have arrived since the desk exists, and return them."""
        while len(self.held) < calls:
            await self._arrived.wait()
        return self.held

    def open(self) -> None:
        """Answer whatever is held, and all that comes."""
        self.is_open = True
        for call in self.held:
            call.answer()

    async def take(self, stream: SocketStream) -> None:
        """Serve the connection of one call."""
        async with stream:
            line = await BufferedByteReceiveStream(stream).receive_until(b"\n", 1 << 20)
            call = HeldCall(msgspec.json.decode(line, type=Hit))
            self.held.append(call)
            if self.is_open:
                call.answer()
            self._arrived.set()
            self._arrived = anyio.Event()
            await call.answered()
            try:
                await stream.send(b"\n")
            except anyio.BrokenResourceError:
                return  # its daemon is gone


class Client:
    """What a test asks of a daemon, over its socket."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, kind: type[T]) -> T:
        """Ask.

        Raises:
            RefusedError: the daemon refused.
        """
        return _decoded(await self.http.get(path), kind)

    async def post(self, path: str, kind: type[T], body: Any = None) -> T:
        """Send a Struct; errors as ``get``."""
        content = None if body is None else msgspec.json.encode(body)
        return _decoded(await self.http.post(path, content=content, headers={"content-type": "application/json"}), kind)

    async def submit(self, source: str, args: Any = None, **limits: Any) -> str:
        """Start a run with every capability granted, and return its id."""
        request = RunRequest(source=source, args=args, limits=Limits(**{"grants": ALL, **limits}))
        return (await self.post("/v1/runs", RunReport, request)).run

    async def begin(self, run: str, source: str | None = None, **options: Any) -> RunReport:
        """Resume a run."""
        return await self.post(f"/v1/runs/{run}/resume", RunReport, ResumeRequest(source=source, **options))

    async def resume(self, run: str, source: str | None = None, **options: Any) -> RunReport:
        """Resume a run and wait for the end of the launch."""
        await self.begin(run, source, **options)
        return await self.end(run)

    async def reconcile(self, run: str, attempt: int, **decision: Any) -> AttemptReport:
        """Settle an attempt."""
        path = f"/v1/runs/{run}/attempts/{attempt}/reconcile"
        return await self.post(path, AttemptReport, ReconcileRequest(who="tester", **decision))

    async def cancel(self, run: str) -> RunReport:
        """Cancel a run."""
        return await self.post(f"/v1/runs/{run}/cancel", RunReport)

    async def show(self, run: str) -> RunReport:
        """Report a run."""
        return await self.get(f"/v1/runs/{run}", RunReport)

    async def attempts(self, run: str) -> list[AttemptReport]:
        """List the attempts of a run."""
        return await self.get(f"/v1/runs/{run}/attempts", list[AttemptReport])

    async def status(self) -> Status:
        """Return the daemon's status."""
        return await self.get("/v1/status", Status)

    async def doctor(self) -> DoctorReport:
        """Examine the daemon."""
        return await self.get("/v1/doctor", DoctorReport)

    @asynccontextmanager
    async def watch(self, run: str) -> AsyncIterator[AsyncIterator[Progress]]:
        """Open the live stream of a run."""
        async with self.http.stream("GET", f"/v1/runs/{run}/events") as response:
            if response.is_error:
                await response.aread()
                raise _refused(response)
            yield _progress(response)

    async def lines(self, run: str) -> list[Progress]:
        """Watch a run to its end."""
        async with self.watch(run) as stream:
            return [line async for line in stream]

    async def end(self, run: str) -> RunReport:
        """Wait until a run is not live, and report it."""
        await self.lines(run)
        return await self.show(run)


class Daemon:
    """One daemon's process, and what it has logged so far.

    Plain descriptors, no child watcher of asyncio: that one races with every signal sent to a process that has ended.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", state: Path) -> None:
        self.process = process
        self.log: list[str] = []
        self._end = os.pidfd_open(process.pid)
        self._state = state
        self._news = anyio.Event()
        self._silent = anyio.Event()
        if process.stderr is None:
            self._silent.set()

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def events(self) -> list[dict[str, Any]]:
        """The entries of its log."""
        return [json.loads(line) for line in self.log if line.startswith("{")]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of one kind."""
        return [entry for entry in self.events if entry["event"] == event]

    async def read_log(self) -> None:
        """Take in what it writes to its standard error until that ends."""
        assert self.process.stderr is not None
        rest = b""
        with self.process.stderr as pipe:
            while True:
                await anyio.wait_readable(pipe)
                data = os.read(pipe.fileno(), 1 << 16)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                self.log += [line.decode("utf-8", "replace") for line in lines]
                self._tell()
        self.log += [rest.decode("utf-8", "replace")] if rest else []
        self._silent.set()
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def says(self, event: str) -> dict[str, Any]:
        """Wait for an entry of its log.

        Raises:
            AssertionError: its log ended without one.
        """
        assert await self.comes_to_say(event), f"the daemon ended without {event}:\n" + "\n".join(self.log)
        return self.logged(event)[0]

    async def comes_to_say(self, event: str) -> bool:
        """Wait for an entry of its log, or its end; return whether it came."""
        with anyio.fail_after(PATIENCE):
            while not self.logged(event) and not self._silent.is_set():
                await self._news.wait()
        return bool(self.logged(event))

    async def ended(self) -> int:
        """Wait for its end; return its exit status, or minus its signal. All of its log is in ``log`` then."""
        with anyio.fail_after(PATIENCE):
            await self._silent.wait()
            if self.process.returncode is None:
                await anyio.wait_readable(self._end)
                os.close(self._end)
        return self.process.wait()

    def children(self) -> list[int]:
        """Return descriptors of its child processes as they are now; they become readable when a child ends."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return [os.pidfd_open(int(pid)) for thread in threads for pid in (thread / "children").read_text().split()]

    async def kill(self) -> None:
        """Send it SIGKILL and wait for its end."""
        self.process.kill()
        assert await self.ended() == -signal.SIGKILL

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self.process.terminate()

    async def stop(self) -> None:
        """Send it SIGTERM and wait for its orderly end."""
        self.terminate()
        assert await self.ended() == 0, "\n".join(self.log)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Connect to its socket."""
        transport = httpx.AsyncHTTPTransport(uds=os.fspath(self._state / "tally.sock"))
        async with httpx.AsyncClient(transport=transport, base_url="http://tally", timeout=PATIENCE) as http:
            yield Client(http)


class Premises:
    """A state directory, the desk that answers its daemons' calls, and the record of every call that was made."""

    def __init__(self, folder: Path, tasks: TaskGroup) -> None:
        self.folder = folder
        self.state = folder / "s"
        self.desk = Desk()
        self.started: list[Daemon] = []
        self._record = folder / "hits"
        self._desk_socket = folder / "desk"
        self._tasks = tasks

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.state / "tally.sock"

    @property
    def hits(self) -> list[Hit]:
        """Every call that has reached the provider, over all daemons."""
        return recorded(self._record)

    def configure(
        self,
        *,
        daemon: Mapping[str, Any] | None = None,
        sandbox: Mapping[str, Any] | None = None,
        provider: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a configuration where the test's provider serves everything."""
        policy = {"provider": "desk", **(policy or {})}
        sections: dict[str, Mapping[str, Any]] = {
            "daemon": {"warm": 0, **(daemon or {})},
            "sandbox": {"driver": "locked", **(sandbox or {})},
            "providers.desk": {"record": str(self._record), **(provider or {})},
        } | {f'capabilities."{name}"': policy for name in CATALOGUE}
        self.write_config("".join(map(_toml, sections, sections.values())))

    def write_config(self, text: str) -> None:
        """Write the configuration as it is given."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        (self.state / "config.toml").write_text(text, encoding="utf-8")

    async def take_calls(self, **configuration: Any) -> None:
        """Have the desk hold every call; the rest as ``configure``."""
        listener = await anyio.create_unix_listener(self._desk_socket)

        async def serve() -> None:
            async with listener:
                await listener.serve(self.desk.take)

        self._tasks.start_soon(serve)
        self.configure(provider={"desk": str(self._desk_socket)}, **configuration)

    def spawn(
        self,
        *,
        home: Path | None = None,
        fault: str = "",
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
        user: int | None = None,
        log: int = subprocess.PIPE,
    ) -> Daemon:
        """Start a daemon, ready or not.

        Args:
            home: the state directory; these premises' own by default.
            fault: a fault point, as ``TALLYSTICK_FAULT`` takes it.
            environment: what else it finds in its environment.
            umask: its umask; by default that of this process.
            user: the user and group that it becomes, for tests that are root.
            log: a descriptor for its log, which is then not read here.
        """
        paths = [self.folder, TESTS, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "TALLYSTICK_HOME": str(home or self.state),
            "TALLYSTICK_LOG": "json",
            "TALLYSTICK_FAULT": fault,
            **(environment or {}),
        }
        process = subprocess.Popen(
            [sys.executable, "-P", *(["-m", "tallystick.engine.daemon"] if user is None else ["-c", _as(user)])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=variables,
            umask=umask,
        )
        daemon = Daemon(process, home or self.state)
        self.started.append(daemon)
        if process.stderr is not None:
            self._tasks.start_soon(daemon.read_log)
        return daemon

    async def start(self, **options: Any) -> Daemon:
        """Start a daemon and wait until it is ready."""
        daemon = self.spawn(**options)
        await daemon.says("daemon_ready")
        return daemon

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[tuple[Daemon, Client]]:
        """Start a daemon and connect to it; stop it in the end if it still runs."""
        daemon = await self.start(**options)
        async with daemon.client() as client:
            yield daemon, client
        if daemon.process.returncode is None:
            await daemon.stop()


async def assert_standing(place: Premises, client: Client, run: str) -> list[AttemptReport]:
    """Assert what holds after every story of a run that is not live, whatever was killed; return its attempts.

    The record of the provider is believed, the daemon is asked. Only for premises with this one run.
    """
    attempts = await client.attempts(run)
    report = await client.show(run)
    committed = [attempt.identity for attempt in attempts if attempt.state == "committed"]
    assert len(committed) == len(set(committed)), "an identity has two records"
    assert [attempt for attempt in attempts if attempt.state == "in_flight"] == [], "an attempt has no end"
    paid, written = Counter(hit.key for hit in place.hits), Counter(attempt.effect_key for attempt in attempts)
    assert paid <= written, "a call reached the provider without an attempt of its own"
    assert [attempt for attempt in attempts if attempt.state == "unresolved"] == list(report.unresolved)
    assert report.calls.unresolved == len(report.unresolved)
    return attempts


@asynccontextmanager
async def premises() -> AsyncIterator[Premises]:
    """Yield premises with a configuration; afterwards no daemon of theirs lives and their folder is gone.

    The folder is short and directly in the temporary directory, for a socket's path has 107 bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix="ts"))
    failure: Exception | None = None
    try:
        desk_provider.install(folder)
        # A failure of the test is carried out of the task group by hand: it would wrap it in a group.
        async with anyio.create_task_group() as tasks:
            place = Premises(folder, tasks)
            try:
                place.configure()
                yield place
            except Exception as error:  # noqa: BLE001 - raised again below
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    for daemon in place.started:
                        daemon.process.kill()
                        await daemon.ended()
                tasks.cancel_scope.cancel()
    finally:
        shutil.rmtree(folder)
    if failure is not None:
        raise failure


def _as(user: int) -> str:
    """A program that becomes another user once it has loaded the daemon, which that user may not be able to read."""
    return f"""
import os, sys
from tallystick.engine import daemon
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
sys.exit(daemon.main())
"""


def _decoded(response: httpx.Response, kind: type[T]) -> T:
    if response.is_error:
        raise _refused(response)
    return msgspec.json.decode(response.content, type=kind)


def _refused(response: httpx.Response) -> RefusedError:
    return RefusedError(response.status_code, msgspec.json.decode(response.content, type=ErrorBody))


async def _progress(response: httpx.Response) -> AsyncIterator[Progress]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield msgspec.json.decode(line.removeprefix("data: "), type=Progress)


def _toml(section: str, values: Mapping[str, Any]) -> str:
    return f"[{section}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
