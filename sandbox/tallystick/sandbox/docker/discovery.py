"""Where the engine is, and whether one answers: quick, and without the engine's client."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import anyio

SOCKETS = ("/var/run/docker.sock", "/run/docker.sock")
PATIENCE = 2.0  # seconds for a ping that takes a millisecond

_PING = b"GET /_ping HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n"


class Endpoint(NamedTuple):
    """An engine's address: a path of a unix socket, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.path else f"tcp://{self.host}:{self.port}"


class Availability(NamedTuple):
    """Whether an engine answers at ``endpoint``; ``reason`` says why not, and what to do."""

    endpoint: Endpoint | None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.endpoint is not None


def find(environment: Mapping[str, str] | None = None) -> Endpoint:
    """Return where the engine should be: where ``DOCKER_HOST`` says, else at the first usual socket that exists.

    Raises:
        ValueError: ``DOCKER_HOST`` names what this driver cannot use; the message says so.
    """
    environment = os.environ if environment is None else environment
    named = environment.get("DOCKER_HOST", "")
    if named:
        return parse(named, tls=environment.get("DOCKER_TLS_VERIFY", "") not in {"", "0"})
    own = Path(environment.get("XDG_RUNTIME_DIR", "/nowhere")) / "docker.sock"
    return Endpoint(path=next((path for path in (*SOCKETS, str(own)) if Path(path).exists()), SOCKETS[0]))


def parse(url: str, *, tls: bool = False) -> Endpoint:
    """Parse an address as ``DOCKER_HOST`` holds it.

    Raises:
        ValueError: it is none that this driver can use; the message says so.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "unix" and rest.startswith("/"):
        return Endpoint(path=rest)
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme == "tcp" and not tls and host and port.isdecimal():
        return Endpoint(host=host, port=int(port))
    raise ValueError(
        f"DOCKER_HOST is {url}{' with TLS' if tls else ''}; the docker sandbox speaks to an engine over "
        "unix:///path/to/socket or plain tcp://host:port"
    )


async def available(environment: Mapping[str, str] | None = None) -> Availability:
    """Ask the engine for a sign of life; takes a few milliseconds, at most ``PATIENCE`` seconds."""
    try:
        endpoint = find(environment)
    except ValueError as error:
        return Availability(None, str(error))
    try:
        with anyio.fail_after(PATIENCE):
            answer = await _ping(endpoint)
    except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
        return Availability(None, unreachable(str(endpoint), error))
    if not answer.startswith(b"HTTP/1.1 200"):
        return Availability(None, f"what answers at {endpoint} is no Docker Engine")
    return Availability(endpoint)


async def _ping(endpoint: Endpoint) -> bytes:
    async with await open_stream(endpoint) as stream:
        await stream.send(_PING)
        return await stream.receive()


async def open_stream(endpoint: Endpoint) -> anyio.abc.SocketStream:
    """Connect to an engine.

    Raises:
        OSError: it cannot be reached.
    """
    if endpoint.path:
        return await anyio.connect_unix(endpoint.path)
    return await anyio.connect_tcp(endpoint.host, endpoint.port)


def unreachable(where: str, error: BaseException) -> str:
    """Say why an engine could not be reached, and what to do."""
    cause = error
    while cause.__cause__ is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    if isinstance(cause, PermissionError):
        return (
            f"the engine's socket {where} is closed to this user; add the user to the group that owns the socket "
            "(usually docker) and log in again"
        )
    if isinstance(cause, FileNotFoundError):
        return f"there is no engine at {where}; start one, or point DOCKER_HOST at it"
    if isinstance(cause, TimeoutError):
        return f"the engine at {where} does not answer; look at its log, or restart it"
    return f"the engine at {where} is down ({cause}); start it and try again"
