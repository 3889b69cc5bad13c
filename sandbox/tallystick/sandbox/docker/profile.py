"""What a container is asked to be, and how it differs from what the engine made of it. Pure functions."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tallystick.sandbox.docker.seccomp import profile
from tallystick.sandbox.protocol import Limits

USER = "65534:65534"
PROCESSES = 32  # of the runtime, until it has become the guest; the guest can make none
DESCRIPTORS = 64  # of the runtime; the guest takes on fewer
SCRATCH = "/scratch"
SCRATCH_BYTES, SCRATCH_FILES = 1 << 20, 64
CPUS = 1

_SECURITY = "no-new-privileges:true"


class Difference(NamedTuple):
    """One thing that is not as it was asked for."""

    name: str
    asked: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.name} is {_shown(self.found)}, not {_shown(self.asked)}"


def container(image: str, command: list[str], limits: Limits, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of one guest's container, as the engine's interface takes them: everything off but frames.

    A guest that ends, ends at once (no restart, no grace); what it leaves is read before it is removed.
    """
    return {
        "Image": image,
        "Entrypoint": command,
        "Cmd": [],
        "User": USER,
        "Env": ["PYTHONHASHSEED=0"],
        "Hostname": "guest",
        "WorkingDir": "/",
        "Labels": dict(labels),
        "NetworkDisabled": True,
        "StopSignal": "SIGKILL",
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "NetworkMode": "none",
            "IpcMode": "none",
            "Privileged": False,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": [_SECURITY, f"seccomp={profile()}"],
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": CPUS * 1_000_000_000,
            "PidsLimit": PROCESSES,
            "Ulimits": [
                {"Name": name, "Soft": soft, "Hard": hard}
                for name, soft, hard in (
                    ("core", 0, 0),
                    ("cpu", limits.cpu_seconds, limits.cpu_seconds + 1),
                    ("fsize", SCRATCH_BYTES, SCRATCH_BYTES),
                    ("memlock", 0, 0),
                    ("msgqueue", 0, 0),
                    ("nofile", DESCRIPTORS, DESCRIPTORS),
                )
            ],
            "Tmpfs": {
                SCRATCH: f"rw,noexec,nosuid,nodev,size={SCRATCH_BYTES},nr_inodes={SCRATCH_FILES},mode=0700,"
                f"uid={USER.partition(':')[0]},gid={USER.partition(':')[2]}"
            },
            "LogConfig": {"Type": "none"},
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
        },
    }


#: What must be as asked for, by its place in the engine's description of a container.
_CHECKED = (
    "Config.Entrypoint", "Config.NetworkDisabled", "Config.Tty", "Config.User", "HostConfig.CapDrop",
    "HostConfig.IpcMode", "HostConfig.LogConfig.Type", "HostConfig.Memory", "HostConfig.MemorySwap",
    "HostConfig.NanoCpus", "HostConfig.NetworkMode", "HostConfig.PidsLimit", "HostConfig.Privileged",
    "HostConfig.ReadonlyRootfs", "HostConfig.Tmpfs",
)  # fmt: skip

#: What must be empty, for anything in it is a way in or out.
_EMPTY = (
    "HostConfig.Binds", "HostConfig.CapAdd", "HostConfig.DeviceCgroupRules", "HostConfig.DeviceRequests",
    "HostConfig.Devices", "HostConfig.GroupAdd", "HostConfig.Links", "HostConfig.Mounts", "HostConfig.PidMode",
    "HostConfig.PortBindings", "HostConfig.Sysctls", "HostConfig.UTSMode", "HostConfig.UsernsMode",
    "HostConfig.VolumesFrom", "Mounts",
)  # fmt: skip


def differences(asked: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """Compare the settings asked for with the engine's description of the container that it started.

    Args:
        asked: the settings, as ``container`` returns them.
        found: the description, as the engine returns it for a running container.
    """
    return list(_differences({"Config": asked, "HostConfig": asked["HostConfig"]}, asked["Image"], found))


def _differences(asked: Mapping[str, Any], image: str, found: Mapping[str, Any]) -> Iterator[Difference]:
    if found.get("Image") != image:
        yield Difference("the image", image, found.get("Image"))
    if not _at(found, "State.Running"):
        yield Difference("State.Running", asked=True, found=_at(found, "State.Running"))
    for place in _CHECKED:
        if _at(found, place) != _at(asked, place):
            yield Difference(place, _at(asked, place), _at(found, place))
    for place in _EMPTY:
        if _at(found, place):
            yield Difference(place, None, _at(found, place))
    options, options_found = (set(_at(of, "HostConfig.SecurityOpt") or ()) for of in (asked, found))
    if options != options_found:
        yield Difference("HostConfig.SecurityOpt", sorted(options - options_found), sorted(options_found - options))
    # An engine may add limits of its own; they can only take more away.
    limits, limits_found = (set(map(_limit, _at(of, "HostConfig.Ulimits") or ())) for of in (asked, found))
    if limits - limits_found:
        yield Difference("HostConfig.Ulimits", sorted(limits - limits_found), sorted(limits_found))
    networks = set(_at(found, "NetworkSettings.Networks") or {})
    if networks - {"none"}:
        yield Difference("the network", ["none"], sorted(networks))


def _limit(each: Mapping[str, Any]) -> tuple[str, int, int]:
    return each["Name"], each["Soft"], each["Hard"]


def _at(of: Mapping[str, Any], place: str) -> Any:
    value: Any = of
    for step in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."  # noqa: PLR2004 - a filter alone has kilobytes
