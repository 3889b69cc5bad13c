"""HTTP/1.1 as the upstream of the tests speaks it: just enough, and all the ways of breaking off."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

_TLS_HANDSHAKE = b"\x16"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it came; ``headers`` with names in lower case, ``query`` with the last value of each name."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""

    def json(self) -> Any:
        """Return the body as data, None when it is empty or not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered. ``cut``: half the body, then the connection breaks, though the head promised all of it."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b""
    cut: bool = False


def json_reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a reply of JSON."""
    return Reply(
        status=status, headers={"Content-Type": "application/json", **(headers or {})}, body=msgspec.json.encode(data)
    )


async def read_head(reader: asyncio.StreamReader) -> Request | None:
    """Read the head of the next request; None when the client has gone, or begins a TLS handshake."""
    try:
        start = await reader.readexactly(1)
        if start == _TLS_HANDSHAKE:
            return None
        head = start + await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = line.split(" ")
    url = urlsplit(target)
    headers = {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    query = {name: values[-1] for name, values in parse_qs(url.query).items()}
    return Request(method=method, path=unquote(url.path), query=query, headers=headers)


async def read_body(reader: asyncio.StreamReader, head: Request) -> bytes:
    """Read the body that a head announces."""
    if head.headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(head.headers.get("content-length", "0")))
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return bytes(body)


async def write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Send a reply, or as much of it as it is meant to have."""
    try:
        reason = HTTPStatus(reply.status).phrase
    except ValueError:
        reason = "Unheard Of"
    headers = {"Content-Length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    body = reply.body[: len(reply.body) // 2] if reply.cut else reply.body
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
    await writer.drain()


def hang_up(writer: asyncio.StreamWriter) -> None:
    """Break the connection off at once, with a reset."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
