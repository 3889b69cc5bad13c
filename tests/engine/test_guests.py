"""Guests that misbehave, die or cannot be started, and a run actor that crashes: the daemon and other runs go on."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from engine_witness import Witness, assert_standing, witnessed
from tallystick.kernel import ManualClock
from tallystick.sandbox.frames import Call, Done, FrameError, Log, ToGuest, ToHost
from tallystick.sandbox.memory import MemoryDriver, MemorySandbox
from tallystick.sandbox.protocol import EndOfGuest, Exit, Limits, SandboxError

SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot <{number}>"})

    return len(await ctx.parallel([shot(number) for number in range(4)]))
"""
CALL = Call(
    nonce="",
    id=1,
    site="orchestrate.shot/#1",
    path=(0,),
    occurrence=0,
    capability="image.generate",
    payload={"prompt": "x"},
)


class Puppet(MemorySandbox):
    """A guest of which a test decides what it sends; once it has sent all, it ends, or waits to be killed."""

    def __init__(self, limits: Limits, nonce: str, acts: "Acts", forget: Callable[[MemorySandbox], None]) -> None:
        super().__init__(limits, nonce, forget)
        self._nonce = nonce
        self._acts = acts
        self._sent = False

    async def send(self, frames: Sequence[ToGuest]) -> None:
        del frames
        if self._exit is not None:
            raise EndOfGuest("gone")

    async def wait(self) -> Exit:
        if self._acts.exit is not None and self._exit is None:
            self._end(self._acts.exit)
        return await super().wait()

    async def receive(self) -> list[ToHost]:
        await anyio.lowlevel.checkpoint()
        if not self._sent:
            self._sent = True
            if isinstance(self._acts.says, Exception):
                raise self._acts.says
            return [_with_nonce(frame, self._nonce) for frame in self._acts.says]
        if self._acts.exit is None:
            await self._ended.wait()
        else:
            await self.wait()
        raise EndOfGuest("the frames ended")


class Acts:
    """What the puppets do: frames or an error from ``receive``, and how they exit (None: when they are killed)."""

    def __init__(self, says: Sequence[ToHost] | Exception, exit_: Exit | None = None) -> None:
        self.says = says
        self.exit = exit_


class PuppetDriver(MemoryDriver):
    """Its first guest is a puppet, all others are real."""

    def __init__(self, acts: Acts | None) -> None:
        super().__init__()
        self._acts = acts

    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        acts, self._acts = self._acts, None
        if acts is None:
            return await super().open(limits, nonce)
        puppet = Puppet(limits, nonce, acts, self._open.discard)
        self._open.add(puppet)
        return puppet


def _with_nonce(frame: ToHost, nonce: str) -> ToHost:
    return type(frame)(**{**{name: getattr(frame, name) for name in frame.__struct_fields__}, "nonce": nonce})


def call(**changes: Any) -> Call:
    fields = {name: getattr(CALL, name) for name in CALL.__struct_fields__}
    return Call(**{**fields, **changes})


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([call(site="orchestrate/#9")], "orchestrate/#9"),
        ([call(capability="video.generate")], "where the script calls 'image.generate'"),
        ([call(occurrence=1)], "the host counts occurrence 0"),
        ([call(id=2)], "call id 2 after 0"),
        ([call(), call(id=2, occurrence=1)], "while another call at this site and path is in flight"),
        ([call(), Done(nonce="", value=1)], "with 1 calls in flight"),
        ([Done(nonce="", value=1), call()], "after the guest's last word"),
    ],
)
async def test_a_guest_that_breaks_the_protocol_ends_its_launch_and_costs_nothing_more(
    frames: list[ToHost], said: str
) -> None:
    witness = Witness()
    async with witnessed(witness, driver=PuppetDriver(Acts(frames))) as (engine, _):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason) == ("failed", "TS-R004")
        assert report.error is not None
        assert said in report.error.message
        assert witness.count() <= 1
        await assert_standing(engine, report.run)
        resumed = await engine.resume(report.run)
        assert (resumed.status, resumed.result) == ("completed", 4)


async def test_a_stream_that_cannot_be_read_ends_the_launch() -> None:
    async with witnessed(driver=PuppetDriver(Acts(FrameError("not a frame")))) as (engine, witness):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason, witness.count()) == ("failed", "TS-R004", 0)


