"""The decisions of the docker driver that need no engine."""

import copy
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docker_support import require_engine
from tallystick.sandbox.docker import owner
from tallystick.sandbox.docker.attached import Demultiplexer
from tallystick.sandbox.docker.client import refusal
from tallystick.sandbox.docker.discovery import Availability, Endpoint, available, find, parse, unreachable
from tallystick.sandbox.docker.ends import EXIT_CPU, exit_of
from tallystick.sandbox.docker.image import recipe
from tallystick.sandbox.docker.kernel_view import judge
from tallystick.sandbox.docker.pin import Pin, PinFile
from tallystick.sandbox.docker.profile import container, differences
from tallystick.sandbox.docker.seccomp import profile
from tallystick.sandbox.frames import FrameError
from tallystick.sandbox.guest.process import EXIT_ABANDONED, EXIT_MEMORY
from tallystick.sandbox.protocol import Limits

Settings = dict[str, Any]

ASKED = container("sha256:aa", ["python3", "-c", "guest"], Limits(), {"tallystick.store": "s"})


def described(asked: Settings) -> Settings:
    """Describe a running container as an engine does that made it as asked."""
    asked = copy.deepcopy(asked)
    host = asked["HostConfig"]
    host["Ulimits"].reverse()
    return {
        "Id": "c",
        "Image": asked["Image"],
        "State": {"Running": True, "Pid": 7},
        "Config": asked,
        "HostConfig": {**host, "CapAdd": None, "Binds": None, "Devices": [], "PidMode": ""},
        "NetworkSettings": {"Networks": {"none": {}}},
        "Mounts": [],
    }


def test_a_container_as_it_was_asked_for_has_no_differences() -> None:
    assert differences(ASKED, described(ASKED)) == []


def test_an_engine_may_limit_more_than_it_was_asked_to() -> None:
    description = described(ASKED)
    description["HostConfig"]["Ulimits"].append({"Name": "nproc", "Soft": 9, "Hard": 9})
    assert differences(ASKED, description) == []


def changed(*path: str, to: Any) -> Callable[[Settings], None]:
    def change(found: Settings) -> None:
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "asked", "found"),
    [
        (changed("Image", to="sha256:bb"), "sha256:aa", "sha256:bb"),
        (changed("State", "Running", to=False), "True", "False"),
        (changed("Config", "User", to="0"), "65534:65534", "'0'"),
        (changed("Config", "Entrypoint", to=["sh"]), "python3", "sh"),
        (changed("HostConfig", "NetworkMode", to="host"), "'none'", "'host'"),
        (changed("NetworkSettings", "Networks", to={"bridge": {}}), "'none'", "'bridge'"),
        (changed("HostConfig", "ReadonlyRootfs", to=False), "True", "False"),
        (changed("HostConfig", "Privileged", to=True), "False", "True"),
        (changed("HostConfig", "CapDrop", to=[]), "'ALL'", "[]"),
        (changed("HostConfig", "CapAdd", to=["SYS_ADMIN"]), "None", "SYS_ADMIN"),
        (changed("HostConfig", "SecurityOpt", to=["no-new-privileges:true"]), "seccomp=", "[]"),
        (changed("HostConfig", "SecurityOpt", to=["seccomp=unconfined"]), "no-new-privileges", "unconfined"),
        (changed("HostConfig", "Memory", to=0), str(512 << 20), "0"),
        (changed("HostConfig", "MemorySwap", to=-1), str(512 << 20), "-1"),
        (changed("HostConfig", "NanoCpus", to=0), "1000000000", "0"),
        (changed("HostConfig", "PidsLimit", to=None), "32", "None"),
        (changed("HostConfig", "Ulimits", to=[]), "nofile", "[]"),
        (changed("HostConfig", "Tmpfs", to={}), "nr_inodes", "{}"),
        (changed("HostConfig", "IpcMode", to="shareable"), "'none'", "'shareable'"),
        (changed("HostConfig", "PidMode", to="host"), "None", "'host'"),
        (changed("HostConfig", "LogConfig", to={"Type": "json-file"}), "'none'", "'json-file'"),
        (changed("HostConfig", "Binds", to=["/:/host"]), "None", "/:/host"),
        (changed("Mounts", to=[{"Source": "/"}]), "None", "Source"),
        (changed("HostConfig", "Devices", to=[{"PathOnHost": "/dev/sda"}]), "None", "/dev/sda"),
    ],
)
def test_a_difference_names_what_was_asked_and_what_was_found(
    change: Callable[[Settings], None], asked: str, found: str
) -> None:
    description = described(ASKED)
    change(description)
    (difference,) = differences(ASKED, description)
    what_is, _, what_was_asked = str(difference).partition(", not ")
    assert found in what_is
    assert asked in what_was_asked


