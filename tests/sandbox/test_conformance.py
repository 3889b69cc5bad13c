import pytest

from tallystick.sandbox.conformance import CHECKS, WALLED, Check
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.memory import MemoryDriver

CASES: list[tuple[type[LockedDriver | MemoryDriver], Check]] = [
    *((LockedDriver, check) for check in (*CHECKS, *WALLED)),
    *((MemoryDriver, check) for check in CHECKS),
]


@pytest.mark.parametrize(("make", "check"), CASES, ids=[f"{make.name}-{check.__name__}" for make, check in CASES])
async def test_the_driver_conforms(make: type[LockedDriver | MemoryDriver], check: Check) -> None:
    driver = make()
    try:
        await check(driver)
    finally:
        await driver.close()
