"""The process that writes a run, so that a reader of the trail can tell whether it still lives."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, ValidationError, convert

if TYPE_CHECKING:
    from moonbox.audit.records import RunState


class Writer(Struct, frozen=True):
    """A process, distinguished from others with the same id. What the system does not report is empty."""

    pid: int
    began: str = ""
    """When the process began, in the kernel's count."""
    space: str = ""
    """The namespace in which its id is valid: containers have their own."""
    boot: str = ""
    """Identifies the time since the machine started."""
    machine: str = ""
    """The machine's name."""

    @classmethod
    def current(cls) -> Writer:
        """This process."""
        return _current(os.getpid())

    def state(self) -> RunState:
        """The state of a run that this process has started and not ended."""
        here = Writer.current()
        if (self.machine, self.boot, self.space) == (here.machine, here.boot, here.space):
            lives = _lives(self)
            return "unfinished" if lives is None else "running" if lives else "interrupted"
        restarted = self.machine == here.machine and self.boot and here.boot and self.boot != here.boot
        return "interrupted" if restarted else "unfinished"


def state_of_start(data: Any) -> RunState:
    """The state of a run of which only the start is on file, from that record."""
    try:
        return convert(data.get("writer") if isinstance(data, dict) else None, Writer).state()
    except ValidationError:  # of an earlier version, which does not name its writer
        return "unfinished"


@lru_cache(maxsize=1)
def _current(pid: int) -> Writer:
    space = ""
    if Path("/proc/self/ns/pid").exists():
        space = str(Path("/proc/self/ns/pid").readlink())
    return Writer(pid, _stat(pid)[1], space, _read("/proc/sys/kernel/random/boot_id"), platform.node())


def _lives(writer: Writer) -> bool | None:
    """Whether the process lives; None where the system does not tell."""
    if os.name != "posix":
        return None
    try:
        os.kill(writer.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it belongs to another user
    status, began = _stat(writer.pid)
    return status not in ("Z", "X") and (not began or not writer.began or began == writer.began)


def _stat(pid: int) -> tuple[str, str]:
    """The status of a process and when it began; empty where the system does not tell."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
