"""The ``local`` provider: deterministic, offline, free; real pictures, sounds and clips, and failures on demand."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tallystick.providers.local.provider import LocalProvider
from tallystick.providers.local.settings import LocalSettings
from tallystick.providers.protocol import Artifacts


def create(settings: Mapping[str, Any], artifacts: Artifacts) -> LocalProvider:
    """Make the provider (entry point ``local`` of the group ``tallystick.providers``).

    Raises:
        msgspec.ValidationError: the settings are not those of ``LocalSettings``.
    """
    return LocalProvider(msgspec.convert(dict(settings), LocalSettings), artifacts)