STATUS = """Name:\tpython3
Uid:\t65534\t65534\t65534\t65534
Gid:\t65534\t65534\t65534\t65534
Groups:\t65534
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
"""
SAME = "         0          0 4294967295\n"
ROUTES = "Iface\tDestination\tGateway\n"
MOUNTS = "600 500 0:50 / / ro,relatime - overlay overlay rw\n601 600 0:51 / /proc rw - proc proc rw\n"


def test_the_kernels_view_of_a_confined_process_has_no_differences() -> None:
    assert list(judge(STATUS, SAME, SAME, ROUTES, MOUNTS)) == []


@pytest.mark.parametrize(
    ("status", "routes", "mounts", "name"),
    [
        (STATUS.replace("Uid:\t65534", "Uid:\t0"), ROUTES, MOUNTS, "Uid"),
        (STATUS.replace("Gid:\t65534", "Gid:\t0"), ROUTES, MOUNTS, "Gid"),
        (STATUS.replace("Groups:\t65534", "Groups:\t0 65534"), ROUTES, MOUNTS, "Groups"),
        (STATUS.replace("CapBnd:\t0000000000000000", "CapBnd:\t00000000a80425fb"), ROUTES, MOUNTS, "CapBnd"),
        (STATUS.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0"), ROUTES, MOUNTS, "NoNewPrivs"),
        (STATUS.replace("Seccomp:\t2\n", ""), ROUTES, MOUNTS, "Seccomp"),
        (STATUS, ROUTES + "eth0\t00000000\t010011AC\n", MOUNTS, "routes"),
        (STATUS, ROUTES, MOUNTS.replace("/ / ro", "/ / rw"), "root"),
        (STATUS, ROUTES, "", "root"),
    ],
)
def test_the_kernels_view_names_what_is_open(status: str, routes: str, mounts: str, name: str) -> None:
    (difference,) = judge(status, SAME, SAME, routes, mounts)
    assert name in difference.name


def test_ids_are_compared_as_they_are_called_outside() -> None:
    """An engine without root has its ids mapped: 65534 inside is another number here."""
    shifted = "0 1000 1\n1 100000 65536\n"
    status = STATUS.replace("Uid:\t65534\t65534\t65534\t65534", "Uid:\t165533\t165533\t165533\t165533")
    status = status.replace("Gid:\t65534\t65534\t65534\t65534", "Gid:\t165533\t165533\t165533\t165533")
    status = status.replace("Groups:\t65534", "Groups:\t165533")
    assert list(judge(status, shifted, shifted, ROUTES, MOUNTS)) == []
    assert [each.name for each in judge(STATUS, shifted, SAME, ROUTES, MOUNTS)] == ["the kernel's Uid"]
    assert [each.name for each in judge(STATUS, "0 1000 1\n", SAME, ROUTES, MOUNTS)] == ["the kernel's Uid"]


FAULT = FrameError("x")


@pytest.mark.parametrize(
    ("state", "seen", "cause", "code", "number"),
    [
        ({"ExitCode": 0}, {}, "exit", 0, None),
        ({"ExitCode": 0, "OOMKilled": True}, {}, "memory", 0, None),
        ({"ExitCode": 1}, {}, "exit", 1, None),
        ({"ExitCode": EXIT_ABANDONED}, {}, "lost", EXIT_ABANDONED, None),
        ({"ExitCode": EXIT_MEMORY}, {}, "memory", EXIT_MEMORY, None),
        ({"ExitCode": EXIT_CPU}, {}, "cpu", EXIT_CPU, None),
        ({"ExitCode": 128 + signal.SIGXCPU}, {"killed": True}, "cpu", None, signal.SIGXCPU),
        ({"ExitCode": 137, "OOMKilled": True}, {}, "memory", None, signal.SIGKILL),
        ({"ExitCode": 137}, {"memory_event": True}, "memory", None, signal.SIGKILL),
        ({"ExitCode": 137}, {"killed": True}, "killed", None, signal.SIGKILL),
        ({"ExitCode": 137}, {"killed": True, "lost": True}, "lost", None, signal.SIGKILL),
        ({"ExitCode": 137}, {}, "lost", None, signal.SIGKILL),
        ({"ExitCode": 137}, {"killed": True, "fault": FAULT}, "protocol", None, signal.SIGKILL),
        ({"ExitCode": 137}, {"killed": True, "fault": FAULT, "exceeded": True}, "output", None, signal.SIGKILL),
        ({"ExitCode": 139}, {}, "signal", None, signal.SIGSEGV),
        ({"ExitCode": 255}, {}, "exit", 255, None),
    ],
)
def test_every_end_has_its_cause(
    state: Settings, seen: Settings, cause: str, code: int | None, number: int | None
) -> None:
    seen = {"text": "", "killed": False, "lost": False, "fault": None, "exceeded": False, "memory_event": False, **seen}
    end = exit_of({"OOMKilled": False, **state}, Limits(), **seen)
    assert (end.cause, end.code, end.signal) == (cause, code, number)
    assert bool(end.limit) == (cause in {"memory", "cpu", "output"})
    assert ("from outside" in end.text) == (cause == "lost" and not seen["killed"] and code is None)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.binary(max_size=40))), st.integers(1, 30))
