"""A guest that is an enemy altogether, in a container: what holds is the container and the host."""

import anyio
import pytest

from docker_support import HELLO, SPEAK, docker_driver, docker_guest
from tallystick.sandbox.acceptance import frame, inside
from tallystick.sandbox.conformance import NONCE, guest, play, start
from tallystick.sandbox.docker import driver as driver_module
from tallystick.sandbox.frames import Call, Done, FrameError, Reply
from tallystick.sandbox.protocol import EndOfGuest, Limits, Sandbox, SandboxError

pytestmark = pytest.mark.engine


async def drain(sandbox: Sandbox) -> None:
    while True:
        await sandbox.receive()


# The tries of the acceptance, as a program of its own: no locks inside, so that the container alone holds them.
# It answers for each try that it does not expect to be let through.
UNCONFINED = (
    HELLO
    + """
import builtins
__builtins__ = vars(builtins)
class CapabilityError(Exception):
    def __init__(self): pass
"""
    + inside.PRELUDE
    + """
PARENT = 1
PAGE = CTYPES.addressof(CTYPES.create_string_buffer(8192)) & ~4095
found = {}
"""
)

# What a container lets a program do that a guest's own locks do not: look round in an image that holds nothing, and
# work with what it has been given.
LET_THROUGH = {
    "read-only filesystem": {"duplicate", "open a device", "open relative", "print to a terminal",
                             "scratch over its quota"},
    "seccomp": {"another filter", "code in memory", "code in old memory", "dumpable again", "entropy", "hold signals back",
                "ioctl", "kernel release", "openat2", "outlive the host", "catch the CPU signal"},
    "processes and signals": {"sleep"},
    "environment and secrets": {"environment of init", "another process's environment", "keys of the kernel", "memory of itself", "read a folder",
                                "read what is mapped"},
    "non-root execution": {"files that give another user's rights", "capabilities"},
    "resource limits": {"memory", "file size", "by the newer call", "of the parent"},
    "network isolation": {"network interfaces"},
}  # fmt: skip


@pytest.mark.parametrize("check", inside.PROBES)
async def test_the_container_alone_holds_what_the_guests_locks_hold(check: str, docker_image: str) -> None:
    let_through = LET_THROUGH.get(check, set())
    tries = {name: code for name, code in inside.PROBES[check].items() if name not in let_through}
    code = UNCONFINED + "\n".join(f"found[{name!r}] = {code}" for name, code in tries.items())
    async with docker_guest(docker_image, guest=f"{code}\nsay(Done(nonce=nonce, value=found))") as sandbox:
        await start(sandbox, "")
        (last,) = await sandbox.receive()
    assert isinstance(last, Done)
    assert {name: said for name, said in last.value.items() if said.startswith("DONE")} == {}


LOOK = """
import ctypes
def status(name):
    return [line.split(":")[1].split() for line in open("/proc/self/status") if line.startswith(name + ":")][0]
def attempt(action):
    try: return action() or "done"
    except OSError as error: return error.strerror
def fill():
    for name in "xyz":
        with open("/scratch/" + name, "wb", 0) as file:
            for _ in range(15): file.write(bytes(1 << 16))
def crowd():
    for n in range(1000): open(f"/scratch/{n}", "w").close()
value = {
    "user": [status("Uid"), status("Gid")],
    "capabilities": [status(name)[0] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "filter": [status("NoNewPrivs"), status("Seccomp")],
    "interfaces": os.listdir("/sys/class/net"),
    "processes": sorted(name for name in os.listdir("/proc") if name.isdigit()),
    "environment": dict(os.environ),
    "init": open("/proc/1/environ").read(),
    "set-id": [path + "/" + name for path, _, names in os.walk("/") if not path.startswith(("/proc", "/sys"))
               for name in names if os.lstat(path + "/" + name).st_mode & 0o6000],
    "programs": os.listdir("/usr/bin"),
    "beyond the quota": attempt(fill),
    "beyond the files": attempt(crowd),
    "other files": [attempt(lambda p=p: open(p, "w")) for p in ("/x", "/usr/lib/x", "/opt/guest/x", "/proc/sys/kernel/core_pattern")],
    "secrets": [attempt(lambda p=p: open(p, "rb").read(1)) for p in ("/proc/keys", "/proc/kcore", "/proc/timer_list")],
    "shared memory": attempt(lambda: open("/dev/shm/x", "w")),
    "fork": attempt(os.fork),
    "memory": open("/sys/fs/cgroup/memory/memory.limit_in_bytes").read().strip()
        if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") else open("/sys/fs/cgroup/memory.max").read().strip(),
}
say(Done(nonce=nonce, value=value))
"""


