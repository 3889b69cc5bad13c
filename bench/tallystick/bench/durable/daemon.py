"""A daemon of its own, asked over its socket as any client does: from the request to the result of a one-call run."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tallystick.bench.instant import TEXT
from tallystick.engine.paths import HOME_VARIABLE

ONE_CALL = """
async def orchestrate(ctx, args):
    return await ctx.run("text.generate", {"prompt": f"line {args}"})
"""
CONFIG = '[sandbox]\ndriver = "locked"\n'
_STARTED = 30.0


class DaemonClient:
    """Asks a daemon for runs."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._next = 0

    async def status(self) -> None:
        """Ask how it is."""
        (await self._http.get("/v1/status")).raise_for_status()

    async def one_call(self) -> float:
        """Have a run of one call made; return the seconds until its result is here."""
        self._next += 1
        body = {"source": ONE_CALL, "args": self._next, "limits": {"grants": [TEXT]}}
        began = time.perf_counter()
        run = (await self._http.post("/v1/runs", json=body)).raise_for_status().json()["run"]
        async with self._http.stream("GET", f"/v1/runs/{run}/events") as events:
            async for _ in events.aiter_lines():
                pass
        report = (await self._http.get(f"/v1/runs/{run}")).raise_for_status().json()
        taken = time.perf_counter() - began
        assert report["status"] == "completed", report
        return taken


@asynccontextmanager
async def daemon(home: Path) -> AsyncIterator[DaemonClient]:
    """Start a daemon on a state directory, and stop it in the end."""
    _configure(home)
    with (home / "daemon.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tallystick.engine.daemon",
            env={**os.environ, HOME_VARIABLE: str(home)},
            stdout=log,
            stderr=log,
        )
    try:
        async with asyncio.timeout(_STARTED):
            await _listening(home / "tally.sock", process)
        transport = httpx.AsyncHTTPTransport(uds=str(home / "tally.sock"))
        async with httpx.AsyncClient(transport=transport, base_url="http://tally", timeout=_STARTED) as http:
            yield DaemonClient(http)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


def _configure(home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")


async def _listening(socket: Path, process: asyncio.subprocess.Process) -> None:
    while process.returncode is None:
        try:
            _, writer = await asyncio.open_unix_connection(str(socket))
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return
    raise RuntimeError(f"the daemon ended with {process.returncode}; see {socket.parent / 'daemon.log'}")
