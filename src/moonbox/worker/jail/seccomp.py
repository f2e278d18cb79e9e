"""The system call filter: the policy compiled for this machine, and its installation in every thread."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from functools import partial
from itertools import groupby

from moonbox.worker.jail.layers import Layer, Step, Unavailable
from moonbox.worker.jail.policy import (
    ALL_BITS,
    ALLOWED,
    ARCHITECTURES,
    CHECKED,
    HOSTILE,
    NEWEST_KNOWN,
    PID,
    Architecture,
    ArgumentCheck,
    Checked,
    numbers,
)

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.libc import Libc

ALLOW = 0x7FFF_0000
KILL_PROCESS = 0x8000_0000
ERRNO = 0x0005_0000
REFUSE = ERRNO | errno.EPERM
UNKNOWN = ERRNO | errno.ENOSYS

SET_MODE_FILTER = 1
FLAG_TSYNC = 1

_REASONS = {
    errno.ENOSYS: "the kernel is older than Linux 3.17, or a container's policy hides the call",
    errno.EINVAL: "the kernel is built without system call filters (CONFIG_SECCOMP_FILTER)",
    errno.EPERM: "refused by the container's system call policy",
    errno.EACCES: "no-new-privileges is not in force",
}

Rules = tuple[Checked, ...]
Names = tuple[str, ...]


def filter_calls(libc: Libc, allowed: Names = ALLOWED, checked: Rules = CHECKED, hostile: Names = HOSTILE) -> Step:
    """Put every thread of this process under the filter, for good. Needs no_new_privileges."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        raise Unavailable(f"no system call table for {machine}; there is one for {' and '.join(ARCHITECTURES)}")
    if sys.maxsize < 2**32 or sys.byteorder != "little":
        raise Unavailable("the system call tables are for 64-bit little-endian processes")
    architecture = ARCHITECTURES[machine]
    compiled, pid_at = compile_policy(architecture, allowed, checked, hostile)
    program = ctypes.create_string_buffer(compiled, len(compiled))
    count = len(compiled) // INSTRUCTION.size
    header = ctypes.create_string_buffer(struct.pack("@HP", count, ctypes.addressof(program)))
    install = libc.ready(numbers(architecture)["seccomp"], SET_MODE_FILTER, FLAG_TSYNC, ctypes.addressof(header))
    layer = Layer("seccomp", True, "every system call is refused but those that computing needs, in every thread")
    fill_in = [partial(put_pid, program, offset) for offset in pid_at]
    return Step(layer, *fill_in, install, reasons=_REASONS, keep=(program, header))


def compile_policy(
    architecture: Architecture, allowed: Names = ALLOWED, checked: Rules = CHECKED, hostile: Names = HOSTILE
) -> tuple[bytes, list[int]]:
    """The policy as a program for one architecture, and where in it the worker's process id has to be put."""
    code, pid_at = Assembler(), list[int]()
    ranges = _ranges(architecture, allowed, checked, hostile)
    code.load(ARCH)
    code.if_equal(architecture.audit, otherwise=_place(KILL_PROCESS))
    code.load(NUMBER)
    _decide(code, ranges)
    for _, outcome in ranges:
        if not isinstance(outcome, int):
            _allow_if(code, outcome, pid_at)
    for action in (ALLOW, REFUSE, UNKNOWN, KILL_PROCESS):
        code.label(_place(action))
        code.give(action)
    return code.assemble(), pid_at


def put_pid(program: ctypes.Array[ctypes.c_char], offset: int) -> None:
    """Let a rule of the program, which is at that offset, be about the calling process."""
    struct.pack_into("=I", program, offset, os.getpid())


def _ranges(
    architecture: Architecture, allowed: Names, checked: Rules, hostile: Names
) -> list[tuple[int, int | Rules]]:
    """From which number on what is done: an action, or rules that look at the arguments."""
    number = numbers(architecture)
    outcomes: dict[int, int | Rules] = {number[name]: ALLOW for name in allowed if name in number}
    outcomes |= {number[name]: KILL_PROCESS for name in hostile if name in number}
    outcomes |= {number[name]: tuple(rules) for name, rules in groupby(checked, key=lambda rule: rule.name)}
    ranges: list[tuple[int, int | Rules]] = []
    for value in range(NEWEST_KNOWN + 1):
        outcome = outcomes.get(value, REFUSE)
        if not ranges or ranges[-1][1] != outcome:
            ranges.append((value, outcome))
    ranges.append((NEWEST_KNOWN + 1, UNKNOWN))
    if architecture.foreign_from is not None:
        ranges.append((architecture.foreign_from, KILL_PROCESS))
    return ranges


