"""Resource limits: memory, CPU time, files and processes of a worker."""

from __future__ import annotations

import os
import sys
from functools import partial

from moonbox.worker.jail.layers import Layer, Step, Unavailable

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.worker.jail.grants import JailGrants

MIB = 1024 * 1024
DESCRIPTORS = 64
"""The most descriptors of a chore that is granted files."""


# In the zygote: workers inherit this.


def no_leftovers() -> str:
    """No core dumps, no memory that cannot be swapped out, no message queues."""
    import resource

    for name in ("RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        if hasattr(resource, name):
            _lower(name, 0)()
    return "no core dumps, locked memory or message queues"


# In the worker.


def limit_memory(budget: int, used: int | None = None) -> Step:
    """Let the address space grow by at most `budget` bytes from what is used when this is planned."""
    if sys.platform != "linux":
        raise Unavailable(f"{sys.platform} does not hold a process to an address space limit")
    detail = f"at most {budget // MIB} MiB of address space more than the zygote has"
    return Step(
        Layer("memory-limit", True, detail),
        _lower("RLIMIT_AS", (memory_of("self")[0] if used is None else used) + budget),
    )


def limit_cpu(seconds: int | None) -> Step:
    """Let the worker spend `seconds` of CPU time in its whole life."""
    if seconds is None:
        raise Unavailable("not asked for: the host's clock ends a run")
    detail = f"{seconds} s of CPU time for the worker's whole life"
    # SIGXCPU first, which tells why the worker ended; SIGKILL a second later if it was blocked.
    return Step(Layer("cpu-limit", True, detail), _lower("RLIMIT_CPU", seconds, seconds + 1))


def limit_files(descriptors: int, grants: JailGrants | None = None) -> Step:
    """No new descriptors and no file contents, unless files are granted.

    The descriptor limit equals the number kept, not zero: `poll` refuses more entries than the limit.
    """
    layer = Layer("file-limits", True, "no new descriptors, nothing written to files")
    calls = [_lower("RLIMIT_NOFILE", descriptors), _lower("RLIMIT_FSIZE", 0)]
    if grants is not None and grants.has_files:
        layer = Layer("file-limits", True, f"at most {DESCRIPTORS} descriptors")
        calls = [_lower("RLIMIT_NOFILE", DESCRIPTORS), *([] if grants.write else calls[1:])]
    return Step(layer, *calls)


def limit_processes() -> Step:
    """No new processes or threads; to be put in force when the control thread runs."""
    layer = Layer("process-limit", True, "no new processes or threads")
    if os.getuid() == 0:
        exempt = "set, but root is exempt from it: only the system call filter refuses root new processes"
        layer = Layer("process-limit", False, exempt)
    return Step(layer, _lower("RLIMIT_NPROC", 0))


def _lower(name: str, soft: int, hard: int | None = None) -> Callable[[], None]:
    """A call that sets both limits of that name, as far as they may be set."""
    import resource  # absent where there is no fork, and where this module is imported all the same

    which = getattr(resource, name)
    most = resource.getrlimit(which)[1]
    hard = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    return partial(resource.setrlimit, which, (soft, hard))


def memory_of(process: int | str) -> tuple[int, int, int]:
    """Bytes of address space that a process uses, that it holds in memory, and that it shares of those."""
    try:
        fd = os.open(f"/proc/{process}/statm", os.O_RDONLY)
    except OSError as error:
        raise Unavailable(f"/proc does not tell how much is in use: {error.strerror}") from None
    try:
        size, resident, shared, *_ = [int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in os.read(fd, 128).split()]
        return size, resident, shared
    finally:
        os.close(fd)
