"""What the kernel of this machine says of a container's process, where the engine runs on this machine.

The engine describes a container as it was told to make it. The kernel tells what it came to.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tallystick.sandbox.docker.profile import USER, Difference

_PROC = Path("/proc")
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_FILTER_IN_FORCE = "2"
_TEXTS = ("status", "uid_map", "gid_map", "net/route", "mountinfo")
_MOUNT_POINT, _MOUNT_OPTIONS = 4, 5  # places in a line of mountinfo


def seen_differences(found: Mapping[str, Any]) -> list[Difference]:
    """Compare a running container's process with what was asked for; nothing where it cannot be seen from here.

    Args:
        found: the engine's description of the container.
    """
    process = _PROC / str(found["State"]["Pid"])
    try:
        if found["Id"] not in (process / "cgroup").read_text(encoding="utf-8"):
            return []  # the engine counts processes elsewhere: this number is another's here
        texts = [(process / name).read_text(encoding="utf-8") for name in _TEXTS]
    except OSError:
        return []
    return list(judge(*texts))


def judge(status: str, users: str, groups: str, routes: str, mounts: str) -> Iterator[Difference]:
    """Yield what is not as it should be, by the kernel's own texts about the process.

    Args:
        status: its status.
        users: how its user ids map to this process's; an engine without root maps them.
        groups: the same for its group ids.
        routes: its network's, with one line of head.
        mounts: its mountinfo.
    """
    lines = {name: value.split() for name, _, value in (line.partition(":") for line in status.splitlines())}
    user, _, group = USER.partition(":")
    user, group = _outside(user, users), _outside(group, groups)
    wanted = {
        "Uid": [user] * 4,
        "Gid": [group] * 4,
        **{name: ["0" * 16] for name in _CAPABILITIES},
        "NoNewPrivs": ["1"],
        "Seccomp": [_FILTER_IN_FORCE],
    }
    for name, value in wanted.items():
        if lines.get(name) != value:
            yield Difference(f"the kernel's {name}", " ".join(value), " ".join(lines.get(name, ["missing"])))
    others = set(lines.get("Groups", ())) - {group}
    if others:
        yield Difference("the kernel's Groups", group, " ".join(sorted(others)))
    leading = [line.split()[0] for line in routes.splitlines()[1:] if line.strip()]
    if leading:
        yield Difference("the kernel's list of routes out", [], leading)
    root = [fields[_MOUNT_OPTIONS] for fields in map(str.split, mounts.splitlines()) if fields[_MOUNT_POINT] == "/"]
    if not root or "ro" not in root[-1].split(","):
        yield Difference("the kernel's mount of the root", "ro", root[-1] if root else "missing")


def _outside(number: str, mapped: str) -> str:
    """Return what an id inside is called outside: by the range of the map that it lies in."""
    for first, outside, count in (map(int, line.split()) for line in mapped.splitlines()):
        if first <= int(number) < first + count:
            return str(outside + int(number) - first)
    return "no id outside"
