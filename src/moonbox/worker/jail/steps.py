"""The jail's layers in the order in which they are put in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.worker.jail import capabilities, landlock, process, rlimits, seccomp
from moonbox.worker.jail.layers import JailConfig, Step
from moonbox.worker.jail.libc import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AFTER_THREADS", "BEFORE_THREADS", "layer_names"]


def _seccomp(config: JailConfig) -> str:
    if config.prepared.filter is None:
        raise Unavailable(config.prepared.no_filter)
    return seccomp.install(config.prepared.linux(), config.prepared.filter)


# What reads /proc comes before the process hides from it; credentials change before the parent-death signal is set,
# because changing them clears it; the descriptor limit comes after Landlock, which opens one for a moment.
BEFORE_THREADS = (
    Step("descriptors", lambda c: process.close_descriptors(c.prepared.libc, c.keep_fds)),
    Step("session", lambda c: process.leave_session()),
    Step("oom-score", lambda c: process.volunteer_for_oom()),
    Step("memory-limit", lambda c: rlimits.limit_memory(c.memory + c.memory_slack)),
    Step("cpu-limit", lambda c: rlimits.limit_cpu(c.cpu_seconds)),
    Step("capabilities", lambda c: capabilities.drop_capabilities(c.prepared.linux())),
    Step("no-new-privileges", lambda c: process.no_new_privileges(c.prepared.linux())),
    Step("parent-death", lambda c: process.die_with_parent(c.prepared.linux(), c.parent_pid)),
    Step("no-debugger", lambda c: process.refuse_debuggers(c.prepared.linux())),
    Step("no-new-code", lambda c: process.no_new_code(c.prepared.linux())),
    Step("landlock", lambda c: landlock.restrict(c.prepared.linux())),
    Step("file-limits", lambda c: rlimits.limit_files(len(c.keep_fds))),
)

# Threads count as processes for the limit, and the filter refuses new ones, so the control thread must run by now.
AFTER_THREADS = (
    Step("process-limit", lambda c: rlimits.limit_processes()),
    Step("seccomp", _seccomp),
)


def layer_names() -> Iterator[str]:
    """Every layer's name, in order."""
    for step in (*BEFORE_THREADS, *AFTER_THREADS):
        yield step.name