def test_streams_come_apart_however_their_bytes_arrive(sent: list[tuple[int, bytes]], size: int) -> None:
    data = b"".join(bytes([stream, 0, 0, 0]) + len(part).to_bytes(4, "big") + part for stream, part in sent)
    streams = Demultiplexer()
    came = [part for at in range(0, len(data), size) for part in streams.feed(data[at : at + size])]
    for is_output in (True, False):
        wanted = b"".join(part for stream, part in sent if (stream == 1) == is_output)
        assert b"".join(part for output, part in came if output == is_output) == wanted


def test_an_owner_is_alive_only_as_the_very_same_process() -> None:
    me = owner.current()
    assert owner.parse(str(me)) == me
    assert owner.alive(me)
    assert not owner.alive(me._replace(start=me.start + 1))  # its number came round again
    assert not owner.alive(me._replace(boot="another start of the machine"))
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert owner._start(child.pid) is None  # it ended and nobody has looked yet


@pytest.mark.parametrize(
    ("labels", "orphan"),
    [
        ({owner.STORE: "mine", owner.OWNER: "1:1:gone"}, True),
        ({owner.STORE: "mine", owner.OWNER: str(owner.current())}, False),
        ({owner.STORE: "other", owner.OWNER: "1:1:gone"}, False),
        ({owner.STORE: "mine", owner.OWNER: "?"}, False),
        ({owner.STORE: "mine"}, False),
        ({}, False),
    ],
)
def test_an_orphan_is_this_stores_and_its_owner_is_dead(labels: dict[str, str], orphan: bool) -> None:
    assert owner.is_orphan(labels, "mine") == orphan


def test_labels_do_not_tell_the_nonce() -> None:
    assert "n0nce" not in str(owner.labels("s", owner.current(), "n0nce"))


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("unix:///run/x.sock", Endpoint(path="/run/x.sock")),
        ("tcp://127.0.0.1:2375", Endpoint(host="127.0.0.1", port=2375)),
        ("tcp://engine:2375/", Endpoint(host="engine", port=2375)),
    ],
)
def test_an_address_is_read_and_written_alike(url: str, endpoint: Endpoint) -> None:
    assert parse(url) == endpoint
    assert str(endpoint) == url.rstrip("/")
    assert find({"DOCKER_HOST": url}) == endpoint


@pytest.mark.parametrize("url", ["ssh://host", "unix://", "tcp://host", "npipe:////./pipe/x", "nonsense"])
async def test_an_address_that_cannot_be_used_is_refused_by_name(url: str) -> None:
    found = await available({"DOCKER_HOST": url})
    assert not found
    assert url in found.reason
    with pytest.raises(ValueError, match="with TLS"):
        find({"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1"})


def test_a_socket_of_the_users_own_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.sandbox.docker.discovery.SOCKETS", (str(tmp_path / "system.sock"),))
    assert find({"XDG_RUNTIME_DIR": str(tmp_path)}).path == str(tmp_path / "system.sock")
    (tmp_path / "docker.sock").touch()
    assert find({"XDG_RUNTIME_DIR": str(tmp_path)}).path == str(tmp_path / "docker.sock")


