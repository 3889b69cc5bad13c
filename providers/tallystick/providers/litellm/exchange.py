"""litellm in the place of an HTTP exchange: it words the request and reads the answer, ``wire`` carries both."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import httpx
import msgspec

from tallystick.kernel import Clock
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.errors import RefusalKind
from tallystick.providers.http.exchange import Answer, Exchange, Lost, NotSent, Request, Sent
from tallystick.providers.http.paths import MISSING
from tallystick.providers.litellm import wire
from tallystick.providers.litellm.settings import COST, PROXY, LitellmSettings

PICTURES = "/images/generations"
_THREADS = 128
_LOOK = 10.0
_WAIT = "llm_provider-retry-after"
_SLACK = 60.0
_TEXT_LIMIT = 1_000
# What litellm refuses before anything is sent; with any other error and no request seen, nobody knows.
_BEFORE: Mapping[str, RefusalKind] = {
    "AuthenticationError": "unauthorized",
    "BadRequestError": "invalid_request",
    "LiteLLMUnknownProvider": "invalid_request",
    "UnsupportedParamsError": "invalid_request",
}
# Where an API says what was used.
_USED = ("usage", "usageMetadata")
# Where an API names its answer; without it litellm makes a name up.
_IDS = ("id", "responseId")
_PER_PICTURE = ("input_cost_per_image", "output_cost_per_image", "input_cost_per_pixel", "output_cost_per_pixel")


class LitellmExchange(Exchange):
    """Sends the requests of the language of OpenAI to wherever litellm routes them."""

    def __init__(self, library: Any, settings: LitellmSettings, credential: Credential, clock: Clock) -> None:
        super().__init__(settings.http(), credential, clock)
        self._library = library
        self._route = settings.route
        self._threads = anyio.CapacityLimiter(_THREADS)
        key = credential.headers.get("Authorization", "").removeprefix("Bearer ")
        fixed = {"api_base": settings.base_url, "api_key": key, "api_version": settings.api_version}
        self._fixed = {name: value for name, value in fixed.items() if value}

    async def send(self, request: Request, *, once: bool) -> Sent:
        """Have litellm send a request, once; return what went over the wire, or what litellm read in it."""
        order = wire.Order(functools.partial(self.relay, timeout=request.timeout, once=once), request.headers)
        asked = msgspec.json.decode(request.body or b"{}")
        with wire.carrying(order):
            try:
                response = await self._ask(request, asked)
            except Exception as error:  # noqa: BLE001 - litellm raises classes of many libraries; the wire knows better
                return self._failed(order.sent, error)
        return self._read(order.sent, response, asked)

    async def _ask(self, request: Request, asked: dict[str, Any]) -> Any:
        given = {
            **asked,
            **self._fixed,
            "timeout": request.timeout + _SLACK,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": False,
            "caching": False,
        }
        if request.path != PICTURES:
            return await self._library.acompletion(**given)
        # Its asynchronous form waits in the loop's own few threads, some routes for the answer even: those threads look
        # up addresses, too, and with enough pictures at once none would be left for it.
        picture = functools.partial(self._library.image_generation, **given)
        return await anyio.to_thread.run_sync(picture, limiter=self._threads)

    async def look(self, path: str) -> Any:
        """Return what a LiteLLM proxy says of itself at a path of its own, ``MISSING`` where it says nothing."""
        at = self._base.removesuffix("/v1") + path
        sent = await self.relay(httpx.Request("GET", at, headers=self._credential.headers), _LOOK, once=False)
        return sent.parsed() if isinstance(sent, Answer) and sent.status == httpx.codes.OK else MISSING

    def _failed(self, sent: Sent | None, error: Exception) -> Sent:
        if sent is not None:
            return _translated(sent) if isinstance(sent, Answer) else sent
        said = self._credential.hide(" ".join(str(error).split())[:_TEXT_LIMIT]) or type(error).__name__
        if type(error).__name__ in _BEFORE:
            return NotSent(f"nothing was sent: {said}", _BEFORE[type(error).__name__])
        return Lost(f"litellm failed, and nothing was seen of a request: {said}", "unavailable")

    def _read(self, sent: Sent | None, response: Any, asked: dict[str, Any]) -> Answer:
        data = response.model_dump(mode="json", warnings=False)
        seen = sent if isinstance(sent, Answer) else None
        headers = {} if seen is None else dict(seen.headers)
        said = MISSING if seen is None else seen.parsed()
        told = _tells_usage(said)
        cost = self._cost(seen, response, str(asked.get("model")), told=told)
        headers.pop(COST, None)
        if cost is not None:
            headers[COST] = repr(cost)
        used = {**(data.get("usage") or {} if told else {}), **_traces(said, headers)}
        return Answer(status=httpx.codes.OK, headers=headers, body=msgspec.json.encode({**data, "usage": used}))

    def _cost(self, seen: Answer | None, response: Any, model: str, *, told: bool) -> float | None:
        """Return dollars, or None: a price that is not known shows as zero, and is not."""
        if self._route == PROXY:
            return None if seen is None else _positive(seen.headers.get(COST))
        if not told and not self._by_the_picture(model):
            return None
        try:
            return _positive(self._library.completion_cost(completion_response=response, model=model))
        except Exception:  # noqa: BLE001 - a model that its table lacks is an error of a class of its own
            return None

    def _by_the_picture(self, model: str) -> bool:
        entry = self._library.model_cost.get(model) or self._library.model_cost.get(model.partition("/")[2]) or {}
        return any(entry.get(name) for name in _PER_PICTURE)


def _tells_usage(said: Any) -> bool:
    """Whether the API said what was used; where it did not, litellm says zero, or counts for itself."""
    parts = [said.get(name) for name in _USED] if isinstance(said, dict) else []
    counts = [count for part in parts if isinstance(part, dict) for count in part.values()]
    return any(isinstance(count, int) and count > 0 for count in counts)


def _translated(answer: Answer) -> Answer:
    """Return an answer of a proxy in plain terms: the wait that its provider asks for, and no price of zero."""
    headers = dict(answer.headers)
    if _positive(headers.get(COST)) is None:
        headers.pop(COST, None)
    if _WAIT in headers:
        headers.setdefault("retry-after", headers[_WAIT])
    return msgspec.structs.replace(answer, headers=headers)


def _traces(said: Any, headers: dict[str, str]) -> dict[str, Any]:
    """Return what finds this call again in somebody else's books, and how often a proxy tried."""
    own = next((said[name] for name in _IDS if said.get(name)), None) if isinstance(said, dict) else None
    found: dict[str, Any] = {"response_id": own, "proxy_call_id": headers.get("x-litellm-call-id")}
    retries = headers.get("x-litellm-attempted-retries", "0")
    return {name: value for name, value in found.items() if value} | (
        {"proxy_retries": int(retries)} if retries.isdecimal() and int(retries) else {}
    )


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number > 0 else None
