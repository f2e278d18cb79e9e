"""Resource limits: memory, CPU time, files and processes of a worker."""

from __future__ import annotations

import os
import resource
import sys

from moonbox.worker.jail.libc import Unavailable

__all__ = ["limit_cpu", "limit_files", "limit_memory", "limit_processes", "renew_cpu"]

MIB = 1024 * 1024
UNLIMITED = resource.RLIM_INFINITY


def limit_memory(budget: int) -> str:
    """Let the address space grow by at most `budget` bytes from here."""
    if sys.platform != "linux":
        raise Unavailable(f"{sys.platform} does not hold a process to an address space limit")
    used = _address_space()
    _lower(resource.RLIMIT_AS, used + budget)
    return f"{used // MIB} MiB of address space in use, at most {budget // MIB} MiB more"


def limit_cpu(seconds: int | None) -> str:
    """Let the worker spend `seconds` of CPU time in its whole life."""
    if seconds is None:
        raise Unavailable("not asked for: the host's clock ends a run")
    _lower(resource.RLIMIT_CPU, seconds)
    return f"{seconds} s for the worker's whole life"


def renew_cpu(seconds: int) -> None:
    """Let the process spend at most `seconds` more of CPU time: SIGXCPU ends it then. Works inside the jail.

    A backup for when the host cannot kill (stopped, or busy): a hijacked worker could renew it as well.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    end = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (end if hard == UNLIMITED else min(end, hard), hard))


def limit_files(descriptors: int) -> str:
    """No new descriptors, no file contents, no core, no locked memory, no message queues.

    The descriptor limit equals the number kept, not zero: `poll` refuses more entries than the limit.
    """
    _lower(resource.RLIMIT_NOFILE, descriptors)
    for name in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        if hasattr(resource, name):
            _lower(getattr(resource, name), 0)
    return "no new descriptors, files, core dumps or locked memory"


def limit_processes() -> str:
    """No new processes or threads; to be called when the control thread runs."""
    _lower(resource.RLIMIT_NPROC, 0)
    if os.getuid() == 0:
        raise Unavailable("set, but root is exempt from it: the system call filter refuses new processes instead")
    return "no new processes or threads"


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != UNLIMITED:
        value = min(value, hard)
    try:
        resource.setrlimit(which, (value, value))
    except ValueError as error:
        raise Unavailable(f"this kernel refuses the limit: {error}") from None


def _address_space() -> int:
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError as error:
        raise Unavailable(f"/proc does not tell how much is in use: {error.strerror}") from None
    try:
        return int(os.read(fd, 64).split()[0]) * resource.getpagesize()
    finally:
        os.close(fd)
