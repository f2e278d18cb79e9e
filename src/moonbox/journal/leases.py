"""Leases: which process may continue a Repl. A dead process loses its leases at once, where its death can be seen."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

LEASE_SECONDS = 20.0
"""A lease that its holder does not renew for so long is lost."""


@cache
def _machine() -> str:
    """This machine since its start, and this container: process ids mean the same for everybody who reads the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _born(pid: int) -> str:
    """When a process was started, in the kernel's own measure; empty where it is not known."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def this_process(journal: str) -> str:
    """The name under which this process holds leases through one open journal."""
    pid = os.getpid()
    return f"{_machine()} {pid} {_born(pid)} {journal}"


def is_held(holder: str, expires: float, now: float) -> bool:
    """Whether the lease still counts."""
    if not holder or expires <= now:
        return False
    machine, pid, born, *_ = [*holder.split(" "), "", "", ""]
    if machine != _machine() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives and belongs to somebody else
    return not born or _born(int(pid)) in ("", born)


def in_words(holder: str) -> str:
    """For messages."""
    machine, pid, *_ = [*holder.split(" "), "", ""]
    return f"process {pid}" + ("" if machine == _machine() else " on another machine")
