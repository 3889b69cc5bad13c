"""Where litellm's requests leave: one for each call, and what became of it is known at first hand.

litellm renames what it is told (a timeout becomes a status 408, an error 500 whose words resemble those of a refusal
a status 400) and sends again on its own where a connection fails. So none of its clients has a connection: all of them
end in a ``Wire``, which lets one request out for each call and keeps what came back.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import anyio.from_thread
import httpx

from tallystick.providers.http.exchange import Answer, Lost, NotSent, Sent

Relay = Callable[[httpx.Request], Awaitable[Sent]]

# An answer is passed on decoded and whole.
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class SecondRequestError(httpx.TransportError):
    """A call wanted to send an order twice; the second was not sent."""


class Order:
    """One call on its way: ``sent`` is what became of what it ordered, None as long as nobody knows.

    Its headers are put on here: on some routes litellm would write them into the body.
    """

    def __init__(self, relay: Relay, headers: Mapping[str, str]) -> None:
        self.sent: Sent | None = None
        self._ordered = False
        self._relay = relay
        self._headers = headers

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send the order of this call, or a question (``GET``) before or after it.

        Raises:
            SecondRequestError: the order was sent before.
            httpx.TransportError: there is no answer; ``sent`` says why.
        """
        orders, ordered = request.method != "GET", self._ordered
        if orders and ordered:
            raise SecondRequestError("one call is one request; nothing was sent again")
        self._ordered = orders or ordered
        await request.aread()
        request.headers.update(self._headers)
        sent = await self._relay(request)
        if orders or (ordered and _good(sent)):
            self.sent = sent
        elif ordered:
            self.sent = Lost(f"ordered, but the look at it failed: {_said(sent)}", "unavailable")
        if not isinstance(sent, Answer):
            raise httpx.ConnectError(sent.reason) if isinstance(sent, NotSent) else httpx.ReadError(sent.reason)
        if sent.cut:
            raise httpx.ReadError("the answer was cut off")
        headers = {name: value for name, value in sent.headers.items() if name not in _FRAMING}
        return httpx.Response(sent.status, headers=headers, content=sent.body, request=request)


class Wire(httpx.AsyncBaseTransport):
    """A transport without a connection: requests go where the call that makes them says."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request to the call that it belongs to; what belongs to none is not sent."""
        order = _CURRENT.get()
        if order is None:
            raise httpx.UnsupportedProtocol("this request belongs to no call; it was not sent")
        return await order.send(request)


class ThreadedWire(httpx.BaseTransport):
    """The same for clients that block: pictures are made in threads."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request to the call that it belongs to, and wait; see ``Wire``."""
        request.read()
        return anyio.from_thread.run(Wire().handle_async_request, request)


@contextmanager
def carrying(order: Order) -> Iterator[None]:
    """Let the requests that are made inside belong to an order."""
    token = _CURRENT.set(order)
    try:
        yield
    finally:
        _CURRENT.reset(token)


_CURRENT: ContextVar[Order | None] = ContextVar("tallystick_litellm_order", default=None)


def _good(sent: Sent) -> bool:
    return isinstance(sent, Answer) and httpx.codes.is_success(sent.status) and not sent.cut


def _said(sent: Sent) -> str:
    return f"status {sent.status}" if isinstance(sent, Answer) else sent.reason
