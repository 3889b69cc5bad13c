"""The system calls of a container: what its runtime, the loader, the interpreter and the guest's own locks need.

This filter is the outer of two. It has to let a guest start and confine itself, so it is wider than the filter that
the guest then puts on (``guest.seccomp``); it holds even for a program that does not confine itself. Nothing in it
makes a process, a socket, a file of a new kind or a namespace, mounts, traces, or signals anyone else.
"""

import json

from tallystick.sandbox.guest.seccomp import COMPUTE, FRAMES, MAPPING

# Between putting on the filter and starting the guest: the runtime opens its start signal, closes what is not the
# guest's, and its own language's runtime may find that it wants another thread for that.
RUNTIME = (
    "close_range", "epoll_ctl", "epoll_pwait", "execve", "faccessat2", "fstatfs", "getcwd", "getpid", "nanosleep",
    "openat2", "restart_syscall", "rt_sigprocmask", "sigaltstack",
)  # fmt: skip

# The loader and the interpreter, until the guest's modules are in memory; on both machines, with older C libraries.
START = (
    "access", "arch_prctl", "close", "dup2", "dup3", "faccessat", "fcntl", "fstat", "getdents64", "getrandom",
    "gettid", "ioctl", "lseek", "lstat", "newfstatat", "openat", "pread64", "prlimit64", "readlink", "readlinkat",
    "rseq", "rt_sigaction", "set_robust_list", "set_tid_address", "stat", "sysinfo", "uname",
)  # fmt: skip

# The guest's locks, and what it tries to see that they hold; getppid is there to be refused by its own filter.
LOCKS = ("capget", "capset", "getppid", "landlock_create_ruleset", "landlock_restrict_self", "prctl")

_THREAD = 0x00010000  # CLONE_THREAD: a thread may be made, a process may not


def profile() -> str:
    """Return the filter as the engine takes it, on one line."""
    names = sorted({*RUNTIME, *START, *LOCKS, *COMPUTE, *FRAMES, *MAPPING})
    allow = "SCMP_ACT_ALLOW"
    thread = {"index": 0, "value": _THREAD, "valueTwo": _THREAD, "op": "SCMP_CMP_MASKED_EQ"}
    rules = {
        "defaultAction": "SCMP_ACT_ERRNO",
        # Without sub-architectures: a call in another convention of the same machine is refused by the kernel.
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [
            {"names": names, "action": allow},
            {"names": ["clone"], "action": allow, "args": [thread]},
        ],
    }
    return json.dumps(rules, separators=(",", ":"))
