"""One HTTP request, sent once: what came back, or how it got lost."""

import functools
import logging
import ssl
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import httpx
import msgspec

from tallystick.contract.capability import FailureKind
from tallystick.kernel import Clock, cancel_after
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.errors import RefusalKind
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.settings import HttpSettings

_REASON_LIMIT = 300
_FRAMES = frozenset({"content-length", "transfer-encoding"})


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be sent. ``body`` is encoded JSON; ``timeout`` in seconds, for everything."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    timeout: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came: the status, the headers with names in lower case, the body, and whether that is all of it.

    ``cut`` says why not: the connection broke, or the body is larger than ``max_answer`` bytes.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: Literal["", "broken", "too large"] = ""

    def parsed(self) -> Any:
        """Return the body as data, or ``MISSING`` when it is not JSON."""
        try:
            return msgspec.json.decode(self.body.removeprefix(b"\xef\xbb\xbf"))
        except msgspec.DecodeError:
            return MISSING


class NotSent(msgspec.Struct, frozen=True):
    """The request never left: no name, no connection, no TLS; or, of another ``kind``, it could not be made."""

    reason: str
    kind: RefusalKind = "unavailable"


class Lost(msgspec.Struct, frozen=True):
    """The request left, perhaps in part, and no answer came."""

    reason: str
    kind: FailureKind


Sent: TypeAlias = Answer | NotSent | Lost


@functools.cache
def tls() -> ssl.SSLContext:
    """Return what all connections of the process trust: reading the certificates takes a twentieth of a second."""
    return httpx.create_ssl_context()


class Exchange:
    """Sends requests to one API with its key. Nothing is sent twice, no redirect is followed.

    A request that costs money gets a connection of its own: on one that was kept open, an answer that does not come
    may be the goodbye of an idle server, and a paid call would be in doubt for nothing.
    """

    def __init__(self, settings: HttpSettings, credential: Credential, clock: Clock) -> None:
        # Below this level they write answers' headers and signed links, which are credentials, into the daemon's log.
        for library in ("httpx", "httpcore"):
            logging.getLogger(library).setLevel(logging.WARNING)
        self._base = settings.base_url.rstrip("/")
        self._headers = {"Accept": "application/json", **settings.headers}
        self._credential = credential
        self._clock = clock
        self._timeouts = settings.timeouts
        self._max_answer = settings.max_answer
        common: dict[str, Any] = {"verify": tls(), "trust_env": settings.proxy}
        self._fresh = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0), **common)
        self._kept = httpx.AsyncClient(limits=httpx.Limits(max_connections=None), **common)

    async def send(self, request: Request, *, once: bool) -> Sent:
        """Send a request and wait for all of its answer.

        Args:
            request: what to send.
            once: whether a second request would be a second payment; see the class.
        """
        headers = {**self._headers, **request.headers, **self._credential.headers}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        url, client = self._base + request.path, self._fresh if once else self._kept
        try:
            whole = client.build_request(request.method, url, headers=headers, content=request.body)
        except httpx.InvalidURL as error:
            return NotSent(self._reason("the address cannot be used", error))
        return await self.relay(whole, request.timeout, once=once)

    async def relay(self, request: httpx.Request, timeout: float, *, once: bool) -> Sent:  # noqa: ASYNC109 - by our clock
        """Send a request as it is, without the key, and wait for all of its answer; see ``send``."""
        sent: Sent = Lost(f"no answer within {timeout:g} s", "timeout")
        with cancel_after(self._clock, timeout):
            sent = await self._send(request, timeout, self._fresh if once else self._kept)
        return sent  # noqa: RET504 - the block above may be cut short

    async def close(self) -> None:
        """Release the connections."""
        await self._fresh.aclose()
        await self._kept.aclose()

    async def _send(self, request: httpx.Request, limit: float, client: httpx.AsyncClient) -> Sent:
        wait = httpx.Timeout(limit, connect=self._timeouts.connect, write=self._timeouts.send)
        request.extensions = {"timeout": wait.as_dict()}
        try:
            response = await client.send(request, stream=True)
            try:
                return await self._answer(response)
            finally:
                await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            return NotSent(self._reason("no connection", error))
        except httpx.UnsupportedProtocol as error:
            return NotSent(self._reason("the address cannot be used", error))
        except httpx.TimeoutException as error:
            return Lost(self._reason("no answer in time", error), "timeout")
        except httpx.HTTPError as error:
            return Lost(self._reason("the connection broke before an answer came", error), "unavailable")

    async def _answer(self, response: httpx.Response) -> Answer:
        body = bytearray()
        cut: Literal["", "broken", "too large"] = ""
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._max_answer:
                    cut = "too large"
                    break
        except httpx.HTTPError:
            cut = "broken"
        headers = {name.lower(): value for name, value in response.headers.items()}
        answer = Answer(status=response.status_code, headers=headers, body=bytes(body), cut=cut)
        if not headers.keys() & _FRAMES and answer.parsed() is MISSING:
            # Only the end of the connection ended this body, and it ended too early.
            return msgspec.structs.replace(answer, cut="broken")
        return answer

    def _reason(self, what: str, error: Exception) -> str:
        said = str(error)[:_REASON_LIMIT]
        return self._credential.hide(f"{what}: {said or type(error).__name__}")
