"""The system call filter: the policy compiled for this machine, and its installation in every thread."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from moonbox.worker.jail import bpf
from moonbox.worker.jail.libc import Unavailable
from moonbox.worker.jail.policy import ALL_BITS, ALLOWED, CHECKED, HOSTILE, PID, Check, Checked
from moonbox.worker.jail.syscalls import ARCHITECTURES, NEWEST_KNOWN, Architecture, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.worker.jail.libc import Libc

__all__ = ["Filter", "build_filter", "compile_policy", "install"]

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
    errno.EACCES: "no_new_privileges is not in force",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled program, and where in it the worker's process id has to be put."""

    program: bytes
    pid_at: tuple[int, ...]
    syscall: int

    def for_pid(self, pid: int) -> bytearray:
        program = bytearray(self.program)
        for offset in self.pid_at:
            struct.pack_into("=I", program, offset, pid)
        return program


def build_filter() -> Filter:
    """The policy for the machine that this process runs on."""
    machine = os.uname().machine
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(machine, machine)
    if machine not in ARCHITECTURES:
        raise Unavailable(f"no system call table for {machine}; there is one for {', '.join(ARCHITECTURES)}")
    if sys.maxsize < 2**32 or sys.byteorder != "little":
        raise Unavailable("the system call tables are for 64-bit little-endian processes")
    return compile_policy(ARCHITECTURES[machine])


def install(libc: Libc, program: Filter) -> str:
    """Put every thread of this process under the filter, for good. Needs no_new_privileges."""
    code = program.for_pid(os.getpid())
    count = len(code) // bpf.INSTRUCTION.size
    buffer = (ctypes.c_char * len(code)).from_buffer(code)
    header = ctypes.create_string_buffer(struct.pack("@HP", count, ctypes.addressof(buffer)))
    try:
        stuck = libc.syscall(program.syscall, SET_MODE_FILTER, FLAG_TSYNC, ctypes.addressof(header))
    except OSError as error:
        raise Unavailable(_REASONS.get(error.errno or 0, str(error))) from None
    if stuck:
        raise Unavailable(f"thread {stuck} is under a filter of its own and could not be brought under this one")
    return f"{len(ALLOWED) + len(set(_names(CHECKED)))} system calls allowed, in every thread"


def compile_policy(architecture: Architecture) -> Filter:
    """The policy as a program for one architecture."""
    number = numbers(architecture)
    code = bpf.Assembler()
    pid_at: list[int] = []
    code.load(bpf.ARCH)
    code.if_equal(architecture.audit, then="native")
    code.give(KILL_PROCESS)
    code.label("native")
    code.load(bpf.NUMBER)
    if architecture.foreign_from is not None:
        code.if_at_least(architecture.foreign_from, otherwise="own convention")
        code.give(KILL_PROCESS)
        code.label("own convention")
    for name, ways in groupby(CHECKED, key=lambda rule: rule.name):
        code.if_equal(number[name], otherwise=f"after {name}")
        for index, way in enumerate(ways):
            _allow_if(code, way, f"{name} {index} fails", pid_at)
        code.give(REFUSE)
        code.label(f"after {name}")
    for names, action in ((ALLOWED, ALLOW), (HOSTILE, KILL_PROCESS)):
        for name in names:
            if name in number:
                code.if_equal(number[name], otherwise=f"after {name}")
                code.give(action)
                code.label(f"after {name}")
    code.if_at_least(NEWEST_KNOWN + 1, otherwise="refuse")
    code.give(UNKNOWN)
    code.label("refuse")
    code.give(REFUSE)
    return Filter(code.assemble(), tuple(pid_at), architecture.seccomp)


def _allow_if(code: bpf.Assembler, rule: Checked, fails: str, pid_at: list[int]) -> None:
    for index, check in enumerate(rule.checks):
        _require(code, check, f"{fails} not {index}", fails, pid_at)
    code.give(ALLOW)
    code.label(fails)


def _require(code: bpf.Assembler, check: Check, holds: str, fails: str, pid_at: list[int]) -> None:
    if check.whole:
        code.load(bpf.high_word(check.argument))
        code.if_equal(0, otherwise=fails)
    code.load(bpf.low_word(check.argument))
    if check.mask != ALL_BITS:
        code.keep_bits(check.mask)
    *others, last = check.values
    for value in others:
        code.if_equal(value, then=holds)
    if last == PID:
        pid_at.append(code.position * bpf.INSTRUCTION.size + 4)
        last = 0
    code.if_equal(last, otherwise=fails)
    code.label(holds)


def _names(rules: Iterable[Checked]) -> list[str]:
    return [rule.name for rule in rules]
