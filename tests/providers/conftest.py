"""Shared fixtures of the provider tests."""

from collections.abc import AsyncIterator

import pytest

from http_support import Rigs
from upstream_server import Upstream, running


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running() as server:
        yield server


@pytest.fixture
async def rig() -> AsyncIterator[Rigs]:
    rigs = Rigs()
    yield rigs
    await rigs.close()
