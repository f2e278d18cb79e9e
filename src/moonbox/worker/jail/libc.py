"""The few C library calls that Python does not offer, through ctypes."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["Libc", "Unavailable", "load_libc"]


class Unavailable(OSError):
    """This platform or kernel lacks a layer; the message says why."""


class Libc:
    """`prctl`, `capget`, `capset` and raw system calls of the running process; failures raise OSError."""

    __slots__ = ("_capget", "_capset", "_mallopt", "_prctl", "_syscall")

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._prctl = library.prctl
        self._prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        self._syscall = library.syscall
        self._syscall.argtypes = [ctypes.c_long] * 5
        self._syscall.restype = ctypes.c_long
        self._capget, self._capset = library.capget, library.capset
        self._mallopt = getattr(library, "mallopt", None)  # musl has none

    def prctl(self, option: int, argument: int = 0) -> int:
        return self._checked("prctl", self._prctl(option, argument, 0, 0, 0))

    def syscall(self, number: int, *arguments: int) -> int:
        """A raw system call of up to four whole-number arguments; pass addresses for pointers."""
        padded = arguments + (0,) * (4 - len(arguments))
        return self._checked("syscall", self._syscall(number, *padded))

    def capget(self, header: ctypes.Array[ctypes.c_uint32], data: ctypes.Array[ctypes.c_uint32]) -> None:
        self._checked("capget", self._capget(header, data))

    def capset(self, header: ctypes.Array[ctypes.c_uint32], data: ctypes.Array[ctypes.c_uint32]) -> None:
        self._checked("capset", self._capset(header, data))

    def mallopt(self, parameter: int, value: int) -> bool:
        """Whether the C library took a malloc setting."""
        return self._mallopt is not None and self._mallopt(parameter, value) == 1

    def _checked(self, call: str, result: int) -> int:
        if result == -1:
            number = ctypes.get_errno()
            raise OSError(number, f"{call}: {os.strerror(number)}")
        return result


def load_libc() -> Libc | None:
    """The C library's calls on Linux, None elsewhere."""
    return Libc() if sys.platform == "linux" else None
