import errno
import os
import select
import signal
import subprocess
import sys
import textwrap

import anyio
import pytest

from sandbox_support import guests
from tallystick.sandbox.conformance import ENDLESS, NONCE, guest, play, start
from tallystick.sandbox.frames import Done, FrameError
from tallystick.sandbox.guest.process import EXIT_CRASH, EXIT_MEMORY
from tallystick.sandbox.locked import LockedDriver, exit_cause, program
from tallystick.sandbox.protocol import Limits, SandboxError

NOTHING = "async def orchestrate(ctx, args): return 1\n"


def patched(*lines: str) -> str:
    """Return the real guest, except that its kernel answers differently."""
    return program(
        "\n".join(
            [
                "from tallystick.sandbox.guest import lockdown, process",
                "real = lockdown._system_call",
                *lines,
                "process.main()",
            ]
        )
    )


NO_LANDLOCK = patched("lockdown._system_call = lambda m, name, *a: -1 if 'landlock' in name else real(m, name, *a)")
NO_SECCOMP = patched("lockdown._filter = lambda machine: False")


@pytest.mark.parametrize(
    ("lock", "without"), [("landlock", NO_LANDLOCK), ("seccomp", NO_SECCOMP)], ids=["landlock", "seccomp"]
)
async def test_a_missing_lock_is_refused_by_name_unless_it_was_opted_out_of(lock: str, without: str) -> None:
    with pytest.raises(SandboxError, match=f"could not be confined, so it was not used. {lock}: .*by naming '{lock}'"):
        await LockedDriver(guest=without).open(Limits(), NONCE)
    other = ({"landlock", "seccomp"} - {lock}).pop()
    with pytest.raises(SandboxError, match=lock):
        await LockedDriver(guest=without, allow_missing=[other]).open(Limits(), NONCE)
    async with guest(LockedDriver(guest=without, allow_missing=[lock])) as sandbox:
        await start(sandbox, NOTHING)
        assert await play(sandbox) == [Done(nonce=NONCE, value=1)]


@pytest.mark.parametrize(
    ("lie", "text"),
    [
        (
            "lambda m, name, *a: 7 if 'landlock' in name else real(m, name, *a)\nlockdown.os.close = print",
            "folder can still be read",
        ),
        ("lambda m, name, *a: 0 if name == 'getppid' else real(m, name, *a)", "seccomp: the kernel accepted it"),
        (
            "lambda m, name, *a: 0 if name == 'capset' else real(m, name, *a)\nlockdown.any = lambda held: True",
            "privileges",
        ),
    ],
    ids=["landlock", "seccomp", "privileges"],
)
async def test_a_lock_that_the_kernel_accepted_but_does_not_keep_is_refused(lie: str, text: str) -> None:
    with pytest.raises(SandboxError, match=text):
        await LockedDriver(guest=patched(f"lockdown._system_call = {lie}")).open(Limits(), NONCE)


async def test_a_machine_without_a_table_is_refused() -> None:
    other = patched("lockdown.MACHINES = {}")
    with pytest.raises(SandboxError, match="no table of system calls for this machine"):
        await LockedDriver(guest=other).open(Limits(), NONCE)


def test_only_locks_that_can_be_done_without_may_be_named() -> None:
    with pytest.raises(ValueError, match="rlimits: only landlock and seccomp can be done without"):
        LockedDriver(allow_missing=["rlimits", "landlock"])


async def test_an_interpreter_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/surely/not/there")
    with pytest.raises(SandboxError, match=r"no guest could be started: .*No such file"):
        await LockedDriver().open(Limits(), NONCE)


async def test_a_kernel_without_process_descriptors_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - names are enough
    monkeypatch.setattr(os, "pidfd_open", missing)
    with pytest.raises(SandboxError, match="not implemented; the locked sandbox needs Linux"):
        await LockedDriver().open(Limits(), NONCE)
    assert guests() == []
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208 - names are enough


async def test_descriptors_and_processes_are_given_back() -> None:
    driver = LockedDriver()
    async with guest(driver):
        pass
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 - names are enough
    for source in (NOTHING, ENDLESS, "?"):
        async with guest(driver) as sandbox:
            await start(sandbox, source)
            assert sandbox.pid is not None
    with pytest.raises(SandboxError):
        await LockedDriver(guest=NO_LANDLOCK).open(Limits(), NONCE)
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208 - names are enough
    assert guests() == []


async def test_several_guests_run_side_by_side() -> None:
    driver = LockedDriver()
    results: list[object] = []

    async def one(value: int) -> None:
        async with guest(driver) as sandbox:
            await start(sandbox, "async def orchestrate(ctx, args): return args\n", value)
            (done,) = await play(sandbox)
            assert isinstance(done, Done)
            results.append(done.value)

    async with anyio.create_task_group() as group:
        for value in range(4):
            group.start_soon(one, value)
    assert sorted(map(str, results)) == ["0", "1", "2", "3"]


HOST = """
import anyio, sys
from tallystick.sandbox.conformance import ENDLESS, NONCE, start
from tallystick.sandbox.locked import LockedDriver
from tallystick.sandbox.protocol import Limits
async def main():
    sandbox = await LockedDriver().open(Limits(), NONCE)
    {before}
    print(sandbox.pid, flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.parametrize("before", ["pass", "await start(sandbox, ENDLESS)"], ids=["waiting", "computing"])
def test_a_guest_does_not_outlive_a_host_that_is_killed(before: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(HOST).replace("{before}", before)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        guest_end = os.pidfd_open(int(host.stdout.readline()))
        host.send_signal(signal.SIGKILL)
    try:
        ended, _, _ = select.select([guest_end], [], [], 10)
        assert ended
    finally:
        os.close(guest_end)


FAULT = FrameError("x")


@pytest.mark.parametrize(
    ("status", "killed", "fault", "exceeded", "cause"),
    [
        (0, False, None, False, "exit"),
        (EXIT_CRASH, False, None, False, "exit"),
        (EXIT_MEMORY, False, None, False, "memory"),
        (-signal.SIGXCPU, False, None, False, "cpu"),
        (-signal.SIGXCPU, True, FAULT, False, "cpu"),
        (-signal.SIGSEGV, False, None, False, "signal"),
        (-signal.SIGKILL, True, None, False, "killed"),
        (-signal.SIGKILL, False, None, False, "memory"),
        (-signal.SIGKILL, True, FAULT, False, "protocol"),
        (-signal.SIGKILL, True, FAULT, True, "output"),
        (0, False, FAULT, False, "protocol"),
    ],
)
def test_every_end_has_its_cause(
    status: int, killed: bool, fault: FrameError | None, exceeded: bool, cause: str
) -> None:
    assert exit_cause(status, killed=killed, fault=fault, exceeded=exceeded) == cause


def test_loading_the_driver_does_not_load_the_rest_of_the_house() -> None:
    code = "import sys, tallystick.sandbox.locked; print([m for m in sys.modules if m.startswith('tallystick.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "tallystick.sandbox.locked" in loaded
    assert "tallystick.contract" not in loaded
