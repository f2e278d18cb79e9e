"""What a worker cuts itself off from as a process: descriptors, terminal, parent, debuggers, new code."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from moonbox.worker.jail.libc import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.worker.jail.libc import Libc

__all__ = [
    "close_descriptors",
    "die_with_parent",
    "leave_session",
    "no_new_code",
    "no_new_privileges",
    "refuse_debuggers",
    "volunteer_for_oom",
]

SYS_CLOSE_RANGE = 436  # the same number on every architecture
LAST_FD = 2**31 - 1
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_MDWE = 65
PR_MDWE_REFUSE_EXEC_GAIN = 1


def close_descriptors(libc: Libc | None, keep: tuple[int, ...]) -> str:
    """Close every descriptor but `keep`."""
    kept = sorted(set(keep))
    gaps = [(low + 1, high - 1) for low, high in pairwise([-1, *kept, LAST_FD + 1]) if low + 1 < high]
    try:
        if libc is None:
            raise Unavailable("close_range is a call of Linux")
        for first, last in gaps:
            libc.syscall(SYS_CLOSE_RANGE, first, last)
    except OSError:
        _close_one_by_one(kept)
    return f"only {' and '.join(map(str, kept))} stay open"


def leave_session() -> str:
    """Leave the terminal's session: its Ctrl-C and hang-ups are the host's business."""
    os.setsid()
    return "a session of its own, without a terminal"


def volunteer_for_oom() -> str:
    """When the machine runs out of memory, the kernel ends this process rather than the host."""
    if sys.platform != "linux":
        raise Unavailable(f"only Linux has it; this is {sys.platform}")
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)
    return "first to go when the machine's memory runs out"


def no_new_privileges(libc: Libc) -> str:
    """No later program or file can raise what this process may do."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1)
    return "set"


def die_with_parent(libc: Libc, parent: int) -> str:
    """Be killed when the zygote dies. Credentials must not change later: that would clear it."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The zygote died before the line above, so nothing will ever end this process, and nobody hears of it.
        os._exit(1)
    return "killed when the zygote dies"


def refuse_debuggers(libc: Libc) -> str:
    """No process without CAP_SYS_PTRACE attaches to this one or reads its memory, and no core is dumped."""
    libc.prctl(PR_SET_DUMPABLE, 0)
    return "set: no ptrace, no core dump"


def no_new_code(libc: Libc) -> str:
    """Memory that was writable never becomes executable."""
    try:
        libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN)
    except OSError as error:
        raise Unavailable(f"the kernel is older than Linux 6.3 ({error.strerror})") from None
    return "set: no memory becomes executable"


def _close_one_by_one(keep: Iterable[int]) -> None:
    for fd in _open_descriptors():
        if fd not in keep:
            with suppress(OSError):  # the listing's own descriptor is closed already
                os.close(fd)


def _open_descriptors() -> list[int]:
    for listing in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(listing)]  # noqa: PTH208 - pathlib would cost its import
        except OSError:
            continue
    return list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
