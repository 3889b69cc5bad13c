"""Irreversible confinement of the calling process: limits, privileges, Landlock, seccomp (architecture.md, section 5).

Unprivileged, without namespaces, with ctypes alone, in the order in which each lock leaves the next one possible.
Each lock is tried from inside once it is closed: what the kernel says it accepted is not yet what it enforces. A lock
that is missing is refused, unless an operator does without it by name.

Namespaces (bwrap, ``unshare``) were tried and left out: many hosts forbid them to ordinary users, and they add
nothing to a process that can neither open nor connect.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from typing import NamedTuple

from tallystick.sandbox.frames import Boot
from tallystick.sandbox.guest.seccomp import MACHINES, Machine, assemble, program

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
LANDLOCK_VERSION_FLAG = 1

OPTIONAL = frozenset({"landlock", "seccomp"})

# How many rights on files each version of Landlock knows, by its first version.
_FILE_RIGHTS = ((5, 16), (3, 15), (2, 14), (1, 13))
_NET_VERSION, _TCP_RIGHTS = 4, 0b11  # bind, connect
_SCOPE_VERSION, _SCOPES = 6, 0b11  # abstract unix sockets, signals

_libc = ctypes.CDLL(None, use_errno=True)


class LockError(Exception):
    """A lock did not close. The message names it and says what to do."""


class Confinement(NamedTuple):
    """What is in force: Landlock's version (0 for none) and whether system calls are filtered."""

    landlock: int
    seccomp: bool


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    Raises:
        LockError: the parent is gone already.
    """
    _checked("parent", _prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    if os.getppid() != parent:
        raise LockError("the process that started this guest is gone")


def confine(boot: Boot) -> Confinement:
    """Close every lock and try each one.

    Raises:
        LockError: one is missing here, or does not hold.
    """
    machine = _machine()
    _limit(boot)
    _drop_privileges(machine)
    landlock = _landlock(machine)
    if not landlock and "landlock" not in boot.allow_missing:
        raise LockError(
            "landlock: this kernel does not offer it (Linux 5.13 or newer, CONFIG_SECURITY_LANDLOCK, and 'landlock' in "
            "the lsm= boot parameter); use the docker sandbox, or do without this lock by naming 'landlock'"
        )
    filtered = _filter(machine)
    if not filtered and "seccomp" not in boot.allow_missing:
        raise LockError(
            "seccomp: this kernel does not filter system calls (CONFIG_SECCOMP_FILTER); use the docker sandbox, or do "
            "without this lock by naming 'seccomp'"
        )
    return Confinement(landlock, filtered)


def _machine() -> Machine:
    name = os.uname().machine
    if name not in MACHINES or sys.maxsize < 1 << 32:
        raise LockError(
            f"seccomp: no table of system calls for this machine ({name}); there is one for a 64-bit "
            f"interpreter on {' and '.join(MACHINES)}; use the docker sandbox"
        )
    return MACHINES[name]


def _limit(boot: Boot) -> None:
    # One second lies between the signal of the CPU limit, which names the cause, and the kill.
    limits = {
        resource.RLIMIT_AS: (boot.memory, boot.memory),
        resource.RLIMIT_CPU: (boot.cpu_seconds, boot.cpu_seconds + 1),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (boot.stderr, boot.stderr),
        resource.RLIMIT_NOFILE: (boot.open_files, boot.open_files),
        resource.RLIMIT_NPROC: (0, 0),
    }
    for which, (soft, hard) in limits.items():
        inherited = resource.getrlimit(which)[1]
        highest = hard if inherited == resource.RLIM_INFINITY else min(hard, inherited)
        pair = (min(soft, highest), highest)
        resource.setrlimit(which, pair)
        if resource.getrlimit(which) != pair:
            raise LockError(f"limits: resource limit {which} is {resource.getrlimit(which)}, not {pair}")


def _drop_privileges(machine: Machine) -> None:
    """Give up every capability, and any way to gain one; close /proc and ptrace to others of this user."""
    _checked("no_new_privs", _prctl(PR_SET_NO_NEW_PRIVS, 1))
    header = struct.pack("=II", CAPABILITY_VERSION_3, 0)
    _checked("capabilities", _system_call(machine, "capset", header, bytes(24)))
    _checked("dumpable", _prctl(PR_SET_DUMPABLE, 0))
    held = ctypes.create_string_buffer(24)
    _checked("capabilities", _system_call(machine, "capget", header, held))
    if any(held.raw) or _prctl(PR_GET_DUMPABLE) or _prctl(PR_GET_NO_NEW_PRIVS) != 1:
        raise LockError("privileges: they were given up, and are still there")


def _landlock(machine: Machine) -> int:
    """Forbid every access to files and TCP, and signals to others; return Landlock's version, 0 where it is missing."""
    version = _system_call(machine, "landlock_create_ruleset", None, ctypes.c_size_t(0), LANDLOCK_VERSION_FLAG)
    if version < 1:
        return 0
    files = (1 << next(count for first, count in _FILE_RIGHTS if version >= first)) - 1
    words = [files]
    if version >= _NET_VERSION:
        words.append(_TCP_RIGHTS)
    if version >= _SCOPE_VERSION:
        words.append(_SCOPES)
    rules = struct.pack(f"={len(words)}Q", *words)
    ruleset = _checked(
        "landlock", _system_call(machine, "landlock_create_ruleset", rules, ctypes.c_size_t(len(rules)), 0)
    )
    _checked("landlock", _system_call(machine, "landlock_restrict_self", ruleset, 0))
    os.close(ruleset)
    _try_to_open()
    if version >= _NET_VERSION:
        _try_to_connect()
    return version


def _try_to_open() -> None:
    try:
        descriptor = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    os.close(descriptor)
    raise LockError("landlock: the kernel accepted it, and a folder can still be read")


def _try_to_connect() -> None:
    # The port of 127.0.0.1 that nobody listens on: without the lock this is refused by the peer, not by the kernel.
    inet, stream, port = 2, 1, 1
    descriptor = _libc.socket(inet, stream, 0)
    if descriptor < 0:
        return  # no TCP here at all
    address = struct.pack("=H2s4s8x", inet, port.to_bytes(2, "big"), bytes([127, 0, 0, 1]))
    connected = _libc.connect(descriptor, address, len(address))
    refused_by = ctypes.get_errno()
    os.close(descriptor)
    if connected == 0 or refused_by != errno.EACCES:
        raise LockError("landlock: the kernel accepted it, and TCP is still open")


def _filter(machine: Machine) -> bool:
    """Load the seccomp program; return False where the kernel has none."""
    code = ctypes.create_string_buffer(assemble(program(machine)))
    count = (len(code) - 1) // 8
    filter_program = ctypes.create_string_buffer(struct.pack("@HP", count, ctypes.addressof(code)))
    if _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(filter_program)) < 0:
        return False
    if _system_call(machine, "getppid") != -1 or ctypes.get_errno() != errno.EPERM:
        raise LockError("seccomp: the kernel accepted it, and a system call that it does not name still works")
    return True


def _prctl(option: int, *arguments: int) -> int:
    words = [*arguments, 0, 0, 0, 0][:4]
    result: int = _libc.prctl(option, *map(ctypes.c_ulong, words))
    return result


def _system_call(machine: Machine, name: str, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(machine.numbers[name]), *arguments)
    return result


def _checked(lock: str, result: int) -> int:
    if result < 0:
        raise LockError(f"{lock}: {os.strerror(ctypes.get_errno())}")
    return result