async def test_an_engine_that_is_not_there_is_told_from_one_that_is_down(tmp_path: Path) -> None:
    where = {"DOCKER_HOST": f"unix://{tmp_path}/e"}
    assert "there is no engine at" in (await available(where)).reason
    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(f"{tmp_path}/e")
    assert "is down" in (await available(where)).reason


async def test_a_socket_closed_to_this_user_says_so(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/e")
        listener.listen()
        os.chmod(f"{tmp_path}/e", 0)  # noqa: PTH101 - not from within an event loop, says another rule
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            found = await available({"DOCKER_HOST": f"unix://{tmp_path}/e"})
        finally:
            os.seteuid(user)
    assert not found
    assert "closed to this user" in found.reason


async def test_another_server_is_not_taken_for_an_engine(tmp_path: Path) -> None:
    from contextlib import suppress

    import anyio

    async def refuse(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            with suppress(anyio.BrokenResourceError):
                await stream.send(b"SSH-2.0-OpenSSH_9.2\r\n")

    async with await anyio.create_unix_listener(tmp_path / "e") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        found = await available({"DOCKER_HOST": f"unix://{tmp_path}/e"})
        tasks.cancel_scope.cancel()
    assert "is no Docker Engine" in found.reason


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (404, "No such image: sha256:aa", "tally image build"),
        (500, "mkdir /x: no space left on device", "disk is full"),
        (409, "Conflict", "could not create a guest: Conflict"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, said: str, advice: str) -> None:
    assert advice in refusal("create a guest", status, said)
    assert said in refusal("create a guest", status, said)


def test_trouble_with_the_engine_says_what_to_do() -> None:
    assert "group" in unreachable("unix:///e", PermissionError())
    assert "does not answer" in unreachable("unix:///e", TimeoutError())


def test_a_pin_survives_its_file(tmp_path: Path) -> None:
    file = PinFile(tmp_path / "image.json")
    assert file.read() is None
    pin = Pin(image="sha256:aa", recipe="r", base="b", python="3.11.7")
    file.write(pin)
    file.write(pin)
    assert file.read() == pin
    assert [path.name for path in tmp_path.iterdir()] == ["image.json"]
    file.path.write_text("{")
    with pytest.raises(ValueError, match=r"image\.json is not an image pin .* tally image build"):
        file.read()


def test_the_recipe_holds_the_guest_and_changes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = recipe()
    assert recipe() == first
    names = set(first.files)
    assert {"Dockerfile", "guest/collect.py", "guest/tallystick/sandbox/guest/core.py"} <= names
    assert not any("docker" in name or "locked" in name for name in names if name != "Dockerfile")
    monkeypatch.setattr(sys, "version", "3.99")
    assert recipe().digest != first.digest


def test_the_outer_filter_makes_nothing_and_reaches_nobody() -> None:
    rules = json.loads(profile())
    assert rules["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed, thread = rules["syscalls"]
    assert thread["names"] == ["clone"]
    assert thread["args"] == [{"index": 0, "value": 65536, "valueTwo": 65536, "op": "SCMP_CMP_MASKED_EQ"}]
    never = """socket connect bind socketpair fork vfork clone clone3 kill tgkill tkill ptrace mount umount2 unshare setns
        chroot pivot_root mknod mknodat symlink link rename unlink mkdir chmod chown bpf perf_event_open keyctl add_key
        io_uring_setup userfaultfd memfd_create process_vm_readv init_module kexec_load reboot open_by_handle_at
        setuid setgid setgroups personality seccomp pidfd_open pidfd_getfd shmget msgget mq_open inotify_init1"""
    assert set(never.split()) & set(allowed["names"]) == set()


@pytest.mark.parametrize("ci", [True, False])
def test_a_missing_engine_skips_a_test_but_fails_it_in_ci(ci: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", str(ci).lower())
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception, match="nobody home"):
        require_engine(Availability(None, "nobody home"))


@pytest.mark.parametrize(
    "code",
    [
        "from tallystick.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "import tallystick.kernel",
        "import tallystick.sandbox.locked, tallystick.engine.daemon, tallystick.sandbox.acceptance",
        "import anyio, tallystick.sandbox.docker.discovery as d; anyio.run(d.available)",
    ],
    ids=["help", "kernel", "daemon", "discovery"],
)
def test_the_engines_client_is_loaded_only_by_who_uses_it(code: str) -> None:
    code += "\nimport sys; print('LOADED', [m for m in sys.modules if m.split('.')[0] in ('aiodocker', 'aiohttp')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "LOADED []" in done.stdout
