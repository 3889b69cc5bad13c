"""Engines for tests of the broker: in front of the ``http`` provider and an upstream, or of a provider that can be asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any, cast

import msgspec

from engine_support import House, house
from engine_witness import Witness
from http_support import SECRET, SwiftClock, settings_of
from scripted_provider import ScriptedProvider
from tallystick.kernel import Clock
from tallystick.providers.http import credentials, profiles
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.http.settings import HttpSettings
from tallystick.providers.protocol import Absent, Outcome, Profile, Sample, Tracker, Unknown
from tallystick.store.memory import MemoryDisk, MemoryStore
from upstream_server import Upstream

PAID = """
async def orchestrate(ctx, args):
    image = await ctx.run("image.generate", {"prompt": "a mug", "size": "64x48"})
    return [image["width"], len(image["images"])]
"""
CAUGHT = """
async def orchestrate(ctx, args):
    try:
        image = await ctx.run("image.generate", {"prompt": "a mug", "size": "64x48"})
    except CapabilityError as error:
        return [error.kind, error.text]
    return image["width"]
"""


@asynccontextmanager
async def served(
    upstream: Upstream | str,
    kind: str = "openai",
    *,
    disk: MemoryDisk | None = None,
    store: MemoryStore | None = None,
    clock: Clock | None = None,
    policy: Mapping[str, Any] | None = None,
    daemon: Mapping[str, Any] | None = None,
    **changes: Any,
) -> AsyncIterator[House]:
    """Run an engine whose capabilities are served by the ``http`` provider, whose own waits are over at once.

    ``kind`` and ``changes`` are those of ``http_support.settings_of``; ``disk`` is what the store writes to.
    """
    url = upstream if isinstance(upstream, str) else upstream.url
    settings = msgspec.convert(profiles.apply(settings_of(url, kind, **changes)), HttpSettings)
    assert settings.key is not None
    credential = credentials.load(settings.key, {str(settings.key.env): SECRET})
    with closing(store or MemoryStore(disk or MemoryDisk())) as kept:
        provider = HttpProvider(settings, credential, kept, clock=SwiftClock())
        async with house(
            cast("ScriptedProvider", provider), store=kept, clock=clock, policy=policy, daemon=daemon
        ) as engine:
            yield engine


async def states(engine: House, run: str) -> list[str]:
    """Return the states of a run's attempts, oldest first."""
    return [attempt.state for attempt in await engine.attempts(run)]


class Knowing(Witness):
    """A provider that can be asked what became of a call, tells of its job, and reads a kept answer again.

    Attributes:
        ends: what a look-up says of payloads that contain the key; of others nobody knows anything.
        readings: what a kept answer is read as.
        asked: the keys and jobs of all look-ups.
        tells: what it tells of a call before its end, as (method, arguments), by text of the payload.
    """

    def __init__(self, *, profile: Profile | None = None, **options: Any) -> None:
        super().__init__(profile=profile, **options)
        self.ends: dict[str, Outcome | Absent] = {}
        self.readings: dict[str, Outcome] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.read: list[Any] = []
        self.tells: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}

    async def call_tracked(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, tracker: Tracker
    ) -> Outcome:
        for method, arguments in next((said for text, said in self.tells.items() if text in str(payload)), []):
            await getattr(tracker, method)(*arguments)
        return await self.call(capability, payload, key, sample)

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, job: str | None) -> Outcome | Absent:
        assert capability in self.capabilities
        self.asked.append((key, job))
        found = (end for text, end in self.ends.items() if text in str(payload))
        return next(found, Unknown(reason="nobody knows"))

    async def reprocess(self, capability: str, payload: Mapping[str, Any], raw: Any) -> Outcome:
        assert capability in self.capabilities
        self.read.append(raw)
        found = (reading for text, reading in self.readings.items() if text in str(payload))
        return next(found, Unknown(reason="still not readable"))
