"""The ``http`` provider: any JSON API by configuration, with profiles for some; see docs/http-provider.md."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tallystick.providers.http import credentials, profiles
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.http.settings import HttpSettings
from tallystick.providers.protocol import Artifacts


def create(settings: Mapping[str, Any], artifacts: Artifacts) -> HttpProvider:
    """Make the provider (entry point ``http`` of the group ``tallystick.providers``).

    Args:
        settings: those of ``HttpSettings``, and ``profile`` for the shipped one that they change.
        artifacts: how it reads the bytes behind artifact references.

    Raises:
        ValueError: the settings are wrong, or there is no key.
        msgspec.ValidationError: the settings are not those of ``HttpSettings``.
    """
    known = msgspec.convert(profiles.apply(settings), HttpSettings)
    return HttpProvider(known, credentials.load(known.key), artifacts)
