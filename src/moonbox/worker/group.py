"""A control group (cgroup v2) for the workers of one Sandbox: the kernel bounds what they use together.

    <base>/                         the group that was delegated to this process
        moonbox-host/               this process: a group that bounds others has no processes of its own
        moonbox-sandbox-k2f9x0ab/   a zygote with its workers

Everything here is done by the host. The zygote joins by itself (`jail/namespaces.py`), before it gives anything up; its
workers are born in the group. No worker gets a descriptor of the hierarchy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from moonbox.wording import noun

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["BOUNDED", "SWAP", "SWITCH", "Group", "NoGroup", "SandboxGroup"]

SWITCH = "MOONBOX_CGROUP"
"""The environment variable that turns groups off where it is 0."""
SWAP = "memory.swap.max"
HOST = "moonbox-host"
PREFIX = "moonbox-sandbox-"
BOUNDED = "workers share a group that bounds their memory and their processes together"

_PROC = Path("/proc/self")
_MAKING = 3
_REMOVAL_SECONDS = 2.0
_MIB = 1 << 20
_FEWEST = 8  # workers that there is always room for
_TASKS = 2  # of one worker at most: its main thread, and one that listens to control where it has no native part
_WORKER_MEMORY = 128 * _MIB  # beside its scripts': frames, values on their way, the kernel's own for it
_ZYGOTE_MEMORY = 256 * _MIB
_ZYGOTE_TASKS = 16  # itself, the first process of the namespace, and those that are ending
_OWN_GROUP = "start the host in a group of its own, for example with `systemd-run --user --scope -p Delegate=yes`"


class NoGroup(OSError):
    """This process cannot make one; the message says why."""


class Group:
    """A group that this process made. It holds a lock on the folder, which tells it from one that was left behind."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    @classmethod
    def create(cls, bounds: Mapping[str, int], proc: Path = _PROC) -> Group:
        """A new group with these bounds, by their files; `NoGroup` where it cannot be. Removes those left behind."""
        if sys.platform != "linux":
            raise NoGroup(f"only Linux has it; this is {sys.platform}")
        if os.environ.get(SWITCH) == "0":
            raise NoGroup(f"{SWITCH}=0 turns it off")
        controllers = list(dict.fromkeys(name.partition(".")[0] for name in bounds))
        base = _divided(_own_group(proc), controllers, proc)
        remove_leftovers(base)
        group = cls._made_in(base)
        try:
            group.bound(bounds)
        except OSError as problem:
            group.remove()
            raise NoGroup(f"a group in {base} cannot be bounded: {problem.strerror}") from None
        return group

    @classmethod
    def _made_in(cls, base: Path) -> Group:
        for _ in range(_MAKING):
            folder = base / f"{PREFIX}{os.urandom(6).hex()}"
            try:
                folder.mkdir(0o700)
            except OSError as problem:
                raise NoGroup(f"a group cannot be made in {base}: {problem.strerror}") from None
            lock = _locked(folder)
            if lock is not None and folder.is_dir():  # nobody has taken it for one left behind before it was locked
                return cls(folder, lock)
            if lock is not None:
                os.close(lock)
        raise NoGroup(f"a group cannot be made in {base}: another process removes it")

    def bound(self, bounds: Mapping[str, int]) -> None:
        for name, value in bounds.items():
            try:
                _write(self.folder / name, str(value))
            except FileNotFoundError:
                if name != SWAP:  # a kernel without swap does not have it
                    raise

    def remove(self) -> None:
        """End whatever is left in it, and the group."""
        try:
            _empty(self.folder)
        finally:
            os.close(self._lock)


class SandboxGroup:
    """The group of one Sandbox's workers, with room for as many as there are, and for twice as many at most.

    Each worker has its own limits (`memory-limit`, `process-limit`). The group's are the sum of them, so that it never
    ends a worker that keeps its own. `memory` is what the scripts of one worker may hold, in bytes.
    """

    def __init__(self, memory: int, proc: Path = _PROC) -> None:
        self._room, self._memory = _FEWEST, memory
        self._group = Group.create(_sum_of(_FEWEST, memory), proc)
        self.folder = self._group.folder

    def make_room(self, memory: int, tasks: int = _TASKS) -> None:
        """Before a worker is forked: let it in. Follows the number of workers upwards, and downwards in large steps.

        `tasks` is how many threads a worker has.
        """
        workers = int(_read(self.folder / "pids.current")) // tasks + 1
        room = max(_FEWEST, 1 << workers.bit_length())
        if memory != self._memory or room > self._room or room * 4 <= self._room:
            self._group.bound(_sum_of(room, memory))
            self._room, self._memory = room, memory

    def remove(self) -> None:
        self._group.remove()


def _sum_of(workers: int, memory: int) -> dict[str, int]:
    total = _ZYGOTE_MEMORY + workers * (2 * memory + _WORKER_MEMORY)
    return {"memory.max": total, SWAP: total, "pids.max": _ZYGOTE_TASKS + workers * _TASKS}


def remove_leftovers(base: Path) -> None:
    """Remove the groups of hosts that were killed, and what still runs in them: nobody holds their lock."""
    for folder in base.glob(PREFIX + "*"):
        lock = _locked(folder)
        if lock is not None:
            try:
                _empty(folder)
            finally:
                os.close(lock)


