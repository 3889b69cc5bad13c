"""One call of the local provider: scripted failure, scripted wait, then the thing itself."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread

from tallystick.contract.errors import StoreError
from tallystick.providers import faults
from tallystick.providers.blobs import referred
from tallystick.providers.catalogue import CATALOGUE, nearest
from tallystick.providers.local import storyboards, writing
from tallystick.providers.local.dice import Dice
from tallystick.providers.local.settings import LocalSettings
from tallystick.providers.protocol import API_VERSION, Artifacts, Outcome, Profile, Refused, Sample, Succeeded


class LocalProvider:
    """Every capability of the catalogue, made on this machine; see ``protocol.Provider``.

    The same payload and sample seed give the same bytes. An explicit ``seed`` in a payload takes the place of the
    sample's, a storyboard and a review depend on their payload alone, and so does text at temperature 0.
    """

    api_version = API_VERSION
    name = "local"
    capabilities = frozenset(CATALOGUE)
    profile = Profile()

    def __init__(
        self,
        settings: LocalSettings,
        artifacts: Artifacts,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._sleep = sleep
        # Rendering is the work of a core; more threads than cores would only take turns.
        self._cores = anyio.CapacityLimiter(os.cpu_count() or 1)

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:  # noqa: ARG002 - nothing is ever sent twice
        """Make what is asked for, or fail as ordered; waits ``sample.latency`` seconds, give or take a half."""
        if capability not in self.capabilities:
            meant = nearest(capability)
            hint = f'; did you mean "{meant}"?' if meant else ""
            return Refused(kind="invalid_request", text=f'the local provider has no "{capability}"{hint}')
        if sample.latency > 0:
            await self._sleep(sample.latency * Dice("latency", capability, sample.seed).between(0.5, 1.5))
        price = CATALOGUE[capability].estimate if self._settings.price == "estimate" else 0
        try:
            fault = faults.ordered(sample.faults, capability, sample.execution)
            if fault is not None:
                return fault.outcome(price)
            result, usage = await self._make(capability, payload, sample.seed)
        except StoreError as error:
            return Refused(
                kind="invalid_request", text=f"a picture, sound or clip of the payload cannot be read: {error}"
            )
        except ValueError as error:
            return Refused(kind="invalid_request", text=str(error))
        return Succeeded(result=result, usage=usage, cost=price)

    async def close(self) -> None:
        """Do nothing: there is no connection to release."""

    async def _make(self, capability: str, payload: Mapping[str, Any], seed: int) -> tuple[Any, dict[str, Any]]:
        plain = dict(payload)
        match capability:
            case "storyboard.plan":
                board = storyboards.plan(plain["brief"], plain["shots"], plain.get("style"), Dice(capability, plain))
                return board, {"shots": plain["shots"]}
            case "review.visual":
                return writing.review(Dice(capability, plain)), {"images": 1}
            case "text.generate":
                varied = seed if plain.get("temperature", 1) else 0
                answer = writing.text(plain, Dice(capability, plain, varied))
                return answer, writing.usage(plain, answer["text"])
            case _:
                # Imported by the worker: Pillow takes a tenth of a second that neither the loop nor a start should pay.
                return await anyio.to_thread.run_sync(
                    _media, capability, plain, seed, self._artifacts, limiter=self._cores
                )


def _media(capability: str, payload: dict[str, Any], seed: int, artifacts: Artifacts) -> tuple[Any, dict[str, Any]]:
    from tallystick.providers.local import media  # noqa: PLC0415 - Pillow loads with the first picture

    sources: dict[str, bytes] = {
        field: artifacts.get_file(referred(payload[field]))
        for field in ("image", "mask", "reference", "video")
        if field in payload
    }
    own = payload.get("seed", seed)
    return media.make(capability, payload, own, sources)
