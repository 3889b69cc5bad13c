"""A provider that answers at once, so that what is measured is everything but the provider."""

import time
from collections.abc import Mapping
from typing import Any

from tallystick.providers.protocol import API_VERSION, Outcome, Profile, Sample, Succeeded

COST = 1_000
"""Micro-dollars that it says each call cost."""

TEXT = "text.generate"


class InstantProvider:
    """Answers every text with the same few words; ``asked`` are the times at which it was (``perf_counter``)."""

    api_version = API_VERSION
    name = "instant"
    capabilities = frozenset({TEXT})
    profile = Profile()

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """See ``protocol.Provider``."""
        del capability, payload, key, sample
        self.asked.append(time.perf_counter())
        return Succeeded(result={"text": "a lighthouse at dusk", "data": None}, cost=COST)

    async def close(self) -> None:
        """See ``protocol.Provider``."""
