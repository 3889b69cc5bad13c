"""The system call filter, evaluated step by step as the kernel does: what it lets pass, on both machines."""

import re
import struct
from pathlib import Path

import pytest

from tallystick.sandbox.guest.seccomp import (
    ALLOW,
    ARCHITECTURE,
    COMPUTE,
    FRAMES,
    JUMP_IF_BITS,
    JUMP_IF_EQUAL,
    KILL_PROCESS,
    LOAD_WORD,
    MACHINES,
    MAPPING,
    NUMBER,
    PROT_EXEC,
    REFUSE,
    RETURN,
    X32_BIT,
    Machine,
    assemble,
    program,
)

I386, ARM = 0x40000003, 0x40000028
READ_WRITE = 3
NUMBERS = range(512)

machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


class Filter:
    """A machine's program, disassembled from what the kernel gets."""

    def __init__(self, machine: Machine) -> None:
        self.audit = machine.audit
        self.steps = list(struct.iter_unpack("=HBBI", assemble(program(machine))))

    def decide(self, number: int, third: int = 0, audit: int | None = None) -> int:
        """Run the program on one system call."""
        data = struct.pack("=IIQQQQQQQ", number, audit or self.audit, 0, 0, 0, third, 0, 0, 0)
        at = accumulator = 0
        while True:
            code, if_true, if_false, constant = self.steps[at]
            at += 1
            if code == LOAD_WORD:
                (accumulator,) = struct.unpack_from("=I", data, constant)
            elif code == JUMP_IF_EQUAL:
                at += if_true if accumulator == constant else if_false
            elif code == JUMP_IF_BITS:
                at += if_true if accumulator & constant else if_false
            else:
                assert code == RETURN
                return int(constant)


@machines
def test_exactly_the_named_calls_pass(machine: Machine) -> None:
    decide = Filter(machine).decide
    verdicts = {number: decide(number, READ_WRITE) for number in NUMBERS}
    allowed = {number for number, verdict in verdicts.items() if verdict == ALLOW}
    assert allowed == {machine.numbers[name] for name in (*COMPUTE, *FRAMES, *MAPPING)}
    assert {verdicts[number] for number in NUMBERS if number not in allowed} == {REFUSE}


@machines
@pytest.mark.parametrize("name", MAPPING)
def test_memory_is_never_mapped_as_executable(machine: Machine, name: str) -> None:
    decide, number = Filter(machine).decide, machine.numbers[name]
    assert [decide(number, bits) == ALLOW for bits in range(8)] == [not bits & PROT_EXEC for bits in range(8)]


@machines
def test_the_numbers_of_x32_are_refused(machine: Machine) -> None:
    decide = Filter(machine).decide
    assert {decide(X32_BIT | number) for number in NUMBERS} == {REFUSE}


@machines
@pytest.mark.parametrize("audit", [I386, ARM, None])
def test_calls_of_another_architecture_kill(machine: Machine, audit: int | None) -> None:
    other = audit or next(known.audit for known in MACHINES.values() if known != machine)
    decide = Filter(machine).decide
    assert {decide(number, audit=other) for number in NUMBERS} == {KILL_PROCESS}


def test_both_machines_know_the_same_names() -> None:
    assert len({frozenset(machine.numbers) for machine in MACHINES.values()}) == 1
    assert all(len(set(machine.numbers.values())) == len(machine.numbers) for machine in MACHINES.values())


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_numbers_are_those_of_the_kernels_headers(name: str, header: str) -> None:
    if not Path(header).exists():
        pytest.skip(f"{header} is not installed")
    defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text()))
    assert {call: int(defined[call]) for call in MACHINES[name].numbers} == MACHINES[name].numbers


def test_the_offsets_are_those_of_the_kernels_structure() -> None:
    data = struct.pack("=IIQ6Q", 11, 22, 0, 1, 2, 33, 4, 5, 6)
    assert [struct.unpack_from("=I", data, at)[0] for at in (NUMBER, ARCHITECTURE, 32)] == [11, 22, 33]
