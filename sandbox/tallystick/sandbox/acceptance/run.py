"""Tries everything on a driver."""

import os
from collections.abc import Awaitable, Callable

import anyio

from tallystick.sandbox.acceptance import frame, inside
from tallystick.sandbox.acceptance.check import Check
from tallystick.sandbox.acceptance.script import TRIALS, Outcome, Trial
from tallystick.sandbox.conformance import guest, start
from tallystick.sandbox.frames import Done, FrameError, ToHost
from tallystick.sandbox.protocol import Driver, EndOfGuest, Limits

#: Guests at the same time, and seconds that each may take.
AT_ONCE = 4
PATIENCE = 30.0

_FLOODED = Limits(output=8 << 20)


async def run(driver: Driver) -> list[Check]:
    """Try every probe of this package in guests of a driver.

    Returns:
        What each came to, in the order of their definition.

    Raises:
        SandboxError: the driver cannot start a guest.
    """
    tries: list[Callable[[Driver], Awaitable[list[Check]]]] = [
        *(_Inside(check) for check in inside.PROBES),
        *(_Tried(trial) for trial in TRIALS),
        *(_Breach(name, frame.script(code)) for name, code in frame.BREACHES.items()),
        *(_Flood(name, frame.script("", again=code)) for name, code in frame.FLOODS.items()),
        _silent,
    ]
    first = await _started(driver)
    found: list[list[Check]] = [[] for _ in tries]
    places = anyio.Semaphore(AT_ONCE)

    async def one(at: int) -> None:
        async with places:
            found[at] = await tries[at](driver)

    async with anyio.create_task_group() as tasks:
        for at in range(len(tries)):
            tasks.start_soon(one, at)
    return [check for checks in (first, *found) for check in checks]


async def outcome(driver: Driver, source: str, limits: Limits | None = None) -> Outcome:
    """Run a script that nobody answers, to its end or to the end of patience."""
    frames: list[ToHost] = []
    fault: FrameError | None = None
    async with guest(driver, limits) as sandbox:
        await start(sandbox, source, os.getpid())
        with anyio.move_on_after(PATIENCE):
            try:
                while True:
                    frames += await sandbox.receive()
            except FrameError as breach:
                fault = breach
            except EndOfGuest:
                await sandbox.wait()
        return Outcome(frames, await sandbox.kill(), fault)


async def _started(driver: Driver) -> list[Check]:
    async with guest(driver):
        pass
    detail = f"{driver.name}: a guest started, confined itself and was found to be what was asked for"
    return [Check(check="non-root execution", name="the guest is verified before its script", ok=True, detail=detail)]


class _Inside:
    """One group of tries inside a guest."""

    def __init__(self, check: str) -> None:
        self._check = check

    async def __call__(self, driver: Driver) -> list[Check]:
        seen = await outcome(driver, inside.probe_script(self._check))
        last = seen.frames[-1] if seen.frames else None
        said = last.value if isinstance(last, Done) and isinstance(last.value, dict) else {}
        return [
            Check(check=self._check, name=name, ok=inside.held(name, said.get(name)), detail=str(said.get(name, seen)))
            for name in inside.PROBES[self._check]
        ]


class _Tried:
    """One script that takes what it can."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    async def __call__(self, driver: Driver) -> list[Check]:
        trial = self._trial
        seen = await outcome(driver, trial.source, trial.limits)
        return [Check(check=trial.check, name=trial.name, ok=trial.holds(seen), detail=str(seen))]


class _Breach:
    """One breach of the protocol."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source

    async def __call__(self, driver: Driver) -> list[Check]:
        seen = await outcome(driver, self._source)
        ok = seen.fault is not None and seen.exit.cause == "protocol"
        return [Check(check="frame protocol", name=self._name, ok=ok, detail=str(seen))]


class _Flood(_Breach):
    """One flood of frames."""

    async def __call__(self, driver: Driver) -> list[Check]:
        seen = await outcome(driver, self._source, _FLOODED)
        ok = seen.fault is not None and seen.exit.cause in {"output", "protocol"}
        return [Check(check="output limits", name=self._name, ok=ok, detail=str(seen))]


async def _silent(driver: Driver) -> list[Check]:
    async with guest(driver) as sandbox:
        await start(sandbox, frame.script(frame.SILENCE))
        with anyio.move_on_after(1) as silence:
            await sandbox.receive()
        end = await sandbox.kill()
    ok = silence.cancelled_caught and end.cause == "killed"
    return [Check(check="timeout", name="half a frame, then silence", ok=ok, detail=f"ended by {end.cause}")]