# Where groups can be made


def _own_group(proc: Path) -> Path:
    """The folder of the group that this process is in."""
    try:
        groups = (proc / "cgroup").read_text()
        mounts = (proc / "mountinfo").read_text()
    except OSError as problem:
        raise NoGroup(f"/proc does not tell the groups of this process: {problem.strerror}") from None
    own = next((PurePosixPath(line[3:]) for line in groups.splitlines() if line.startswith("0::/")), None)
    if own is not None and ".." not in own.parts:
        for root, mount in _mounts(mounts):
            if own.is_relative_to(root):
                return mount / own.relative_to(root)
    raise NoGroup("no cgroup v2 hierarchy is mounted here that has this process in it")


def _mounts(mountinfo: str) -> Iterator[tuple[PurePosixPath, Path]]:
    """The group at the top of each mounted hierarchy, and where it is mounted."""
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            root, mount = fields.split()[3:5]
            yield PurePosixPath(root), Path(mount.replace("\\040", " ").replace("\\134", "\\"))


def _divided(own: Path, controllers: Collection[str], proc: Path) -> Path:
    """The group in which others with these controllers can be made: that of this process, or the one above."""
    base = own.parent if own.name == HOST or _mark(own.parent, "delegate") == b"1" else own
    if _mark(base, "invocation_id") and _mark(base, "delegate") != b"1":
        # The groups of a unit that is not delegated are systemd's: it may change them, or end the unit for one of them.
        raise NoGroup(f"systemd has not delegated the group of this process; {_OWN_GROUP}")
    if not all(os.access(base / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
        raise NoGroup("the group of this process is not delegated to it: it cannot be written")
    missing = [name for name in controllers if name not in _read(base / "cgroup.controllers").split()]
    if missing:
        names = " and ".join(f"'{name}'" for name in missing)
        raise NoGroup(f"the group of this process does not have the {noun(len(missing), 'controller')} {names}")
    enabled = _read(base / "cgroup.subtree_control").split()
    if not set(controllers) <= set(enabled):
        _enable(base, own, controllers, proc)
    if "cpu" not in enabled:
        with contextlib.suppress(OSError):  # as a whole, a group then gets no more of the processor than the host
            _write(base / "cgroup.subtree_control", "+cpu")
    return base


def _enable(base: Path, own: Path, controllers: Collection[str], proc: Path) -> None:
    wanted = " ".join(f"+{name}" for name in controllers)
    try:
        _write(base / "cgroup.subtree_control", wanted)
    except OSError as problem:
        if problem.errno != errno.EBUSY:
            raise NoGroup(f"the controllers of {base} cannot be used: {problem.strerror}") from None
    else:
        return
    if base != own:
        raise NoGroup(f"other processes are in the group above that of this process; {_OWN_GROUP}")
    _step_aside(own, wanted, proc)


def _step_aside(own: Path, wanted: str, proc: Path) -> None:
    """Move this process and those that it has started out of a group that is to bound others. All, or none."""
    members = _read(own / "cgroup.procs").split()
    if not all(_is_ours(int(pid), proc) for pid in members):
        raise NoGroup(f"other processes are in the group of this process; {_OWN_GROUP}")
    aside = own / HOST
    try:
        aside.mkdir(exist_ok=True)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                _write(aside / "cgroup.procs", pid)
        _write(own / "cgroup.subtree_control", wanted)
    except OSError as problem:
        for pid in members:
            with contextlib.suppress(OSError):
                _write(own / "cgroup.procs", pid)
        with contextlib.suppress(OSError):
            aside.rmdir()
        raise NoGroup(f"the controllers of {own} cannot be used: {problem.strerror}") from None


def _is_ours(pid: int, proc: Path) -> bool:
    """Whether it is this process or one that it has started; a process of another namespace has the number 0."""
    while pid > 0 and pid != os.getpid():
        try:
            pid = int((proc.parent / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return pid > 0


def _mark(folder: Path, name: str) -> bytes:
    """What systemd has noted about a group; empty where it has not."""
    for space in ("user", "trusted"):
        with contextlib.suppress(OSError):
            return os.getxattr(folder, f"{space}.{name}")  # type: ignore[attr-defined,unused-ignore]  # Linux has it
    return b""


# The files of a group


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock of a group; None where another process has it, or the group is gone."""
    import fcntl  # absent where there is no fork

    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _empty(folder: Path) -> None:
    """End the processes of a group and remove it. What cannot be removed now is left for the next host."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        return
    with contextlib.suppress(OSError):
        _write(folder / "cgroup.kill", "1")  # Linux 5.14 or newer; those before have the zygote's word only
        _wait_until_empty(folder / "cgroup.events")
        folder.rmdir()


def _wait_until_empty(events: Path) -> None:
    deadline = time.monotonic() + _REMOVAL_SECONDS
    with events.open("rb", buffering=0) as file:
        poll = select.poll()
        poll.register(file, select.POLLPRI)  # the kernel tells when the file has changed since it was read
        while b"populated 1" in os.pread(file.fileno(), 256, 0) and time.monotonic() < deadline:
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as problem:
        raise NoGroup(f"{path} cannot be read: {problem.strerror}") from None


def _write(path: Path, text: str) -> None:
    """Never makes a file: what the kernel does not have is an error."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
