"""Shared by the tests of the ``http`` provider: providers in front of the upstream, and time that passes by itself."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from provider_support import MemoryArtifacts
from tallystick.kernel import SystemClock
from tallystick.providers import catalogue
from tallystick.providers.http import credentials, profiles
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.http.settings import HttpSettings
from tallystick.providers.protocol import Absent, Outcome, Sample, Succeeded
from upstream_faults import Gate
from upstream_server import Upstream

SECRET = "sk-planted-4f9a7c21d8e0"
PROMPT = {"prompt": "a lighthouse at dusk", "size": "64x48"}
LOOPBACK = {"allow": ["127.0.0.0/8"]}

# A submit-poll API such as the upstream has, as somebody would configure it.
STUDIO: dict[str, Any] = {
    "name": "studio",
    "key": {"env": "STUDIO_KEY", "header": "X-Api-Key", "form": "{key}"},
    "idempotency_header": "Idempotency-Key",
    "dedupes_keys": 86_400,
    "absence_final_after": 60,
    "errors": {"codes": {"*Blocked*": "content_policy", "InvalidParameter": "invalid_request"}},
    "operations": {
        "image.generate": {
            "path": "/jobs",
            "body": {"prompt": "{prompt}", "size": "{size}", "n": "{n}", "seed": "{$seed|int31}"},
            "result": {"images": {"$files": "output[*]", "url": "url"}, "width": "{$width}", "height": "{$height}"},
            "job": {"id": "id", "path": "/jobs/{$job}", "done": ["succeeded"], "failed": ["failed", "cancelled"]},
            "lookup": {"path": "/jobs?key={$key}", "entry": "data[0]"},
            "price": {"stated": "cost.amount", "currency": "cost.currency"},
        }
    },
}

PRICES: dict[str, Any] = {
    "openai": {
        "image.generate": {"per_million": {"usage.input_tokens": 5, "usage.output_tokens": 40}},
        **{
            name: {"per_million": {"usage.prompt_tokens": 1, "usage.completion_tokens": 4}}
            for name in ("text.generate", "storyboard.plan", "review.visual")
        },
    },
    "seedream": {name: {"per_unit": {"usage.generated_images": 0.03}} for name in ("image.generate", "image.edit")},
}


class SwiftTimer:
    """A timer that only ``SwiftClock.expire`` fires."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SwiftClock(SystemClock):
    """Time in which nobody waits: a sleep is over at once, and the clock has moved on by it. No timer fires by itself."""

    def __init__(self) -> None:
        self.naps: list[float] = []
        self._timers: list[SwiftTimer] = []

    def monotonic(self) -> float:
        return sum(self.naps)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> SwiftTimer:  # noqa: ARG002 - the test says when
        self._timers.append(SwiftTimer(callback))
        return self._timers[-1]

    def expire(self) -> None:
        """Let the time of everything that is limited run out."""
        for timer in self._timers:
            if timer.callback is not None:
                timer.callback()

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        if seconds > 0:
            self.naps.append(seconds)


class Diary:
    """A tracker that remembers what it was told; ``on_submitted`` runs when it hears of a job."""

    def __init__(self, on_submitted: Callable[[], None] = lambda: None) -> None:
        self.jobs: list[str] = []
        self.answers: list[tuple[Any, int | None]] = []
        self._on_submitted = on_submitted

    async def submitted(self, job: str) -> None:
        self.jobs.append(job)
        self._on_submitted()

    async def answered(self, raw: Any, cost: int | None) -> None:
        self.answers.append((raw, cost))


class Rig:
    """A provider in front of an upstream, and calls to it that the catalogue takes."""

    def __init__(self, provider: HttpProvider, artifacts: MemoryArtifacts, clock: SwiftClock) -> None:
        self.provider = provider
        self.artifacts = artifacts
        self.clock = clock

    async def call(
        self,
        payload: dict[str, Any] | None = None,
        capability: str = "image.generate",
        *,
        key: str = "key-1",
        seed: int = 1,
    ) -> Outcome:
        asked = PROMPT if payload is None else payload
        catalogue.validate_payload(capability, asked)
        return await self.provider.call(capability, asked, key, Sample(seed=seed))

    async def time_out(
        self, payload: dict[str, Any] | None = None, capability: str = "image.generate", *, gate: Gate
    ) -> Outcome:
        """Call, and let the time run out when the upstream holds the request."""
        outcomes: list[Outcome] = []

        async def call() -> None:
            outcomes.append(await self.call(payload, capability))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await gate.reached()
            self.clock.expire()
        return outcomes[0]

    async def track(self, diary: Diary, payload: dict[str, Any] | None = None, *, key: str = "key-1") -> Outcome:
        return await self.provider.call_tracked("image.generate", payload or PROMPT, key, Sample(seed=1), diary)

    async def lookup(self, *, key: str = "key-1", job: str | None = None) -> Outcome | Absent:
        return await self.provider.lookup("image.generate", PROMPT, key, job)

    async def result(self, payload: dict[str, Any] | None = None, capability: str = "image.generate") -> Any:
        outcome = await self.call(payload, capability)
        assert isinstance(outcome, Succeeded), outcome
        return outcome.result


def settings_of(upstream_url: str, kind: str, *, priced: bool = True, **changes: Any) -> dict[str, Any]:
    """Return the settings of a profile, or of ``studio``, for an upstream, with ``changes`` on top.

    ``priced``: whether a profile gets the prices of the upstream; it has none of its own.
    """
    if kind == "studio":
        base: dict[str, Any] = {**STUDIO, "base_url": f"{upstream_url}/v1"}
    else:
        operations = {name: {"price": price} for name, price in PRICES[kind].items() if priced}
        path = "/v1" if kind == "openai" else "/api/v3"
        base = {"profile": kind, "base_url": upstream_url + path, "model": "m-1", "operations": operations}
    return profiles.merged({**base, "downloads": LOOPBACK, "proxy": False}, changes)


class Rigs:
    """Makes providers in front of an upstream, with the planted key, and closes them."""

    def __init__(self) -> None:
        self._made: list[Rig] = []

    def __call__(self, upstream: Upstream | str, kind: str, *, secret: str = SECRET, **changes: Any) -> Rig:
        url = upstream if isinstance(upstream, str) else upstream.url
        settings = msgspec.convert(profiles.apply(settings_of(url, kind, **changes)), HttpSettings)
        assert settings.key is not None
        artifacts, clock = MemoryArtifacts(), SwiftClock()
        credential = credentials.load(settings.key, {str(settings.key.env): secret})
        self._made.append(Rig(HttpProvider(settings, credential, artifacts, clock=clock), artifacts, clock))
        return self._made[-1]

    async def close(self) -> None:
        for one in self._made:
            await one.provider.close()


def operation(name: str = "image.generate", /, **changes: Any) -> Mapping[str, Any]:
    """Return ``changes`` to one operation, as settings have them."""
    return {name: changes}
