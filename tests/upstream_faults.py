"""What tests order of the upstream: faults, gates that hold requests, and the requests that both look at."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Kind = Literal["image", "chat", "submit", "poll", "lookup", "file", "other"]
PAID: tuple[Kind, ...] = ("image", "chat", "submit")


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A request that arrived with its body; ``key`` is its idempotency key."""

    kind: Kind
    method: str
    path: str
    payload: Any
    headers: dict[str, str]

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")

    @property
    def text(self) -> str:
        """Path and payload as text, which faults and gates look into."""
        return f"{self.path} {json.dumps(self.payload, sort_keys=True, ensure_ascii=False)}"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens instead of a good answer, or to it.

    ``status`` with ``body`` (data, or text as it is): answered at once, and nothing is done or billed. ``headers`` go
    with whatever is answered. ``drop``: "unread" breaks off before the body is read, and it is no hit; "unanswered"
    when the work is done; "cut" within the answer. ``lie``: the work is done and billed, and the answer is "broken"
    JSON, has "empty" data, no "usage", a "null usage", or a picture of another "size". ``echo``: the answer repeats the
    headers of the request. ``fails`` (code and words): the job that is submitted will fail.
    """

    status: int | None = None
    headers: Mapping[str, str] = {}
    body: Any = None
    drop: Literal["unread", "unanswered", "cut"] | None = None
    lie: Literal["broken", "empty", "usage", "null usage", "size"] | None = None
    echo: bool = False
    fails: tuple[str, str] | None = None


class Rule(msgspec.Struct):
    """A fault and the requests that it happens to: after the first ``skip`` that match, so many ``times``."""

    fault: Fault
    kind: Kind | None
    containing: str
    skip: int
    times: int | None

    def takes(self, kind: Kind, text: str) -> bool:
        """Return whether it concerns this request, and count it if so."""
        if self.kind not in (None, kind) or self.containing not in text or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times = None if self.times is None else self.times - 1
        return True


class Gate:
    """Holds the requests that match it until the test lets them go."""

    def __init__(self, kind: Kind | None, containing: str, *, worked: bool) -> None:
        self._kind = kind
        self._containing = containing
        self._open = asyncio.Event()
        self._arrived = asyncio.Condition()
        self.worked = worked
        self.waiting: list[Hit] = []

    def release(self) -> None:
        """Let every held request go, and hold no more."""
        self._open.set()

    async def reached(self, requests: int = 1) -> None:
        """Wait until so many requests were held."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.waiting) >= requests)

    async def pass_through(self, hit: Hit, *, worked: bool) -> None:
        concerned = self._kind in (None, hit.kind) and self._containing in hit.text and worked == self.worked
        if not concerned or self._open.is_set():
            return
        async with self._arrived:
            self.waiting.append(hit)
            self._arrived.notify_all()
        await self._open.wait()
