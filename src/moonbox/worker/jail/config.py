"""What one worker keeps and may spend, and the steps that follow from it."""

from __future__ import annotations

from moonbox.worker.jail import landlock, process, rlimits, seccomp
from moonbox.worker.jail.layers import Plan, plan

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.zygote import Prepared

__all__ = ["JailConfig"]

MIB = 1024 * 1024


class JailConfig:
    """One worker's jail, planned. Make it in the zygote just before the fork: planning costs a fresh process more.

    - `keep_fds`: the worker's sockets, 3 or more; every other descriptor is closed.
    - `parent_pid`: the zygote, with which the worker dies.
    - `memory`: bytes that the script may hold; `memory_slack`: bytes of address space on top, for the control thread's
      stack, for frames and for values on their way in and out.
    - `cpu_seconds`: CPU time for the worker's whole life; None leaves time to the host's clock. `renew_cpu` can set a
      nearer end for each run.
    """

    __slots__ = ("after", "before", "cpu_seconds", "keep_fds", "memory", "memory_slack", "parent_pid")

    def __init__(
        self,
        *,
        prepared: Prepared,
        keep_fds: tuple[int, ...],
        parent_pid: int,
        memory: int,
        memory_slack: int = 128 * MIB,
        cpu_seconds: int | None = None,
    ) -> None:
        _check(keep_fds, memory, memory_slack, cpu_seconds)
        self.keep_fds = keep_fds
        self.parent_pid = parent_pid
        self.memory = memory
        self.memory_slack = memory_slack
        self.cpu_seconds = cpu_seconds
        # Landlock comes first because it uses a descriptor that is closed next.
        self.before = Plan(
            (
                *prepared.layers,
                plan("landlock", lambda: landlock.restrict(prepared.linux(), prepared.made(prepared.ruleset))),
                process.close_descriptors(prepared.libc, keep_fds),
                plan("parent-death", lambda: process.die_with_parent(prepared.linux())),
                plan("memory-limit", lambda: rlimits.limit_memory(memory + memory_slack)),
                plan("cpu-limit", lambda: rlimits.limit_cpu(cpu_seconds)),
                rlimits.limit_files(len(keep_fds)),
            )
        )
        # Threads count as processes for the limit, and the filter refuses new ones: the control thread runs by now.
        self.after = Plan(
            (
                rlimits.limit_processes(),
                plan("seccomp", lambda: seccomp.filter_calls(prepared.linux(), prepared.made(prepared.filter))),
            )
        )


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
