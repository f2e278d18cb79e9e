"""The jail of one worker, planned: what the zygote gives up for all of them, and what each keeps and may spend."""

from __future__ import annotations

import os
import sys
from functools import partial

from moonbox.worker.jail import landlock, namespaces, process, rlimits, seccomp
from moonbox.worker.jail.layers import Layer, Plan, Unavailable, attempt, plan
from moonbox.worker.jail.libc import Libc, load_libc
from moonbox.worker.jail.policy import ALLOWED, BESIDE_A_PROGRAM, CHECKED, end_of

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.worker.jail.grants import JailGrants

M_ARENA_MAX = -8
MIB = 1024 * 1024


class PreparedJail:
    """The layers in force in the zygote, and the steps that are the same for all of its workers."""

    __slots__ = ("beside", "landlock", "layers", "libc", "seccomp")

    def __init__(self, libc: Libc | None, layers: tuple[Layer, ...]) -> None:
        self.libc = libc
        self.layers = layers
        if libc is not None:
            # Each further arena reserves 64 MiB of address space, which counts against a worker's memory limit,
            # and a worker's two threads hardly ever allocate together.
            libc.mallopt(M_ARENA_MAX, 1)
        self.landlock = plan(
            "landlock", lambda: landlock.restrict(on_linux(libc), landlock.make_ruleset(on_linux(libc)))
        )
        self.beside = self.landlock  # of workers beside which a program runs: see companion.py
        self.seccomp = plan("seccomp", lambda: seccomp.filter_calls(on_linux(libc)))

    def parent_pid(self) -> int:
        """This process as those forked from it see it: one outside of their namespace has no number."""
        own = any(layer.name == "pid-namespace" and layer.active for layer in self.layers)
        return 0 if own else os.getpid()

    def linux(self) -> Libc:
        """The C library's calls, which there are on Linux only."""
        return on_linux(self.libc)


def prepare(*, for_forks: bool = False) -> PreparedJail:
    """Lock the calling process in as far as a zygote can be, and work out the rest for its workers.

    Call it once, in the zygote, when everything is imported: it changes the process for good. With `for_forks` it
    leaves the machine's namespaces, and root, too.
    """
    libc = load_libc()
    steps = OF_THE_ZYGOTE if for_forks else INHERITED
    return PreparedJail(libc, tuple(attempt(name, partial(apply, libc)) for name, apply in steps))


def on_linux(libc: Libc | None) -> Libc:
    if libc is None:
        raise Unavailable(f"only Linux has it; this is {sys.platform}")
    return libc


# What reads or writes /proc comes before the process hides from it.
INHERITED: tuple[tuple[str, Callable[[Libc | None], str]], ...] = (
    ("session", lambda libc: process.leave_session()),
    ("oom-score", lambda libc: process.volunteer_for_oom()),
    ("leftovers", lambda libc: rlimits.no_leftovers()),
    ("capabilities", lambda libc: process.drop_capabilities(on_linux(libc))),
    ("no-new-privileges", lambda libc: process.no_new_privileges(on_linux(libc))),
    ("no-debugger", lambda libc: process.refuse_debuggers(on_linux(libc))),
    ("no-new-code", lambda libc: process.no_new_code(on_linux(libc))),
)


BEFORE_NAMESPACES = 3
NAMESPACES: tuple[tuple[str, Callable[[Libc | None], str]], ...] = (
    ("user-namespace", lambda libc: namespaces.leave_users(on_linux(libc))),
    ("network-namespace", lambda libc: namespaces.leave_network(on_linux(libc))),
    ("pid-namespace", lambda libc: namespaces.leave_processes(on_linux(libc))),
    ("separate-user", lambda libc: namespaces.leave_user(on_linux(libc))),
)
OF_THE_ZYGOTE = (*INHERITED[:BEFORE_NAMESPACES], *NAMESPACES, *INHERITED[BEFORE_NAMESPACES:])
"""The layers of a zygote, in the order in which they can be put in force: leaving the namespaces needs privileges."""


