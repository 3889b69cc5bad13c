"""The ``litellm`` provider: the ``http`` provider with litellm in the place of its exchange."""

from typing import Any

from tallystick.kernel import Clock, SystemClock
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.litellm.advice import advise
from tallystick.providers.litellm.exchange import LitellmExchange
from tallystick.providers.litellm.settings import PROXY, LitellmSettings
from tallystick.providers.protocol import Artifacts


class LitellmProvider(HttpProvider):
    """Text and pictures by litellm; see ``HttpProvider`` for how a call ends, and the optional parts."""

    def __init__(
        self,
        settings: LitellmSettings,
        credential: Credential,
        artifacts: Artifacts,
        library: Any,
        *,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._litellm = LitellmExchange(library, settings, credential, clock)
        super().__init__(settings.http(), credential, artifacts, clock=clock, exchange=self._litellm)
        named = (settings.model, *settings.models.values())
        self._asked = frozenset(name.partition("/")[2] for name in named if name is not None)
        self._behind_proxy = settings.route == PROXY

    async def advice(self) -> tuple[str, ...]:
        """Say what a LiteLLM proxy does that a payer should know; see ``protocol.Advises``."""
        if not self._behind_proxy:
            return ()
        router, models = await self._litellm.look("/router/settings"), await self._litellm.look("/v1/model/info")
        return advise(router, models, self._asked)
