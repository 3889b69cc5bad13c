"""Shared fixtures of the provider tests."""

from collections.abc import AsyncIterator

import pytest

from http_support import Rigs
from litellm_support import LitellmRigs
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


@pytest.fixture
async def litellm_rig() -> AsyncIterator[LitellmRigs]:
    rigs = LitellmRigs()
    yield rigs
    await rigs.close()