_OF_EACH_WORKER = (
    *("landlock", "descriptors", "parent-death", "memory-limit", "cpu-limit", "file-limits"),
    *("process-limit", "seccomp"),
)
LAYERS = (*(name for name, _ in OF_THE_ZYGOTE), *_OF_EACH_WORKER)
"""The names of all layers, in the order in which they are put in force."""
WHOLE_JAIL = tuple(name for name in LAYERS if name not in ("cpu-limit", *dict(NAMESPACES)))
"""Those that `moonbox serve --require-jail` asks for. Not `cpu-limit`, for which the host's clock stands, and not the
namespaces, which many machines and containers do not allow."""


class JailConfig:
    """One worker's jail, planned. Make it in the zygote just before the fork: planning costs a fresh process more.

    - `keep_fds`: the worker's sockets, 3 or more; every other descriptor is closed.
    - `parent_pid`: the zygote, with which the worker dies.
    - `memory`: bytes that the script may hold; `memory_slack`: bytes of address space on top, for the control thread's
      stack, for frames and for values on their way in and out.
    - `cpu_seconds`: CPU time for the worker's whole life; None leaves time to the host's clock.
    - `beside`: the process of a program that it speaks with, and may end; `used`: its address space, where /proc is
      out of reach by now.
    - `grants`: what a chore may reach besides.
    """

    __slots__ = ("after", "before", "parent_pid")

    def __init__(
        self,
        *,
        prepared: PreparedJail,
        keep_fds: tuple[int, ...],
        parent_pid: int,
        memory: int,
        memory_slack: int = 64 * MIB,
        cpu_seconds: int | None = None,
        beside: int | None = None,
        used: int | None = None,
        grants: JailGrants | None = None,
    ) -> None:
        _check(keep_fds, memory, memory_slack, cpu_seconds)
        self.parent_pid = parent_pid
        files, calls, linux = prepared.landlock, prepared.seccomp, prepared.linux
        if beside is not None:
            rules = (*CHECKED, end_of(beside))
            files = prepared.beside
            calls = plan("seccomp", lambda: seccomp.filter_calls(linux(), (*ALLOWED, *BESIDE_A_PROGRAM), rules))
        elif grants is not None:
            files = plan("landlock", lambda: landlock.restrict(linux(), grants.ruleset(linux())))
            calls = plan("seccomp", lambda: grants.filter(linux()))
        # Landlock comes first because it uses a descriptor that is closed next.
        self.before = Plan(
            (
                *prepared.layers,
                files,
                process.close_descriptors(prepared.libc, keep_fds),
                plan("parent-death", lambda: process.die_with_parent(linux())),
                plan("memory-limit", lambda: rlimits.limit_memory(memory + memory_slack, used)),
                plan("cpu-limit", lambda: rlimits.limit_cpu(cpu_seconds)),
                rlimits.limit_files(len(keep_fds), grants),
            )
        )
        # Threads count as processes for the limit, and the filter refuses new ones: the control thread runs by now.
        self.after = Plan((rlimits.limit_processes(), calls))


def _check(keep_fds: tuple[int, ...], memory: int, memory_slack: int, cpu_seconds: int | None) -> None:
    wrong = None
    if not keep_fds:
        wrong = "keep_fds must name the worker's sockets, not be empty"
    elif min(keep_fds) < 3:
        wrong = f"keep_fds must be 3 or more, not {min(keep_fds)}: what the C library prints would reach the host"
    elif memory < 1 or memory_slack < 0:
        wrong = "memory must be at least 1 byte and memory_slack at least 0"
    elif cpu_seconds is not None and cpu_seconds < 1:
        wrong = f"cpu_seconds must be None or at least 1, not {cpu_seconds}"
    if wrong:
        from moonbox.errors import UsageError  # the zygote does without it otherwise

        raise UsageError(wrong)