async def test_what_a_program_sees_that_looks_round_in_its_container(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-secret")
    async with docker_guest(docker_image, guest=HELLO + LOOK) as sandbox:
        await start(sandbox, "")
        (last,) = await sandbox.receive()
    assert isinstance(last, Done)
    seen = last.value
    assert seen["user"] == [["65534"] * 4, ["65534"] * 4]
    assert set(seen["capabilities"]) == {"0" * 16}
    assert seen["filter"] == [["1"], ["2"]]
    assert seen["interfaces"] == ["lo"]
    assert seen["processes"] == ["1"]
    assert set(seen["environment"]) <= {"PATH", "HOSTNAME", "HOME", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "LC_CTYPE"}
    assert "sk-planted-secret" not in str(seen)
    assert seen["set-id"] == []
    assert seen["programs"] == ["python3"]
    assert seen["beyond the quota"] == "No space left on device"
    assert seen["beyond the files"] == "No space left on device"
    assert set(seen["other files"]) == {"Read-only file system"}
    assert set(seen["secrets"]) <= {"done", "No such file or directory"}  # nothing to read: another file lies over each
    assert seen["shared memory"] != "done"
    assert seen["fork"] == "Operation not permitted"
    assert int(seen["memory"]) == Limits().memory


async def test_a_breach_by_a_program_of_its_own_ends_the_launch(docker_image: str) -> None:
    breaches = {name: code for name, code in frame.BREACHES.items() if "OS." not in code and "nested" not in code}
    code = f"{HELLO}MSGSPEC = msgspec\ndef fields(**v): frame(msgspec.msgpack.encode({{'nonce': nonce, **v}}))\n"
    code += "def call(**c): say(Call(**{**dict(nonce=nonce, id=1, site='', path=(), occurrence=0, capability='', payload=1), **c}))\n"
    unseen: list[str] = []

    async def one(name: str) -> None:
        async with (
            docker_driver(docker_image, guest=f"{code}{breaches[name]}\nfor_ever()", store=f"b-{name}") as driver,
            guest(driver) as sandbox,
        ):
            await start(sandbox, "")
            try:
                await drain(sandbox)
            except FrameError:
                if (await sandbox.kill()).cause == "protocol":
                    return
            unseen.append(name)

    async with anyio.create_task_group() as tasks:
        for name in breaches:
            tasks.start_soon(one, name)
    assert len(breaches) > 12
    assert unseen == []


async def test_a_flood_of_errors_ends_by_the_allowance_of_output(docker_image: str) -> None:
    code = f"{HELLO}while True: os.write(2, b'e' * 65536)"
    async with docker_guest(docker_image, guest=code, limits=Limits(output=4 << 20, stderr=1000)) as sandbox:
        await start(sandbox, "")
        with pytest.raises(FrameError, match="error stream"):
            await drain(sandbox)
        with pytest.raises(FrameError):
            await sandbox.receive()
        end = await sandbox.kill()
    assert (end.cause, end.text) == ("output", "e" * 1000)


async def test_a_flood_that_nobody_reads_does_not_hold_up_the_kill(docker_image: str) -> None:
    code = f"{HELLO}while True: os.write(1, bytes(65536)); os.write(2, bytes(65536))"
    async with docker_guest(docker_image, guest=code) as sandbox:
        await start(sandbox, "")
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sandbox.wait)  # it reads on, up to its bound, and then waits
                await anyio.wait_all_tasks_blocked()
                assert (await sandbox.kill()).cause == "killed"


async def test_a_guest_that_never_reads_holds_up_no_one_but_its_sender(docker_image: str) -> None:
    code = f"{HELLO}import _thread; lock = _thread.allocate_lock(); lock.acquire(); lock.acquire()"
    async with docker_guest(docker_image, guest=code) as sandbox:
        await start(sandbox, "")
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                with pytest.raises(EndOfGuest):
                    await send_on(sandbox)

            tasks.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                assert (await sandbox.kill()).cause == "killed"


