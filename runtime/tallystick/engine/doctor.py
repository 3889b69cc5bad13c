"""What the daemon looks at when somebody asks how it is."""

import shutil
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from tallystick.contract.errors import TallyError
from tallystick.engine.messages import DoctorCheck, DoctorReport
from tallystick.engine.tree import Engine
from tallystick.kernel import Clock
from tallystick.providers.protocol import Advises
from tallystick.providers.registry import ProviderSetupError
from tallystick.sandbox.frames import Done, FrameError, Start, ToHost
from tallystick.sandbox.protocol import EndOfGuest, Exit, SandboxError

LOW_DISK = 512 << 20
#: Seconds for a script that does nothing.
SCRIPT_TIME = 10.0
_SCRIPT = "async def orchestrate(ctx, args): return None\n"
EARLIEST_CLOCK = 1_750_000_000.0  # 2025: a clock before the product was written is wrong


class Doctor:
    """Looks at the parts of a running daemon; changes nothing."""

    def __init__(self, engine: Engine, home: Path, clock: Clock, why_driver: str) -> None:
        self._engine = engine
        self._why_driver = why_driver
        self._home = home
        self._clock = clock

    async def examine(self) -> DoctorReport:
        """Look at everything, one thing after the other."""
        looks: list[tuple[str, Callable[[], Awaitable[DoctorCheck]]]] = [
            ("store", self._store),
            ("state directory", self._folder),
            ("disk", self._disk),
            ("sandbox", self._sandbox),
            ("providers", self._providers),
            ("clock", self._time),
        ]
        checks = []
        for name, look in looks:
            try:
                checks.append(await look())
            except (TallyError, OSError) as error:
                hint = error.hint if isinstance(error, TallyError) else ""
                checks.append(DoctorCheck(name, ok=False, detail=str(error), hint=hint))
        return DoctorReport(all(check.ok for check in checks), tuple(checks))

    async def _store(self) -> DoctorCheck:
        store = self._engine.journal.store
        last = await anyio.to_thread.run_sync(store.last_sequence)
        live = await anyio.to_thread.run_sync(store.live_runs)
        return DoctorCheck("store", ok=True, detail=f"{last:,} events, {len(live)} live runs, id {store.store_id}")

    async def _folder(self) -> DoctorCheck:
        mode = stat.S_IMODE(self._home.stat().st_mode)
        private = not mode & 0o077
        return DoctorCheck(
            "state directory",
            ok=private,
            detail=f"{self._home}, mode {mode:04o}",
            hint="" if private else f"chmod 700 {self._home}",
        )

    async def _disk(self) -> DoctorCheck:
        free = shutil.disk_usage(self._home).free
        return DoctorCheck(
            "disk",
            ok=free >= LOW_DISK,
            detail=f"{free >> 20:,} MiB free",
            hint="" if free >= LOW_DISK else "free some: nothing is dispatched that cannot be journalled",
        )

    async def _sandbox(self) -> DoctorCheck:
        pool, name = self._engine.pool, self._engine.driver_name
        try:
            guest = await pool.open(lambda nonce: Start(nonce=nonce, source=_SCRIPT, args=None))
        except SandboxError as error:
            return DoctorCheck(
                "sandbox", ok=False, detail=f"{name}{self._because}: {error}", hint="see docs/sandbox.md"
            )
        last: list[ToHost] = []
        with suppress(EndOfGuest, FrameError), anyio.move_on_after(SCRIPT_TIME):
            last = await guest.sandbox.receive()
        exit_ = await guest.sandbox.kill()
        if last and isinstance(last[-1], Done):
            image = f" of image {pool.driver.image}" if pool.driver.image else ""
            detail = f"{name}{self._because}: a guest{image} confined itself and ran a script"
            return DoctorCheck("sandbox", ok=True, detail=detail)
        return DoctorCheck(
            "sandbox",
            ok=False,
            detail=f"{name}{self._because}: a guest started, but could not run a script of one line "
            f"({exit_.cause}{_said(exit_)})",
            hint="raise memory_mb or cpu_seconds under [sandbox] in the configuration",
        )

    @property
    def _because(self) -> str:
        return f" ({self._why_driver})" if self._why_driver else ""

    async def _providers(self) -> DoctorCheck:
        names = sorted({policy.provider for policy in self._engine.policies.values()})
        advice: list[str] = []
        for name in names:
            try:
                provider = await self._engine.bench.get(name)
            except ProviderSetupError as error:
                return DoctorCheck("providers", ok=False, detail=str(error), hint="correct the configuration")
            if isinstance(provider, Advises):
                advice += [f"{name}: {sentence}" for sentence in await provider.advice()]
        if advice:
            # What a gateway does on its own may bill a call twice, and nothing on this side of it can stop that.
            return DoctorCheck("providers", ok=False, detail="; ".join(advice), hint="see to it at the gateway")
        return DoctorCheck("providers", ok=True, detail=", ".join(names))

    async def _time(self) -> DoctorCheck:
        now = self._clock.now()
        return DoctorCheck(
            "clock",
            ok=now > EARLIEST_CLOCK,
            detail=f"{now:.0f} s since 1970",
            hint="" if now > EARLIEST_CLOCK else "set the system's clock: run ids and records carry it",
        )


def _said(exit_: Exit) -> str:
    text = exit_.text.strip()
    return f": {text[-200:]}" if text else ""
