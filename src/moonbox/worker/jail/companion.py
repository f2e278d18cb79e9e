"""The jail of a program that an engine starts in a process beside the worker.

A program has to be loaded before it can be locked in, so its jail is put in force in two parts. Before the start, the
worker enters a Landlock domain in which only that program and the C library can be read or executed, and a system call
filter that knows no sockets; the process inherits both. When it runs, its resource limits are set from outside: no
further descriptor, no further thread or process, no more memory. The worker then goes on to its own, narrower jail.
"""

from __future__ import annotations

import fcntl
import os

from moonbox.worker.jail import landlock, seccomp
from moonbox.worker.jail.layers import Layer, Plan, Step, enforce, plan
from moonbox.worker.jail.policy import ALLOWED, CHECKED, COMPANION, HOSTILE

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.config import PreparedJail
    from moonbox.worker.jail.libc import Libc

EXECUTE_AND_READ = 1 << 0 | 1 << 2
_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu")
_LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1")
_LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1", "ld-musl-aarch64.so.1")
_MIB = 1024 * 1024
_BASE = 320 * _MIB  # address space of a program that does nothing yet, and room for its threads
_MEMORIES = 4  # a value on its way out exists more than once
_ABOVE, _MOST_DESCRIPTORS = 100, 1024


class Companion:
    """A program that workers of one zygote start. Make it before the zygote gives up its user."""

    SLACK = 64 * 1024 * 1024
    """Bytes of address space for the threads that speak with it."""

    def __init__(self, program: str) -> None:
        self._fd = _opened(program, os.O_RDONLY)
        self._null = _opened("/dev/null", os.O_RDWR)
        self.path = f"/proc/self/fd/{self._fd}" if os.path.isdir("/proc/self/fd") else program  # noqa: PTH112 - as process.py
        files = [f"{folder}/{name}" for folder in _FOLDERS for name in (*_LIBRARIES, *_LOADERS)]
        self._files = [self._fd, *(_opened(file, os.O_RDONLY) for file in files if os.path.exists(file))]  # noqa: PTH110
        self._plan: Plan | None = None

    def prepare(self, prepared: PreparedJail) -> None:
        """Plan what every worker does before the start; in the zygote."""
        libc = prepared.linux
        prepared.beside = plan(
            "landlock", lambda: landlock.restrict(libc(), landlock.make_ruleset(libc(), signals=True))
        )
        self._plan = Plan(
            (
                plan("landlock", lambda: self._landlock(libc())),
                plan("seccomp", lambda: _filter(libc())),
            )
        )

    def enter(self) -> tuple[Layer, ...]:
        """In the worker, before it starts the program: standard streams that lead nowhere, and the outer jail."""
        for number in (0, 1, 2):
            os.dup2(self._null, number)
        for number in filter(landlock.is_open, range(3, _MOST_DESCRIPTORS)):
            os.set_inheritable(number, False)
        assert self._plan is not None
        return enforce(self._plan)

    def confine(self, pid: int, memory: int) -> tuple[Layer, ...]:
        """In the worker, when the program runs: no further descriptor, thread or process, and so much memory."""
        try:
            import resource

            for which, most in (
                (resource.RLIMIT_NOFILE, 0),
                (resource.RLIMIT_NPROC, 0),
                (resource.RLIMIT_FSIZE, 0),
                (resource.RLIMIT_AS, _BASE + memory * _MEMORIES),
            ):
                resource.prlimit(pid, which, (most, most))
        except (ImportError, AttributeError, OSError) as problem:
            return tuple(Layer(name, False, str(problem)) for name in ("memory-limit", "file-limits"))
        return ()

    def kept(self) -> tuple[int, ...]:
        """The descriptors that the worker needs after the start: all that are open, but those of the files."""
        ours = {*self._files, self._null}
        return tuple(fd for fd in range(3, _ABOVE) if fd not in ours and landlock.is_open(fd))

    def _landlock(self, libc: Libc) -> Step:
        ruleset = landlock.make_ruleset(libc)
        for fd in self._files:
            landlock.allow(libc, ruleset, fd, EXECUTE_AND_READ)
        return landlock.restrict(libc, ruleset)


def _opened(file: str, mode: int) -> int:
    """A descriptor above the numbers of a worker's sockets."""
    fd = os.open(file, mode)
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(fd)


def _filter(libc: Libc) -> Step:
    allowed = (*ALLOWED, *COMPANION)
    checked = tuple(rule for rule in CHECKED if rule.name not in allowed)
    hostile = tuple(name for name in HOSTILE if name not in (*allowed, "pidfd_open"))  # tried first, and not needed
    return seccomp.filter_calls(libc, allowed, checked, hostile)


def combined(layers: tuple[Layer, ...], of_program: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The layers of a worker; one that its program lacks counts as missing."""
    missing = {layer.name: layer.detail for layer in of_program if not layer.active}
    return tuple(
        Layer(layer.name, False, f"the engine's process: {missing[layer.name]}") if layer.name in missing else layer
        for layer in layers
    )
