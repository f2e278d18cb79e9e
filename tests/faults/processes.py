"""What the operating system knows of this process: its descriptors, and which processes live."""

from __future__ import annotations

import contextlib
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


def lives(pid: int) -> bool:
    """Whether there is such a process with a thread that has not ended: until then its sockets are open."""
    try:
        states = [task.read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # ended while we looked
        return lives(pid) if Path(f"/proc/{pid}").exists() else False
    return any(state not in ("Z", "X") for state in states)


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended since
            for child in map(int, children.read_text().split()):
                found |= {child} | descendants(child)
    return found


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def settled_descriptors() -> int:
    """How many there are once their number stays: what ran before may still open or close some in its threads."""
    counts = [descriptors()]
    while len(counts) < 1000 and counts[-20:] != [counts[-1]] * 20:
        time.sleep(0.005)
        counts.append(descriptors())
    return counts[-1]


def parent(pid: int) -> int:
    """Of a worker: its zygote."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def zygote_pid() -> int | None:
    """The youngest zygote among the children of this process, for tests that have one Sandbox."""
    zygotes = []
    for children in Path("/proc/self/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            try:
                if b"moonbox.worker.zygote" in Path(f"/proc/{child}/cmdline").read_bytes():
                    started = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19])
                    zygotes.append((started, child))
            except OSError:  # ended while we looked
                continue
    return max(zygotes)[1] if zygotes else None


@contextmanager
def nothing_leaks() -> Iterator[None]:
    """No descriptor and no process is left over."""
    before, children = settled_descriptors(), descendants(os.getpid())
    yield
    wait_until(lambda: descriptors() <= before, "descriptors leaked")
    wait_until(lambda: not {pid for pid in descendants(os.getpid()) - children if lives(pid)}, "processes leaked")
