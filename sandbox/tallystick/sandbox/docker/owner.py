"""Whose a container is: the store and the process that started it, as labels that outlive that process."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

STORE = "tallystick.store"
OWNER = "tallystick.owner"
LAUNCH = "tallystick.launch"

_PROC = Path("/proc")
_STATE, _START = 0, 19  # places in /proc/<pid>/stat, counted after the program's name
_DEAD = {"Z", "X"}


class Owner(NamedTuple):
    """A process: its number, its start in clock ticks since the machine's, and which start of the machine that was.

    The number alone comes round again; the three together do not.
    """

    pid: int
    start: int
    boot: str

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.boot}"


def current() -> Owner:
    """Return this process as an owner."""
    started = _start(os.getpid())
    assert started is not None
    return Owner(os.getpid(), started, _boot())


def parse(label: str) -> Owner | None:
    """Read an owner's label; None when it is none of ours."""
    pid, _, rest = label.partition(":")
    start, _, boot = rest.partition(":")
    if pid.isdecimal() and start.isdecimal() and boot:
        return Owner(int(pid), int(start), boot)
    return None


def alive(owner: Owner) -> bool:
    """Return whether the very process still runs on this machine."""
    return owner.boot == _boot() and _start(owner.pid) == owner.start


def labels(store: str, owner: Owner, nonce: str) -> dict[str, str]:
    """Return a container's labels. The launch is named by a digest: who may list containers must not learn nonces."""
    return {STORE: store, OWNER: str(owner), LAUNCH: hashlib.sha256(nonce.encode()).hexdigest()[:32]}


def is_orphan(found: Mapping[str, str], store: str) -> bool:
    """Return whether a container with these labels belongs to this store and to a process that is gone.

    One whose owner cannot be read is nobody's to remove.
    """
    owner = parse(found.get(OWNER, ""))
    return found.get(STORE) == store and owner is not None and not alive(owner)


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start(pid: int) -> int | None:
    """Return when a process started, None when there is none, or only its remains."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _DEAD else int(fields[_START])
