"""Plans of the jail for the native part, which makes their calls right after the fork, without a step in Python."""

from __future__ import annotations

import ctypes
import struct
from functools import partial

from moonbox.worker.jail.seccomp import put_pid

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.layers import Call, Plan
    from moonbox.worker.jail.libc import Libc

_CALL = struct.Struct("=5q")
_PUT_PID, _PRCTL, _SET_LIMIT = -1, -2, -3
_MOST_CALLS = 64


def native_form(planned: Plan, libc: Libc | None) -> bytes | None:
    """Its calls in their order, as `_native.c` reads them; None where one of them needs Python.

    The memory that they point to is the plan's.
    """
    if libc is None:
        return None
    forms = [_form(call, libc) for call in planned.calls]
    if len(forms) > _MOST_CALLS or not all(forms):
        return None
    return b"".join(forms)


def _form(call: Call, libc: Libc) -> bytes:
    """One call; empty where it needs Python."""
    import resource  # absent where there is no fork

    if not isinstance(call, partial):
        return b""
    function, given = call.func, call.args
    if function is libc.raw_syscall:
        return _CALL.pack(*given)
    if function is libc.raw_prctl:
        return _CALL.pack(_PRCTL, given[0], given[1], 0, 0)
    if function is resource.setrlimit:
        which, (soft, hard) = given
        return _CALL.pack(_SET_LIMIT, which, soft, hard, 0)
    if function is put_pid:
        program, offset = given
        return _CALL.pack(_PUT_PID, ctypes.addressof(program) + offset, 0, 0, 0)
    return b""
