"""The system calls of a confined guest, as a seccomp program: compute, read its frames, write its frames.

The program is assembled here, as bytes for the kernel, because no library for it is part of an interpreter. What it
does not name gets EPERM, so that an attempt shows as an ordinary error; a call in the convention of another
architecture (32-bit x86) kills the process, for its numbers mean other things. x32 shares the architecture of
x86_64 and marks its numbers with bit 30, so that none of them equals a number that is named.

Left out on purpose: rt_sigaction and rt_sigprocmask, so that the signal of the CPU limit can be neither caught nor
held back; everything that opens, makes or looks up (open, socket, pipe, dup, memfd_create, clone, execve); prctl,
prlimit and setrlimit, so that no lock can be loosened. Memory may be mapped, but never as executable.
"""

import errno
import struct
from typing import NamedTuple

COMPUTE = ("brk", "clock_gettime", "exit", "exit_group", "futex", "madvise", "mremap", "munmap", "rt_sigreturn",
           "sched_yield")  # fmt: skip
FRAMES = ("read", "write")
MAPPING = ("mmap", "mprotect")

PROT_EXEC = 4
X32_BIT = 0x40000000

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | errno.EPERM

LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_IF_BITS = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

# Offsets in struct seccomp_data. Arguments are 64-bit words; the bits looked at are in the low half, which both
# machines keep first.
NUMBER, ARCHITECTURE, THIRD_ARGUMENT = 0, 4, 32


class Machine(NamedTuple):
    """What the kernel of one machine calls itself, and the numbers of its system calls."""

    audit: int
    numbers: dict[str, int]


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        {
            "brk": 12, "capget": 125, "capset": 126, "clock_gettime": 228, "exit": 60, "exit_group": 231, "futex": 202,
            "getppid": 110, "landlock_create_ruleset": 444, "landlock_restrict_self": 446, "madvise": 28, "mmap": 9,
            "mprotect": 10, "mremap": 25, "munmap": 11, "read": 0, "rt_sigreturn": 15, "sched_yield": 24, "write": 1,
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        {
            "brk": 214, "capget": 90, "capset": 91, "clock_gettime": 113, "exit": 93, "exit_group": 94, "futex": 98,
            "getppid": 173, "landlock_create_ruleset": 444, "landlock_restrict_self": 446, "madvise": 233, "mmap": 222,
            "mprotect": 226, "mremap": 216, "munmap": 215, "read": 63, "rt_sigreturn": 139, "sched_yield": 124,
            "write": 64,
        },
    ),
}  # fmt: skip


class Instruction(NamedTuple):
    """One step of the program: its code, how far it jumps when true and when false, and its constant."""

    code: int
    if_true: int
    if_false: int
    constant: int


def program(machine: Machine) -> list[Instruction]:
    """Return the filter of a machine: the named calls are allowed, mappings only when they are not executable."""
    allowed = sorted(machine.numbers[name] for name in (*COMPUTE, *FRAMES))
    mapping = sorted(machine.numbers[name] for name in MAPPING)
    steps = [
        Instruction(LOAD_WORD, 0, 0, ARCHITECTURE),
        Instruction(JUMP_IF_EQUAL, 1, 0, machine.audit),
        Instruction(RETURN, 0, 0, KILL_PROCESS),
        Instruction(LOAD_WORD, 0, 0, NUMBER),
    ]
    for number in allowed:
        steps += [Instruction(JUMP_IF_EQUAL, 0, 1, number), Instruction(RETURN, 0, 0, ALLOW)]
    for number in mapping:
        steps += [
            Instruction(JUMP_IF_EQUAL, 0, 4, number),
            Instruction(LOAD_WORD, 0, 0, THIRD_ARGUMENT),
            Instruction(JUMP_IF_BITS, 1, 0, PROT_EXEC),
            Instruction(RETURN, 0, 0, ALLOW),
            Instruction(RETURN, 0, 0, REFUSE),
        ]
    steps.append(Instruction(RETURN, 0, 0, REFUSE))
    return steps


def assemble(steps: list[Instruction]) -> bytes:
    """Return the program as an array of ``struct sock_filter``."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
