"""What one worker keeps and may spend, and the steps that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from moonbox.errors import UsageError
from moonbox.worker.jail import landlock, process, rlimits, seccomp
from moonbox.worker.jail.layers import Layer, Plan, Step, Unavailable, plan
from moonbox.worker.jail.zygote import Made, Prepared, on_linux

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JailConfig"]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class JailConfig:
    """One worker's jail, planned. Make it in the zygote just before the fork: planning costs a fresh process more."""

    prepared: Prepared = field(repr=False)
    keep_fds: tuple[int, ...]
    """The worker's sockets: everything else is closed."""
    parent_pid: int
    """The zygote's process id; the worker dies with it."""
    memory: int
    """Bytes that the script may hold."""
    memory_slack: int = 128 * MIB
    """Bytes of address space on top: the control thread's stack, frames, values on their way in and out."""
    cpu_seconds: int | None = None
    """CPU time for the worker's whole life; None leaves time to the host's clock. `renew_cpu` sets a nearer end."""
    before: Plan = field(init=False, repr=False)
    after: Plan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        libc, ruleset, compiled = self.prepared.libc, self.prepared.ruleset, self.prepared.filter
        budget = self.memory + self.memory_slack
        # Landlock uses a descriptor that is closed next.
        before = (
            *self.prepared.layers,
            _planned("landlock", lambda: landlock.restrict(on_linux(libc), _made(ruleset))),
            process.close_descriptors(libc, self.keep_fds),
            _planned("parent-death", lambda: process.die_with_parent(on_linux(libc))),
            _planned("memory-limit", partial(rlimits.limit_memory, budget)),
            _planned("cpu-limit", partial(rlimits.limit_cpu, self.cpu_seconds)),
            rlimits.limit_files(len(self.keep_fds)),
        )
        # Threads count as processes for the limit, and the filter refuses new ones: the control thread must run by now.
        after = (
            _planned("process-limit", rlimits.limit_processes),
            _planned("seccomp", lambda: seccomp.filter_calls(on_linux(libc), _made(compiled))),
        )
        object.__setattr__(self, "before", plan(before))
        object.__setattr__(self, "after", plan(after))

    def _check(self) -> None:
        if not self.keep_fds:
            raise UsageError("keep_fds must name the worker's sockets, not be empty")
        low = min(self.keep_fds)
        if low < 3:
            raise UsageError(
                f"keep_fds must be 3 or more, not {low}: "
                "what the C library prints when it aborts would reach the host as a frame"
            )
        if self.memory < 1 or self.memory_slack < 0:
            raise UsageError("memory must be at least 1 byte and memory_slack at least 0")
        if self.cpu_seconds is not None and self.cpu_seconds < 1:
            raise UsageError(f"cpu_seconds must be None or at least 1, not {self.cpu_seconds}")


def _planned(name: str, make: Callable[[], Step]) -> Step | Layer:
    try:
        return make()
    except Unavailable as reason:
        return Layer(name, False, str(reason))


def _made(made: Made | str) -> Made:
    if isinstance(made, str):
        raise Unavailable(made)
    return made
