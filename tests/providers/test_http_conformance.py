"""The conformance kit for both profiles and for a submit-poll API, each in front of the upstream."""

from typing import Any

import msgspec
import pytest

from http_support import SECRET, SwiftClock, settings_of
from tallystick.providers import conformance
from tallystick.providers.http import credentials, profiles
from tallystick.providers.http.provider import HttpProvider
from tallystick.providers.http.settings import HttpSettings
from upstream_server import Upstream


@pytest.mark.parametrize("kind", ["openai", "seedream", "studio"])
@pytest.mark.parametrize("check", conformance.CHECKS, ids=str)
async def test_it_conforms(check: conformance.Check, kind: str, upstream: Upstream) -> None:
    upstream.honours_keys = kind == "studio"
    settings = msgspec.convert(profiles.apply(settings_of(upstream.url, kind)), HttpSettings)

    def make(artifacts: Any) -> HttpProvider:
        assert settings.key is not None
        credential = credentials.load(settings.key, {str(settings.key.env): SECRET})
        return HttpProvider(settings, credential, artifacts, clock=SwiftClock())

    await check(conformance.Subject(make=make))
