"""An engine that goes away, comes back, and runs out of disk: one of the test's own, which may be killed."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker_support import STORE_ID, containers, docker_driver
from tallystick.sandbox.conformance import NONCE, ONE_CALL, guest, play, start
from tallystick.sandbox.docker.discovery import Endpoint
from tallystick.sandbox.docker.pin import PinFile
from tallystick.sandbox.frames import Call, Done
from tallystick.sandbox.protocol import EndOfGuest, Limits, Sandbox, SandboxError

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]


class OwnEngine:
    """A second engine, with everything of its own on a small disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.disk = folder / "disk"
        self.endpoint = Endpoint(path=str(folder / "s"))
        self.folder = folder
        self.log: deque[str] = deque(maxlen=20)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = ["dockerd", "--bridge", "none", "--iptables=false", "--host", str(self.endpoint)]
        command += ["--data-root", str(self.disk), "--exec-root", str(self.folder / "x")]
        command += ["--pidfile", str(self.folder / "p")]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        up = threading.Event()
        threading.Thread(target=self._listen, args=[self._process, up]).start()
        assert up.wait(60), "".join(self.log)

    def _listen(self, process: subprocess.Popen[str], up: threading.Event) -> None:
        """Read its log on: it says there that it is up."""
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.log.append(line)
                if "API listen on" in line:
                    up.set()

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the engine, and wait until it is gone with the process that it keeps beside it."""
        if self._process is None:
            return
        pid_file = self.folder / "x/containerd/containerd.pid"
        beside = os.pidfd_open(int(pid_file.read_text()))
        try:
            self._process.send_signal(number)
            self._process.wait(30)
            if number == signal.SIGKILL:
                signal.pidfd_send_signal(beside, number)
            assert select.select([beside], [], [], 30)[0]
            pid_file.unlink(missing_ok=True)  # the next engine would take even what nobody has reaped for alive
        finally:
            os.close(beside)
            self._process = None


@pytest.fixture
def own_engine() -> Iterator[OwnEngine]:
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI runs this as root, with dockerd installed")
        pytest.skip("only root can start an engine of its own")
    folder = Path(tempfile.mkdtemp(prefix="e"))  # short, for it holds sockets
    engine = OwnEngine(folder)
    engine.disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", engine.disk], check=True)
    try:
        engine.start()
        yield engine
    finally:
        engine.end(signal.SIGTERM)
        subprocess.run(["umount", "-l", engine.disk], check=True)
        shutil.rmtree(folder, ignore_errors=True)


async def up_to_its_call(sandbox: Sandbox) -> None:
    await start(sandbox, ONE_CALL, 7)
    (call,) = await sandbox.receive()
    assert isinstance(call, Call)


async def test_an_engine_that_goes_and_comes_back_costs_no_more_than_the_runs_in_it(own_engine: OwnEngine) -> None:
    pin_file = PinFile(own_engine.folder / "image.json")
    async with docker_driver(pin_file, own_engine.endpoint) as driver:
        for how in (signal.SIGTERM, signal.SIGKILL):
            sandbox = await driver.open(Limits(), NONCE)
            warm = await driver.open(Limits(), NONCE)
            await up_to_its_call(sandbox)
            own_engine.end(how)

            with pytest.raises(EndOfGuest):
                await sandbox.receive()
            with pytest.raises(EndOfGuest):
                await start(warm, ONE_CALL)
            assert (await sandbox.wait()).cause == "lost"
            assert (await sandbox.kill()).cause == "lost"
            assert (await warm.kill()).cause == "lost"
            with pytest.raises(SandboxError, match=r"the engine at .* is down|there is no engine at"):
                await driver.open(Limits(), NONCE)

            own_engine.start()
            async with guest(driver) as again:
                await start(again, ONE_CALL, 7)
                assert (await play(again))[-1] == Done(nonce=NONCE, value=7)
                assert await containers(STORE_ID, own_engine.endpoint) == [again.id]  # type: ignore[attr-defined]  # this driver's

        filler = own_engine.disk / "filler"
        free = shutil.disk_usage(own_engine.disk).free
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free)
        with pytest.raises(SandboxError, match="the engine's disk is full"):
            await driver.open(Limits(), NONCE)
        filler.unlink()
        async with guest(driver):
            pass