def _decide(code: Assembler, ranges: list[tuple[int, int | Rules]]) -> None:
    """A binary search for the range that the number is in.

    When a filter is installed the kernel tries it on every number, and a chain of comparisons would cost a worker
    several times as much.
    """
    if len(ranges) == 1:
        return
    middle = len(ranges) // 2
    lower, upper = ranges[:middle], ranges[middle:]
    code.if_at_least(upper[0][0], then=_entry(upper), otherwise=_entry(lower))
    for half in (lower, upper):
        if len(half) > 1:
            code.label(_entry(half))
            _decide(code, half)


def _entry(ranges: list[tuple[int, int | Rules]]) -> str:
    """Where the search for one of these goes on, or ends."""
    return _place(ranges[0][1]) if len(ranges) == 1 else f"from {ranges[0][0]} on {len(ranges)}"


def _place(outcome: int | Rules) -> str:
    return f"give {outcome:#x}" if isinstance(outcome, int) else f"check {outcome[0].name}"


def _allow_if(code: Assembler, rules: Rules, pid_at: list[int]) -> None:
    code.label(_place(rules))
    for way, rule in enumerate(rules, 1):
        fails = f"{rule.name} {way} fails" if way < len(rules) else _place(REFUSE)
        for index, check in enumerate(rule.checks):
            last = index == len(rule.checks) - 1
            holds = _place(ALLOW) if last else f"{rule.name} {way} {index} holds"
            _require(code, check, holds, fails, pid_at)
            if not last:
                code.label(holds)
        if way < len(rules):
            code.label(fails)


def _require(code: Assembler, check: ArgumentCheck, holds: str, fails: str, pid_at: list[int]) -> None:
    if check.whole:
        code.load(high_word(check.argument))
        code.if_equal(0, otherwise=fails)
    code.load(low_word(check.argument))
    if check.mask != ALL_BITS:
        code.keep_bits(check.mask)
    for index, value in enumerate(check.values, 1):
        if value == PID:
            pid_at.append(code.position * INSTRUCTION.size + 4)
        code.if_equal(max(value, 0), then=holds, otherwise=fails if index == len(check.values) else None)


# A small assembler for the kernel's classic packet filter, whose programs seccomp runs

INSTRUCTION = struct.Struct("=HBBI")  # code, jump if true, jump if false, operand

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K
JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K

# Where things are in struct seccomp_data.
NUMBER = 0
ARCH = 4


def low_word(argument: int) -> int:
    """Where the lower half of an argument is, on a little-endian machine."""
    return 16 + 8 * argument


def high_word(argument: int) -> int:
    return low_word(argument) + 4


class Assembler:
    """Instructions in order; a jump names a label that is placed further down, or None for the next instruction."""

    def __init__(self) -> None:
        self._code: list[tuple[int, str | None, str | None, int]] = []
        self._labels: dict[str, int] = {}

    @property
    def position(self) -> int:
        """The number of the next instruction."""
        return len(self._code)

    def load(self, offset: int) -> None:
        self._code.append((LOAD, None, None, offset))

    def keep_bits(self, mask: int) -> None:
        self._code.append((AND, None, None, mask))

    def give(self, action: int) -> None:
        self._code.append((RETURN, None, None, action))

    def if_equal(self, value: int, then: str | None = None, otherwise: str | None = None) -> None:
        self._code.append((JUMP_IF_EQUAL, then, otherwise, value))

    def if_at_least(self, value: int, then: str | None = None, otherwise: str | None = None) -> None:
        self._code.append((JUMP_IF_AT_LEAST, then, otherwise, value))

    def label(self, name: str) -> None:
        if name in self._labels:
            raise ValueError(f"label {name!r} is placed twice")
        self._labels[name] = self.position

    def assemble(self) -> bytes:
        return b"".join(
            INSTRUCTION.pack(code, self._distance(then, here), self._distance(otherwise, here), operand)
            for here, (code, then, otherwise, operand) in enumerate(self._code)
        )

    def _distance(self, label: str | None, here: int) -> int:
        if label is None:
            return 0
        distance = self._labels[label] - here - 1
        if not 0 <= distance <= 255:
            raise ValueError(f"label {label!r} is {distance} instructions away; a jump reaches 0 to 255")
        return distance
