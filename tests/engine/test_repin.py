"""A run that goes on in another image or under another driver than before: noted in the journal, or refused."""

from typing import Any

import msgspec
import pytest

from engine_support import House
from engine_witness import Witness, witnessed
from tallystick.contract.events import SandboxChanged
from tallystick.engine.config import SandboxSettings
from tallystick.engine.messages import ResumeRequest
from tallystick.sandbox.memory import MemoryDriver, MemorySandbox
from tallystick.sandbox.protocol import Limits

FIRST = """
async def orchestrate(ctx, args):
    one = await ctx.run("image.generate", {"prompt": "one"})
    raise ValueError("here it ends")
"""
SECOND = FIRST.replace('raise ValueError("here it ends")', 'return await ctx.run("image.generate", {"prompt": "two"})')
OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


class Painted(MemorySandbox):
    """A guest of an image."""

    image = ""


class PinnedDriver(MemoryDriver):
    """Runs guests in an image, which may become known only when the first one is started."""

    name = "docker"

    def __init__(self, image: str, known: str | None = None) -> None:
        super().__init__()
        self.image = image if known is None else known
        self._built = image

    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        self.image = self._built
        guest = Painted(limits, nonce, self._open.discard)
        guest.image = self.image
        self._open.add(guest)
        return guest

    def move(self, image: str) -> None:
        """Have another image pinned."""
        self._built = self.image = image


def changes(witness: Witness) -> list[tuple[int, str, tuple[str, str]]]:
    return [
        (event.launch, event.image, event.before) for event in witness.disk.events if isinstance(event, SandboxChanged)
    ]


async def images(engine: House, run: str) -> list[tuple[str, str]]:
    report = await engine.host.service.report(run)
    return [(launch.driver, launch.image) for launch in report.launches]


async def test_a_run_that_keeps_its_image_has_it_in_each_launch_and_nothing_to_note() -> None:
    async with witnessed(driver=PinnedDriver(OLD)) as (engine, witness):
        failed = await engine.run(FIRST)
        done = await engine.resume(failed.run, SECOND)
        assert (done.status, done.warnings, changes(witness)) == ("completed", (), [])
        assert await images(engine, failed.run) == [("docker", OLD), ("docker", OLD)]


async def test_a_run_that_goes_on_in_another_image_says_so_everywhere() -> None:
    driver = PinnedDriver(OLD)
    async with witnessed(driver=driver) as (engine, witness):
        failed = await engine.run(FIRST)
        driver.move(NEW)
        gate = witness.hold(containing="two")
        await engine.host.service.resume(failed.run, ResumeRequest(source=SECOND))
        heard = []
        async for line in engine.host.service.watch(failed.run):
            heard.append((line.kind, line.text))
            gate.release()
        done = await engine.end(failed.run)
        note = f"launch 2 runs in another sandbox than the run did before: docker {NEW}, not docker {OLD}"
        assert (done.status, done.calls.replayed, done.warnings) == ("completed", 1, (note,))
        assert ("warning", note) in heard
        assert changes(witness) == [(2, NEW, ("docker", OLD))]
        assert await images(engine, failed.run) == [("docker", OLD), ("docker", NEW)]
        again = await engine.resume(failed.run)
        assert (again.warnings, len(changes(witness))) == ((), 1)  # noted once


async def test_another_driver_is_noted_like_another_image() -> None:
    witness = Witness()
    async with witnessed(witness) as (engine, _):
        failed = await engine.run(FIRST)
    async with witnessed(witness, driver=PinnedDriver(NEW)) as (engine, _):
        done = await engine.resume(failed.run, SECOND)
        assert done.status == "completed"
        assert done.warnings[0].endswith(f"docker {NEW}, not memory")


async def test_the_image_that_a_first_launch_has_built_is_known_and_no_change() -> None:
    async with witnessed(driver=PinnedDriver(OLD, known="")) as (engine, witness):
        failed = await engine.run(FIRST)
        assert (failed.warnings, changes(witness)) == ((), [(1, OLD, ("docker", ""))])
        done = await engine.resume(failed.run, SECOND)
        assert (done.warnings, len(changes(witness))) == ((), 1)
        assert await images(engine, failed.run) == [("docker", OLD), ("docker", OLD)]


async def test_a_setting_refuses_another_image_before_the_script_is_sent() -> None:
    driver = PinnedDriver(OLD)
    strict = SandboxSettings(repin="refuse")
    async with witnessed(driver=driver, sandbox=strict) as (engine, witness):
        failed = await engine.run(FIRST)
        driver.move(NEW)
        for _ in range(2):  # being refused is no consent
            stopped = await engine.resume(failed.run, SECOND, preflight=False)
            assert (stopped.status, stopped.reason, witness.count()) == ("stopped", "TS-P012", 1)
            assert stopped.error is not None
            assert OLD in stopped.error.message
            assert NEW in stopped.error.message
            assert stopped.calls.replayed == 0
        assert changes(witness) == []
        driver.move(OLD)
        assert (await engine.resume(failed.run, SECOND)).status == "completed"


async def test_a_run_without_any_attempt_has_nothing_to_keep_to() -> None:
    driver = PinnedDriver(OLD)
    async with witnessed(driver=driver, sandbox=SandboxSettings(repin="refuse")) as (engine, _):
        failed = await engine.run("async def orchestrate(ctx, args):\n    raise ValueError('at once')\n")
        driver.move(NEW)
        done = await engine.resume(failed.run, SECOND)
        assert done.status == "completed"


@pytest.mark.parametrize("settings", [{"repin": "ask"}, {"driver": "podman"}, {"image": "tallystick-guest:latest"}])
def test_settings_that_do_not_exist_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, SandboxSettings)