async def send_on(sandbox: Sandbox) -> None:
    while True:
        await sandbox.send([Reply(nonce=NONCE, id=1, value="x" * (1 << 20))])


async def test_what_a_cancelled_send_left_over_goes_out_first(docker_image: str) -> None:
    code = """
import _signal, _thread
lock = _thread.allocate_lock()
lock.acquire()
_signal.signal(_signal.SIGUSR1, lambda *_: lock.release())
say(Ready(nonce=nonce, landlock=7, seccomp=True))
lock.acquire()
started = decode_to_guest(hear())
replied = decode_to_guest(hear())
say(Done(nonce=nonce, value=[len(started.source), replied.id]))
"""
    async with docker_guest(docker_image, guest=SPEAK + code) as sandbox, anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(cancel_when_blocked, scope)
            await start(sandbox, "x" * 3_900_000)
        assert scope.cancelled_caught
        tasks.start_soon(sandbox.send, [Reply(nonce=NONCE, id=7)])
        await sandbox._container.kill(signal="SIGUSR1")
        assert await sandbox.receive() == [Done(nonce=NONCE, value=[3_900_000, 7])]


async def cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


async def test_frames_and_errors_that_interleave_are_told_apart(docker_image: str) -> None:
    code = f"""{HELLO}
for n in range(200):
    os.write(2, b"e" * n)
    data = pack(Call(nonce=nonce, id=n + 1, site="s", path=(), occurrence=n, capability="c", payload="x" * n))
    os.write(1, data[:5]); os.write(2, b"E"); os.write(1, data[5:])
say(Done(nonce=nonce))
"""
    heard: list[object] = []
    async with docker_guest(docker_image, guest=code) as sandbox:
        await start(sandbox, "")
        while not heard or not isinstance(heard[-1], Done):
            heard += await sandbox.receive()
        end = await sandbox.wait()
    assert [call.payload for call in heard if isinstance(call, Call)] == ["x" * n for n in range(200)]
    assert (end.cause, end.code) == ("exit", 0)
    assert end.text.count("E") == 200
    assert len(end.text) == 200 + sum(range(200))


async def test_the_end_is_told_with_all_that_came_before_it(docker_image: str) -> None:
    code = f"{HELLO}os.write(2, b'e' * 60_000)\nfor n in range(1, 40): say(Log(nonce=nonce, text='x' * 10_000))\nsay(Done(nonce=nonce))"
    async with docker_guest(docker_image, guest=code) as sandbox:
        await start(sandbox, "")
        end = await sandbox.wait()  # before anything was received
        assert (end.cause, len(end.text)) == ("exit", 60_000)
        heard = await play(sandbox)
        assert len(heard) == 40


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import sys; sys.exit('no python here')", "the guest did not start: the guest's frames ended. no python here"),
        (SPEAK + "say(Ready(nonce='other'))\nfor_ever()", "another launch's nonce"),
        (SPEAK + "say(Ready(nonce=nonce))\nfor_ever()", "without its own filter"),
        (SPEAK + "say(Ready(nonce=nonce, seccomp=True), Done(nonce=nonce))\nfor_ever()", "and then waits"),
        ("import ctypes; ctypes.string_at(0)", "It ended by signal."),
        (
            "import os; os.write(2, b'no locks here'); os._exit(4)",
            "could not be confined, so it was not used. no locks",
        ),
    ],
    ids=["exit", "nonce", "no-filter", "eager", "signal", "unconfined"],
)
async def test_a_guest_that_does_not_start_as_agreed_is_not_used(code: str, text: str, docker_image: str) -> None:
    async with docker_driver(docker_image, guest=code) as driver:
        with pytest.raises(SandboxError) as refused:
            await driver.open(Limits(), NONCE)
        assert text in str(refused.value)


async def test_a_guest_that_stays_silent_is_not_waited_for_for_ever(
    docker_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "START_SECONDS", 0.5)
    async with docker_driver(docker_image, guest=f"{SPEAK}for_ever()") as driver:
        with pytest.raises(SandboxError, match=r"no sign of life within 0.5 s"):
            await driver.open(Limits(), NONCE)
