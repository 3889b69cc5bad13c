"""What hostile Python tries inside a guest, as scripts that the guest itself runs.

NEVER run one of these anywhere else. Each script first proves that the system call filter is in force and does
nothing otherwise, and none of the tries would do harm by its arguments; that is a second rope, not the first.
"""

PRELUDE = """
def climb():
    real = CapabilityError.__init__.__globals__["__builtins__"]
    bring = real["__import__"]
    return real, bring, bring("os"), bring("sys"), bring("ctypes"), bring("errno")

REAL, BRING, OS, SYS, CTYPES, ERRNO = climb()
LIBC = CTYPES.CDLL(None, use_errno=True)
ON_ARM = SYS.implementation._multiarch.startswith("aarch64")

def kernel(number, *arguments):
    CTYPES.set_errno(0)
    result = LIBC.syscall(CTYPES.c_long(number), *arguments)
    return "DONE" if result >= 0 else ERRNO.errorcode.get(CTYPES.get_errno(), "?")

def c(name, *arguments):
    CTYPES.set_errno(0)
    result = REAL["getattr"](LIBC, name)(*arguments)
    return "DONE" if result >= 0 else ERRNO.errorcode.get(CTYPES.get_errno(), "?")

def attempt(action, *arguments):
    try:
        return f"DONE {action(*arguments)!r:.80}"
    except Exception as error:
        return ERRNO.errorcode.get(error.errno, "?") if hasattr(error, "errno") and error.errno else f"{error!r:.80}"

def confined():
    return kernel(173 if ON_ARM else 110) == "EPERM"
"""

