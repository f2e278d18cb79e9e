"""Shortages: what the operating system has run out of, in plain words, and how to get more of it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def shortage(problem: BaseException) -> str:
    """What there is too little of, or "" where that is not what went wrong."""
    if isinstance(problem, MemoryError):
        return _MEMORY
    if isinstance(problem, RuntimeError) and "can't start new thread" in str(problem):
        return f"no more threads can be started; {_PROCESSES}"
    number = problem.errno if isinstance(problem, OSError) else None
    if number == errno.EMFILE:
        return (
            f"this process has used up its descriptors: the limit is {_limit('RLIMIT_NOFILE')}; "
            "raise it (ulimit -n, LimitNOFILE= of systemd, --ulimit nofile= of a container), or close Repls"
        )
    if number == errno.EAGAIN:
        return f"no more processes can be started; {_PROCESSES}"
    if number == errno.EFBIG:
        return (
            f"the file is as large as the limit of file sizes allows ({_limit('RLIMIT_FSIZE')} bytes); "
            "raise it (ulimit -f, LimitFSIZE= of systemd)"
        )
    return _MESSAGES.get(number or 0, "")


def descriptors_shortage() -> str:
    """What is said where this process has no descriptor left, else "": for libraries that do not tell."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as problem:
        return shortage(problem)
    return ""


def disk_shortage(*files: Path) -> str:
    """What keeps the largest of these files of one folder from growing, else "": for libraries that do not tell."""
    import tempfile

    size = 0
    for file in files:
        with suppress(OSError):
            size = max(size, file.stat().st_size)
    try:
        with tempfile.TemporaryFile(dir=files[0].parent, buffering=0) as probe:
            probe.truncate(size + _GROWTH)
            probe.write(bytes(_GROWTH))
            os.fsync(probe.fileno())
    except OSError as problem:
        return shortage(problem)
    return ""


def _limit(name: str) -> str:
    try:
        import resource
    except ImportError:  # not on Windows
        return "unknown"
    soft = resource.getrlimit(getattr(resource, name))[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


_GROWTH = 1 << 16
_PROCESSES = (
    "raise the limit of processes (ulimit -u, TasksMax= of systemd, --pids-limit of a container), or lower max_workers"
)
_MEMORY = "there is no memory left; give the machine or its container more, or lower max_workers or max_memory"
_MESSAGES = {
    errno.ENFILE: "the machine has used up its descriptors; raise the system's limit (fs.file-max on Linux)",
    errno.ETOOMANYREFS: "too many descriptors are on their way to other processes; raise the limit (ulimit -n)",
    errno.ENOMEM: _MEMORY,
    errno.ENOBUFS: _MEMORY,
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space, or raise the quota",
}
