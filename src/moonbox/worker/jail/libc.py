"""The few C library calls that Python does not offer, through ctypes."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import partial

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Words: TypeAlias = ctypes.Array[ctypes.c_uint32]


class Libc:
    """`prctl`, `capget`, `capset`, `mallopt`, `unshare` and raw system calls of this process."""

    __slots__ = ("_library", "raw_prctl", "raw_syscall")

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(None, use_errno=True)
        self.raw_prctl = library.prctl
        """The function that what `ready_prctl` returns calls."""
        self.raw_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        self.raw_syscall = library.syscall
        """The same for `ready`."""
        self.raw_syscall.argtypes = [ctypes.c_long] * 5
        self.raw_syscall.restype = ctypes.c_long

    def syscall(self, number: int, *arguments: int) -> int:
        """A raw system call of up to four whole-number arguments (addresses for pointers); failure raises OSError."""
        return _checked("syscall", self.ready(number, *arguments)())

    def ready(self, number: int, *arguments: int) -> Callable[[], int]:
        """A system call that waits to be made, by C code alone; it returns -1 when it fails."""
        return partial(self.raw_syscall, number, *arguments, *(0,) * (4 - len(arguments)))

    def prctl(self, option: int, argument: int = 0) -> int:
        return _checked("prctl", self.raw_prctl(option, argument, 0, 0, 0))

    def ready_prctl(self, option: int, argument: int) -> Callable[[], int]:
        return partial(self.raw_prctl, option, argument, 0, 0, 0)

    def call(self, name: str, *arguments: int | Words) -> None:
        """A function that returns -1 where it fails, which raises OSError."""
        _checked(name, self._library[name](*arguments))

    def mallopt(self, parameter: int, value: int) -> bool:
        """Whether the C library took a malloc setting."""
        mallopt = getattr(self._library, "mallopt", None)  # musl has none
        return mallopt is not None and mallopt(parameter, value) == 1


def load_libc() -> Libc | None:
    """The C library's calls on Linux, None elsewhere."""
    return Libc() if sys.platform == "linux" else None


def _checked(call: str, result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result