# Old system calls have a number on each machine (x86_64, aarch64); those from 424 on have one number on both.
PROBES: dict[str, dict[str, str]] = {
    "network isolation": {
        "tcp socket": 'c("socket", 2, 1, 0)',
        "udp socket": 'c("socket", 2, 2, 0)',
        "tcp6 socket": 'c("socket", 10, 1, 0)',
        "unix socket": 'c("socket", 1, 1, 0)',
        "raw socket": 'c("socket", 2, 3, 1)',
        "packet socket": 'c("socket", 17, 3, 0)',
        "netlink socket": 'c("socket", 16, 3, 0)',
        "vsock": 'c("socket", 40, 1, 0)',
        "socket pair": 'c("socketpair", 1, 1, 0, (CTYPES.c_int * 2)())',
        "connect": 'c("connect", 0, bytes(16), 16)',
        "bind": 'c("bind", 0, bytes(16), 16)',
        "listen": 'c("listen", 0, 1)',
        "send": 'c("send", 0, b"x", 1, 0)',
        "the socket module": 'attempt(BRING, "socket")',
        "name resolution": '"EAI" if LIBC.getaddrinfo(b"example.com", b"80", None, bytes(8)) else "DONE"',
        "engine socket": 'attempt(OS.stat, "/var/run/docker.sock")',
        "network interfaces": 'attempt(OS.listdir, "/sys/class/net")',
    },
    "read-only filesystem": {
        "write a file": 'attempt(OS.open, "/tmp/x", 0o101)',
        "write where libraries lie": 'attempt(OS.open, "/usr/lib/x", 0o101)',
        "open a device": 'attempt(OS.open, "/dev/null", 2)',
        "shared memory": 'attempt(OS.open, "/dev/shm/x", 0o102)',
        "core pattern": 'attempt(OS.open, "/proc/sys/kernel/core_pattern", 1)',
        "open relative": 'c("openat", -100, b".", 0)',
        "pipe": "attempt(OS.pipe)",
        "duplicate": "attempt(OS.dup, 0)",
        "make a folder": 'attempt(OS.mkdir, "/tmp/x")',
        "symbolic link": 'attempt(OS.symlink, "/etc/shadow", "/tmp/x")',
        "hard link": 'attempt(OS.link, "/etc/passwd", "/tmp/x")',
        "remove": 'attempt(OS.unlink, "/tmp/surely-not-there")',
        "rename": 'attempt(OS.rename, "/tmp/surely-not-there", "/tmp/x")',
        "change mode": 'attempt(OS.chmod, "/tmp/surely-not-there", 0o777)',
        "device node": 'attempt(OS.mknod, "/tmp/x", 0o20666, 259)',
        "truncate": 'attempt(OS.truncate, "/tmp/surely-not-there", 0)',
        "a module from disk": 'attempt(BRING, "sqlite3")',
        "print to a terminal": 'attempt(REAL["input"])',
        "remount the root": 'c("mount", b"none", b"/", None, 32 | 4096, None)',
        "scratch over its quota": 'attempt(OS.open, "/scratch/x", 0o102)',
        "scratch over its number of files": 'attempt(OS.mkdir, "/scratch/x")',
        "run a file of its own": 'attempt(OS.execv, "/scratch/x", ["x"])',
        "kernel settings under /sys": 'attempt(OS.open, "/sys/kernel/uevent_helper", 1)',
        "release agent of a control group": 'attempt(OS.open, "/sys/fs/cgroup/release_agent", 1)',
        "magic keys": 'attempt(OS.open, "/proc/sysrq-trigger", 1)',
    },
    "non-root execution": {
        "become root": "attempt(OS.setuid, 0)",
        "set groups": 'c("setgroups", 0, None)',
        "capabilities": 'c("capset", bytes(8), bytes(24))',
        "become another group": "attempt(OS.setgid, 0)",
        "files that give another user's rights": 'attempt(OS.listdir, "/usr/bin")',
    },
    "seccomp": {
        "openat2": 'kernel(437, -100, b"/", bytes(24), CTYPES.c_size_t(24))',
        "file by handle": "kernel(265 if ON_ARM else 304, 0, bytes(16), 0)",
        "anonymous file": 'c("memfd_create", b"x", 0)',
        "event": 'c("eventfd", 0, 0)',
        "watch": 'c("inotify_init1", 0)',
        "trace": 'c("ptrace", 16, 1, None, None)',
        "read another's memory": 'c("process_vm_readv", 1, None, 0, None, 0, 0)',
        "write another's memory": 'c("process_vm_writev", 1, None, 0, None, 0, 0)',
        "catch the CPU signal": 'attempt(BRING("_signal").signal, 24, 1)',
        "hold signals back": 'c("sigprocmask", 0, bytes(128), None)',
        "add key": 'kernel(217 if ON_ARM else 248, b"user", b"k", b"v", CTYPES.c_size_t(1), -3)',
        "key control": "kernel(219 if ON_ARM else 250, 0, -3, 0)",
        "bpf": "kernel(280 if ON_ARM else 321, 0, bytes(8), 8)",
        "perf": "kernel(241 if ON_ARM else 298, bytes(8), 0, -1, -1, 0)",
        "user faults": "kernel(282 if ON_ARM else 323, 0)",
        "io_uring": "kernel(425, 1, bytes(120))",
        "personality": 'c("personality", 0xFFFFFFFF)',
        "another filter": 'c("prctl", 22, 2, bytes(16), 0, 0)',
        "dumpable again": 'c("prctl", 4, 1, 0, 0, 0)',
        "outlive the host": 'c("prctl", 1, 0, 0, 0, 0)',
        "kernel release": "attempt(OS.uname)",
        "log": 'c("klogctl", 3, None, 0)',
        "ioctl": 'c("ioctl", 0, 0x5401, bytes(64))',
        "entropy": "attempt(OS.urandom, 8)",
        "code in memory": '"DONE" if LIBC.mmap(None, CTYPES.c_size_t(4096), 7, 0x22, -1, 0) != -1 '
        "else ERRNO.errorcode[CTYPES.get_errno()]",
        "code in old memory": 'c("mprotect", CTYPES.c_void_p(PAGE), CTYPES.c_size_t(4096), 7)',
        "landlock away": "kernel(446, 0, 0)",
    },
    "namespaces and kernel": {
        "mount": 'c("mount", b"none", b"/tmp", b"tmpfs", 0, None)',
        "unmount": 'c("umount2", b"/surely-not-there", 0)',
        "new mount interface": 'kernel(430, b"tmpfs", 0)',
        "user namespace": 'c("unshare", 0x10000000)',
        "mount namespace": 'c("unshare", 0x20000)',
        "enter a namespace": 'c("setns", 0, 0)',
        "change root": 'c("chroot", b"/tmp")',
        "pivot root": 'kernel(41 if ON_ARM else 155, b"/", b"/")',
        "load a module": 'kernel(105 if ON_ARM else 175, None, CTYPES.c_size_t(0), b"")',
        "kexec": "kernel(104 if ON_ARM else 246, 0, 0, None, 0)",
        "reboot": 'c("reboot", 0)',
        "swap": 'c("swapoff", b"/surely-not-there")',
        "set the clock": 'kernel(170 if ON_ARM else 164, b"\\xff" * 16, None)',
        "adjust the clock": 'c("adjtimex", bytes(256))',
        "host name": 'c("sethostname", b"x", 0)',
    },
    "processes and signals": {
        "fork": 'c("fork")',
        "clone": "kernel(220 if ON_ARM else 56, 0, 0, 0, 0, 0)",
        "clone3": "kernel(435, bytes(88), CTYPES.c_size_t(88))",
        "exec": 'attempt(OS.execv, "/bin/true", ["true"])',
        "exec by descriptor": 'kernel(281 if ON_ARM else 322, 0, b"", None, None, 0x1000)',
        "thread": 'attempt(BRING("_thread").start_new_thread, print, ())',
        "signal everyone": "attempt(OS.kill, -1, 0)",
        "signal init": "attempt(OS.kill, 1, 0)",
        "signal its parent": "attempt(OS.kill, PARENT, 0)",
        "signal by descriptor": "kernel(424, 0, 0, None, 0)",
        "open a process": "kernel(434, 1, 0)",
        "take a descriptor": "kernel(438, 0, 0, 0)",
        "timer": 'c("setitimer", 0, bytes(32), None)',
        "sleep": 'attempt(BRING("time").sleep, 60)',
        "wait": "attempt(OS.wait)",
        "session": "attempt(OS.setsid)",
        "priority": 'c("setpriority", 0, 0, 0)',
        "real-time scheduling": 'c("sched_setscheduler", 0, 1, bytes([1, 0, 0, 0]))',
        "shared memory segment": 'c("shmget", 0, 4096, 0o1600)',
        "message queue": 'c("msgget", 0, 0o1600)',
    },
    "environment and secrets": {
        "read a file": 'attempt(OS.open, "/etc/passwd", 0)',
        "read a folder": 'attempt(OS.listdir, "/")',
        "read its own program": "attempt(OS.open, climb.__code__.co_filename, 0)",
        "read what is mapped": 'attempt(OS.open, "/proc/self/maps", 0)',
        "environment of init": 'attempt(OS.open, "/proc/1/environ", 0)',
        "memory of itself": 'attempt(OS.open, "/proc/self/mem", 2)',
        "memory of the kernel": 'attempt(OS.open, "/proc/kcore", 0)',
        "keys of the kernel": 'attempt(OS.open, "/proc/keys", 0)',
        "another process's environment": 'attempt(OS.open, f"/proc/{PARENT}/environ", 0)',
    },
    "resource limits": {
        "memory": 'c("setrlimit", 9, (CTYPES.c_ulong * 2)(1 << 40, 1 << 40))',
        "CPU": 'c("setrlimit", 0, (CTYPES.c_ulong * 2)(9999, 9999))',
        "open files": 'c("setrlimit", 7, (CTYPES.c_ulong * 2)(1 << 20, 1 << 20))',
        "file size": 'c("setrlimit", 1, (CTYPES.c_ulong * 2)(1 << 20, 1 << 20))',
        "by the newer call": 'c("prlimit", 0, 9, (CTYPES.c_ulong * 2)(1 << 40, 1 << 40), None)',
        "of the parent": 'c("prlimit", PARENT, 7, (CTYPES.c_ulong * 2)(1, 1), None)',
    },
}

# What may answer instead of EPERM, where the attempt fails before it reaches the kernel.
OTHERWISE = {
    "the socket module": "ModuleNotFoundError",
    "a module from disk": "ModuleNotFoundError",
    "name resolution": "EAI",
    "thread": "RuntimeError",
    "print to a terminal": "EOFError",
}


def probe_script(group: str) -> str:
    """Return a script that runs one group of probes and returns {name: what happened}; args is the parent's pid."""
    lines = [
        PRELUDE,
        "async def orchestrate(ctx, args):",
        "    if not confined():",
        "        return 'NOT CONFINED: nothing was tried'",
        "    PARENT = args",
        "    PAGE = CTYPES.addressof(CTYPES.create_string_buffer(8192)) & ~4095",
        "    found = {}",
        *(f"    found[{name!r}] = {probe}" for name, probe in PROBES[group].items()),
        "    return found",
    ]
    return "\n".join(lines)


def held(name: str, said: object) -> bool:
    """Return whether a probe's answer means that the wall held."""
    return isinstance(said, str) and said.startswith(OTHERWISE.get(name, "EPERM"))