@pytest.mark.parametrize(
    ("exit_", "code", "said"),
    [
        (Exit(cause="memory", code=3, limit="it may have so much"), "TS-R005", "memory limit: it may have so much"),
        (Exit(cause="cpu", signal=24), "TS-R005", "processor time"),
        (Exit(cause="output"), "TS-R005", "limit of output"),
        (Exit(cause="signal", signal=9, text="who did that"), "TS-R004", "who did that"),
        (Exit(cause="exit", code=0), "TS-R004", "status 0"),
    ],
)
async def test_a_guest_that_dies_ends_its_launch_with_the_cause(exit_: Exit, code: str, said: str) -> None:
    async with witnessed(driver=PuppetDriver(Acts([Log(nonce="", text="hello")], exit_))) as (engine, witness):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason, report.logs, witness.count()) == ("failed", code, "hello", 0)
        assert report.error is not None
        assert said in report.error.message
        assert report.error.hint
        assert (await engine.resume(report.run)).status == "completed"


async def test_a_guest_that_something_took_away_is_no_fault_of_the_script() -> None:
    lost = Exit(cause="lost", text="it was killed from outside")
    async with witnessed(driver=PuppetDriver(Acts([Log(nonce="", text="hello")], lost))) as (engine, _):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason) == ("interrupted", "TS-R011")
        assert report.error is not None
        assert "killed from outside" in report.error.message
        assert (await engine.resume(report.run)).status == "completed"


async def test_calls_of_a_guest_that_dies_settle_and_commit() -> None:
    async with witnessed(driver=PuppetDriver(Acts([call()], Exit(cause="signal", signal=9)))) as (engine, witness):
        gate = witness.hold()
        run = await engine.submit(SCRIPT)
        await gate.reached()
        while (await engine.host.service.report(run)).phase != "settling":
            await anyio.lowlevel.checkpoint()
        gate.release()
        report = await engine.end(run)
        assert (report.reason, report.calls.executed, witness.count()) == ("TS-R004", 1, 1)
        await assert_standing(engine, run)
        stopped = await engine.resume(run)
        assert (stopped.reason, witness.count()) == ("TS-D001", 1)  # the puppet's payload is not the script's


async def test_a_result_counts_only_with_a_clean_exit() -> None:
    done = [Done(nonce="", value="forged")]
    async with witnessed(driver=PuppetDriver(Acts(done, Exit(cause="exit", code=1)))) as (engine, _):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason, report.result) == ("failed", "TS-R004", None)


async def test_a_guest_that_does_not_exit_is_killed_and_its_result_does_not_count() -> None:
    clock = ManualClock()
    async with witnessed(driver=PuppetDriver(Acts([Done(nonce="", value=1)])), clock=clock) as (engine, _):
        run = await engine.submit(SCRIPT)
        await clock.advance(30)
        report = await engine.end(run)
        assert (report.status, report.reason) == ("failed", "TS-R004")


class NoDriver(MemoryDriver):
    async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
        del limits, nonce
        raise SandboxError("this kernel has no Landlock")


async def test_without_a_sandbox_nothing_runs_and_the_reason_is_told() -> None:
    async with witnessed(driver=NoDriver()) as (engine, witness):
        report = await engine.run(SCRIPT)
        assert (report.status, report.reason, witness.count()) == ("failed", "TS-R007", 0)
        assert report.error is not None
        assert "no Landlock" in report.error.message
        assert "doctor" in report.error.hint
        await assert_standing(engine, report.run)


async def test_a_run_whose_actor_crashes_sends_nothing_more_and_can_be_resumed() -> None:
    """A fault of our own: the call in flight belongs to the broker and commits, those that wait are not sent."""

    class Faulty(Puppet):
        async def receive(self) -> list[ToHost]:
            if self._sent:
                await gate.reached()
                raise RuntimeError("a fault")
            return await super().receive()

    class FaultyDriver(PuppetDriver):
        async def open(self, limits: Limits, nonce: str) -> MemorySandbox:
            acts, self._acts = self._acts, None
            return (
                await super().open(limits, nonce) if acts is None else Faulty(limits, nonce, acts, self._open.discard)
            )

    frames = [call(id=number + 1, path=(number,), payload={"prompt": f"shot <{number}>"}) for number in range(4)]
    async with witnessed(driver=FaultyDriver(Acts(frames))) as (engine, witness):
        gate = witness.hold(containing="shot")
        run = await engine.submit(SCRIPT, limits={"concurrency": 1})
        other = await engine.submit(SCRIPT.replace("shot", "view"))
        assert (await engine.end(run)).status == "interrupted"
        gate.release()
        resumed = await engine.resume(run)
        assert (resumed.status, resumed.result, resumed.calls.replayed, resumed.calls.executed) == (
            "completed",
            4,
            1,
            3,
        )
        assert (await engine.end(other)).status == "completed"
        assert witness.count() == 8
        await assert_standing(engine, run)
