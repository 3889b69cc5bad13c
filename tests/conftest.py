"""What all tests share: the backend of async tests, hypothesis' profiles, and what belongs to the long profile."""

import os

import pytest
from hypothesis import settings

# The LiteLLM proxy is started once for all areas.
pytest_plugins = ("proxy_support",)

LONG = os.environ.get("TALLYSTICK_TEST_PROFILE") == "long"

# The short profile draws the same examples each time, so that a red build is red again on the next machine.
settings.register_profile("ci", max_examples=100, stateful_step_count=20, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=2_000, stateful_step_count=50, deadline=None)
settings.load_profile("long" if LONG else "ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if LONG:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
