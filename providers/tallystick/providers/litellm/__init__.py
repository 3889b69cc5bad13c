"""The ``litellm`` provider: text and pictures over what litellm routes to; see docs/litellm-provider.md."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tallystick.providers.http import credentials
from tallystick.providers.litellm import library
from tallystick.providers.litellm.provider import LitellmProvider
from tallystick.providers.litellm.settings import LitellmSettings
from tallystick.providers.protocol import Artifacts


def create(settings: Mapping[str, Any], artifacts: Artifacts) -> LitellmProvider:
    """Make the provider (entry point ``litellm`` of the group ``tallystick.providers``).

    It imports litellm, which takes seconds the first time: call it in a thread, as the daemon does.

    Args:
        settings: those of ``LitellmSettings``.
        artifacts: how it reads the bytes behind artifact references.

    Raises:
        ValueError: the settings are wrong, or there is no key.
        msgspec.ValidationError: the settings are not those of ``LitellmSettings``.
        ProviderSetupError: litellm is not installed, or is one that this release cannot use.
    """
    known = msgspec.convert(dict(settings), LitellmSettings)
    credential = credentials.load(known.key_settings)
    return LitellmProvider(known, credential, artifacts, library.load())
