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

    __slots__ = ("_capget", "_capset", "_mallopt", "_prctl", "_syscall", "_unshare")

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._prctl = library.prctl
        self._prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        self._syscall = library.syscall
        self._syscall.argtypes = [ctypes.c_long] * 5
        self._syscall.restype = ctypes.c_long
        self._capget, self._capset = library.capget, library.capset
        self._unshare = library.unshare
        self._mallopt = getattr(library, "mallopt", None)  # musl has none

    def syscall(self, number: int, *arguments: int) -> int:
        """A raw system call of up to four whole-number arguments (addresses for pointers); failure raises OSError."""
        return _checked("syscall", self.ready(number, *arguments)())

    def ready(self, number: int, *arguments: int) -> Callable[[], int]:
        """A system call that waits to be made, by C code alone; it returns -1 when it fails."""
        return partial(self._syscall, number, *arguments, *(0,) * (4 - len(arguments)))

    def prctl(self, option: int, argument: int = 0) -> int:
        return _checked("prctl", self._prctl(option, argument, 0, 0, 0))

    def ready_prctl(self, option: int, argument: int) -> Callable[[], int]:
        return partial(self._prctl, option, argument, 0, 0, 0)

    def is_syscall(self, function: object) -> bool:
        """Whether what `ready` returns calls this."""
        return function is self._syscall

    def is_prctl(self, function: object) -> bool:
        """The same for `ready_prctl`."""
        return function is self._prctl

    def unshare(self, flags: int) -> None:
        _checked("unshare", self._unshare(flags))

    def capget(self, header: Words, data: Words) -> None:
        _checked("capget", self._capget(header, data))

    def capset(self, header: Words, data: Words) -> None:
        _checked("capset", self._capset(header, data))

    def mallopt(self, parameter: int, value: int) -> bool:
        """Whether the C library took a malloc setting."""
        return self._mallopt is not None and self._mallopt(parameter, value) == 1


def load_libc() -> Libc | None:
    """The C library's calls on Linux, None elsewhere."""
    return Libc() if sys.platform == "linux" else None


def _checked(call: str, result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result
