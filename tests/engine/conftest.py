"""The contract under every driver: which suites run in real guests too, and how their houses get them.

Each test of these suites runs in the guest without walls, and again in a locked child and in a container, with the
same assertions: the drivers agree. What takes long is part of the long profile only.
"""

import inspect
from pathlib import Path

import pytest

import engine_support
from docker_support import STORE_ID, docker_endpoint, docker_image
from tallystick.sandbox.docker.driver import DockerDriver
from tallystick.sandbox.locked import LockedDriver

__all__ = ["docker_endpoint", "docker_image"]

#: Tasks of the corpus whose first launch runs in real guests by default.
USUAL_TASKS = ("01-", "02-", "03-", "04-", "06-", "11-", "16-", "20-")

#: In no test's name.
LONG = "-"

#: Suites by the beginnings of their modules' names. The tests whose names have the text given run in real guests by
#: default, the others in the long profile; a test that runs dozens of launches is one of those.
CONTRACT = {
    "test_e3": "",
    "test_case_01": "",
    "test_case_": LONG,
    "test_paper_episodes": "",
    "test_corpus": "the_first_launch",
    "test_budget": LONG,
    "test_fanout_cost": LONG,
    "test_ledger": LONG,
    "test_provider_faults": LONG,
    "test_settling_by_hand": LONG,
    "test_unknown_outcomes": LONG,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = Path(str(metafunc.module.__file__)).stem
    usual = next((part for start, part in CONTRACT.items() if module.startswith(start)), None)
    if usual is None or not inspect.iscoroutinefunction(metafunc.function):
        return
    long = () if usual in metafunc.function.__name__ else (pytest.mark.long,)
    drivers = [
        "memory",
        pytest.param("locked", marks=long),
        pytest.param("docker", marks=[pytest.mark.engine, *long]),
    ]
    metafunc.parametrize("sandbox_driver", drivers, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the larger part of the corpus in real guests to the long profile, before that is sorted out."""
    for item in items:
        real = "[locked-" in item.name or "[docker-" in item.name
        if real and item.path.stem == "test_corpus" and not any(f"-{name}" in item.name for name in USUAL_TASKS):
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def sandbox_driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every house of a test that names no driver use this one."""
    match getattr(request, "param", "memory"):
        case "locked":
            monkeypatch.setattr(engine_support, "default_driver", LockedDriver)
        case "docker":
            endpoint, image = request.getfixturevalue("docker_endpoint"), request.getfixturevalue("docker_image")
            monkeypatch.setattr(
                engine_support,
                "default_driver",
                lambda: DockerDriver(store=STORE_ID, image=image, endpoint=endpoint),
            )
