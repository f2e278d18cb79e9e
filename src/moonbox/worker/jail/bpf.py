"""A small assembler for the kernel's classic packet filter, whose programs seccomp runs."""

from __future__ import annotations

import struct

__all__ = ["ARCH", "INSTRUCTION", "NUMBER", "Assembler", "high_word", "low_word"]

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
