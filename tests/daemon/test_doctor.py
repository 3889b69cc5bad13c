"""The doctor: everything green on a healthy daemon, and a red light for each thing that can be wrong."""

import shutil
from pathlib import Path

import pytest

from daemon_support import premises
from engine_support import house
from scripted_provider import ScriptedProvider
from tallystick.engine.messages import DoctorCheck
from tallystick.kernel import ManualClock
from tallystick.store.lmdb_store import LmdbStore

EVERYTHING = ["store", "state directory", "disk", "sandbox", "providers", "clock"]


async def test_a_healthy_daemon_is_all_green_until_its_folder_is_opened_to_others() -> None:
    async with premises() as place, place.open() as (_, client):
        report = await client.doctor()
        assert report.healthy, report
        assert [check.name for check in report.checks] == EVERYTHING
        assert all(check.ok and check.detail for check in report.checks)
        assert next(check.detail for check in report.checks if check.name == "providers") == "desk"

        place.state.chmod(0o750)
        report = await client.doctor()
        assert not report.healthy
        assert [check.name for check in report.checks if not check.ok] == ["state directory"]
        red = report.checks[1]
        assert "mode 0750" in red.detail
        assert red.hint == f"chmod 700 {place.state}"


async def test_a_provider_that_is_unknown_and_a_guest_without_memory_are_named() -> None:
    async with premises() as place:
        place.configure(policy={"provider": "nosuch"}, sandbox={"memory_mb": 1})
        async with place.open() as (_, client):
            report = await client.doctor()
            red = {check.name: check for check in report.checks if not check.ok}
            assert set(red) == {"sandbox", "providers"}
            assert 'there is no provider "nosuch"' in red["providers"].detail
            assert "could not run a script" in red["sandbox"].detail
            assert all(check.hint for check in red.values())


class Advising(ScriptedProvider):
    """A provider whose gateway is not as a payer would have it."""

    async def advice(self) -> tuple[str, ...]:
        return ("the gateway sends a call twice",)


async def test_what_a_provider_sees_at_its_gateway_is_a_red_light() -> None:
    provider = Advising()
    async with house(provider) as engine:
        report = await engine.host.doctor.examine()
    red = next(check for check in report.checks if check.name == "providers")
    assert not red.ok
    assert red.detail == f"{provider.name}: the gateway sends a call twice"
    assert red.hint


async def examined(home: Path, name: str, *, clock: ManualClock | None = None, spoil: str = "") -> DoctorCheck:
    """Return one check of an engine in this process whose store was spoilt."""
    store = LmdbStore(home / "store")
    try:
        async with house(store=store, home=home / "store", clock=clock) as engine:
            if spoil == "store":
                store.close()
            elif spoil == "folder":
                shutil.rmtree(home / "store")
            report = await engine.host.doctor.examine()
    finally:
        store.close()
    assert report.healthy is all(check.ok for check in report.checks)
    return next(check for check in report.checks if check.name == name)


async def test_a_closed_store_is_red(tmp_path: Path) -> None:
    check = await examined(tmp_path, "store", spoil="store")
    assert not check.ok
    assert "closed" in check.detail


@pytest.mark.parametrize("name", ["state directory", "disk"])
async def test_a_folder_that_is_gone_is_red(tmp_path: Path, name: str) -> None:
    check = await examined(tmp_path, name, spoil="folder")
    assert not check.ok
    assert "No such file" in check.detail


async def test_a_clock_of_before_the_product_is_red(tmp_path: Path) -> None:
    check = await examined(tmp_path, "clock", clock=ManualClock(start=0.0))
    assert not check.ok
    assert "set the system's clock" in check.hint
