"""The compiled filter, judged by an interpreter of its own for both architectures."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from moonbox.worker.jail.policy import (
    ALLOWED,
    ARCHITECTURES,
    CHECKED,
    COMPANION,
    CONNECTED,
    FILES,
    HOSTILE,
    NEWEST_KNOWN,
    numbers,
)
from moonbox.worker.jail.seccomp import (
    ALLOW,
    INSTRUCTION,
    KILL_PROCESS,
    REFUSE,
    UNKNOWN,
    Assembler,
    compile_policy,
)

MACHINES = sorted(ARCHITECTURES)
PID = 4321
MANY = 0xFFFF_FFFF_FFFF_FFFF


class Machine:
    """Runs a program on a made-up system call, as the kernel would."""

    def __init__(self, name: str) -> None:
        self.architecture = ARCHITECTURES[name]
        self.numbers = numbers(self.architecture)
        compiled, pid_at = compile_policy(self.architecture)
        program = bytearray(compiled)
        for offset in pid_at:
            struct.pack_into("=I", program, offset, PID)
        self.code = list(INSTRUCTION.iter_unpack(program))
        self.steps = 0

    def call(self, name: str, *arguments: int) -> int:
        return self.decide(self.numbers[name], *arguments)

    def decide(self, number: int, *arguments: int, audit: int | None = None) -> int:
        padded = [*arguments, *[0] * (6 - len(arguments))]
        data = struct.pack("<iIQ6Q", _signed(number), self.architecture.audit if audit is None else audit, 0, *padded)
        at = value = self.steps = 0
        while True:
            code, then, otherwise, operand = self.code[at]
            at += 1
            self.steps += 1
            if code == 0x20:
                value = int.from_bytes(data[operand : operand + 4], "little")
            elif code == 0x54:
                value &= operand
            elif code == 0x15:
                at += then if value == operand else otherwise
            elif code == 0x35:
                at += then if value >= operand else otherwise
            elif code == 0x06:
                return operand
            else:
                raise AssertionError(f"instruction {code:#x}")


@pytest.fixture(params=MACHINES)
def machine(request):
    return Machine(request.param)


def test_exactly_the_named_calls_pass_whatever_their_arguments(machine):
    allowed = {machine.numbers[name] for name in ALLOWED if name in machine.numbers}
    checked = {machine.numbers[rule.name] for rule in CHECKED}
    for arguments in ([0] * 6, [MANY] * 6):
        passing = {n for n in range(2000) if machine.decide(n, *arguments) == ALLOW}
        assert allowed <= passing <= allowed | checked


def test_everything_else_is_killed_refused_or_unknown(machine):
    named = {machine.numbers[name] for name in (*ALLOWED, *(rule.name for rule in CHECKED)) if name in machine.numbers}
    hostile = {machine.numbers[name] for name in HOSTILE if name in machine.numbers}
    for number in sorted(set(range(2000)) - named):
        expected = KILL_PROCESS if number in hostile else REFUSE if number <= NEWEST_KNOWN else UNKNOWN
        assert machine.decide(number) == expected, number


def test_another_architecture_is_killed(machine):
    for audit in {0x4000_0003, 0x4000_0028, 0xC000_003E, 0xC000_00B7} - {machine.architecture.audit}:
        for name in ("read", "exit_group", "getpid"):
            assert machine.decide(machine.numbers[name], audit=audit) == KILL_PROCESS


def test_x32_is_killed():
    machine = Machine("x86_64")
    for number in (0x4000_0000, 0x4000_0001, 0x4000_0027, 0x7FFF_FFFF, -1):
        assert machine.decide(number) == KILL_PROCESS


def test_memory_is_private_anonymous_and_never_code(machine):
    ordinary = 0x02 | 0x20
    for protection in (0, 1, 3):
        for more in (0, 0x10, 0x4000, 0x20000):  # fixed, not reserved, stack
            assert machine.call("mmap", 0, 4096, protection, ordinary | more, MANY, 0) == ALLOW
    for protection in (4, 5, 7, 0xFFFF_FFFF_0000_0004):
        assert machine.call("mmap", 0, 4096, protection, ordinary, MANY, 0) == REFUSE
        assert machine.call("mprotect", 0x1000, 4096, protection) == REFUSE
    for flags in (0x01 | 0x20, 0x02, 0x01, 0x03 | 0x20, ordinary | 0x2000, ordinary | 0x40000):
        assert machine.call("mmap", 0, 4096, 3, flags, MANY, 0) == REFUSE
    assert machine.call("mprotect", 0x1000, 4096, 3) == ALLOW
    assert [machine.call("madvise", 0, 0, advice) for advice in (4, 8)] == [ALLOW] * 2
    assert {machine.call("madvise", 0, 0, advice) for advice in range(200) if advice not in (4, 8)} == {REFUSE}


def test_sockets_take_no_address_and_no_odd_flags(machine):
    assert machine.call("sendto", 3, 0x7F00, 5, 0x4000 | 0x40, 0, 0) == ALLOW
    for address in (1, 0x7FFF_0000_0000, 1 << 32):
        assert machine.call("sendto", 3, 0x7F00, 5, 0, address, 16) == REFUSE
    for bit in range(32):
        ours = 1 << bit
        assert machine.call("sendto", 3, 0x7F00, 5, ours, 0, 0) == (ALLOW if ours in (0x40, 0x4000) else REFUSE)
        assert machine.call("recvfrom", 3, 0x7F00, 5, ours) == (ALLOW if ours in (0x2, 0x40, 0x100) else REFUSE)


def test_futexes_wait_and_wake_only(machine):
    plain = {operation for operation in range(128) if machine.call("futex", 0x7F00, operation) == ALLOW}
    assert plain == {0, 1, 3, 9}
    assert machine.call("futex", 0x7F00, 9 | 128 | 256) == ALLOW
    assert machine.call("futex", 0x7F00, 9 | 512) == REFUSE


def test_signals_go_to_itself_only(machine):
    assert machine.call("tgkill", PID, PID + 1, 6) == ALLOW
    for other in (0, 1, PID - 1, PID + 1, 0xFFFF_FFFF):
        assert machine.call("tgkill", other, other, 9) == REFUSE


def test_its_own_limits_can_be_read_and_not_set(machine):
    pointer = 0x7FFF_1234_0000
    assert machine.call("prlimit64", 0, 9, 0, pointer) == ALLOW
    assert machine.call("prlimit64", 0, 0, pointer, 0) == REFUSE
    assert machine.call("prlimit64", 0, 9, pointer, 0) == REFUSE
    assert machine.call("prlimit64", 0, 9, 1 << 32, 0) == REFUSE
    assert machine.call("prlimit64", 77, 0, pointer, 0) == REFUSE
    assert machine.call("prlimit64", 77, 9, 0, pointer) == REFUSE


def test_ioctl_sets_the_blocking_mode_only(machine):
    assert machine.call("ioctl", 3, 0x5421) == ALLOW
    for command in (0x5401, 0x5412, 0x5413, 0x5422, 0):
        assert machine.call("ioctl", 3, command) == REFUSE


def test_clocks_are_its_own(machine):
    for name in ("clock_gettime", "clock_getres", "clock_nanosleep"):
        assert {machine.call(name, clock) for clock in range(12)} == {ALLOW}
        for clock in (16, 0xFFFF_FFF9, (~1 << 3 | 2) & 0xFFFF_FFFF):
            assert machine.call(name, clock) == REFUSE


def test_no_decision_takes_long(machine):
    """The kernel tries every number when the filter is installed, and worker start pays for it."""
    longest = 0
    for number in range(NEWEST_KNOWN + 10):
        machine.decide(number)
        longest = max(longest, machine.steps)
    assert longest <= 22
    assert len(machine.code) < 256


def test_no_call_is_in_two_lists_and_each_has_a_number():
    checked = {rule.name for rule in CHECKED}
    lists = [set(ALLOWED), checked, set(HOSTILE)]
    assert sum(map(len, lists)) == len(set.union(*lists)) == len(ALLOWED) + len(checked) + len(HOSTILE)
    for architecture in ARCHITECTURES.values():
        own = numbers(architecture)
        assert set(own) <= set.union(*lists, COMPANION, FILES, CONNECTED)
        assert len(set(own.values())) == len(own)
        assert checked <= set(own)
    assert set(numbers(ARCHITECTURES["x86_64"])) == set.union(*lists, COMPANION, FILES, CONNECTED)
    assert set(COMPANION) & set(HOSTILE) == {"execve"}
    # The same rules for one call stand together: they are compiled as one.
    names = [rule.name for rule in CHECKED]
    assert len(checked) == 1 + sum(one != other for one, other in pairwise(names))


def test_the_unconditional_list_is_this_and_no_more():
    assert sorted(ALLOWED) == [
        "brk", "close", "exit", "exit_group", "getpid", "getppid", "getrandom", "getrlimit", "getrusage", "gettid",
        "gettimeofday", "mremap", "munmap", "nanosleep", "poll", "ppoll", "read", "restart_syscall", "rt_sigprocmask",
        "rt_sigreturn", "sched_yield", "shutdown", "time", "times", "write", "writev",
    ]  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(name):
    found = _headers(name)
    if not found:
        pytest.skip("no kernel headers for it here")
    ours = numbers(ARCHITECTURES[name])
    assert {call: found[call] for call in ours} == ours


def test_a_jump_that_is_too_far_is_an_error():
    code = Assembler()
    code.if_equal(1, then="far")
    for _ in range(256):
        code.load(0)
    code.label("far")
    code.give(0)
    with pytest.raises(ValueError, match="256 instructions away; a jump reaches 0 to 255"):
        code.assemble()
    with pytest.raises(ValueError, match="label 'far' is placed twice"):
        code.label("far")


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _headers(name: str) -> dict[str, int]:
    places = {
        "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
        "aarch64": ["/usr/include/asm-generic/unistd.h"],
    }[name]
    text = next((Path(place).read_text() for place in places if Path(place).exists()), "")
    defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    found = {call: int(number) for call, number in defined.items()}
    return found | {"newfstatat": found["fstatat"]} if "fstatat" in found else found
