"""The jail's vocabulary: a layer's outcome, what a jail is made from, and why a layer is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moonbox.errors import UsageError
from moonbox.worker.jail.prepared import Prepared, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JailConfig", "Layer", "Step", "run_step"]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Layer:
    """One protection: whether it is in force in this process, and how, or why it is not."""

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JailConfig:
    """What one worker keeps and may spend. Made in the worker, or in the zygote just before it forks."""

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
    prepared: Prepared = field(default_factory=prepare, repr=False)
    """What the zygote worked out before the fork, so that a worker pays only for installing it."""

    def __post_init__(self) -> None:
        low = [fd for fd in self.keep_fds if fd < 3]
        if low:
            raise UsageError(
                f"keep_fds must be 3 or more, not {low[0]}: "
                "what the C library prints when it aborts would reach the host as a frame"
            )
        if not self.keep_fds:
            raise UsageError("keep_fds must name the worker's sockets, not be empty")
        if self.memory < 1 or self.memory_slack < 0:
            raise UsageError("memory must be at least 1 byte and memory_slack at least 0")
        if self.cpu_seconds is not None and self.cpu_seconds < 1:
            raise UsageError(f"cpu_seconds must be None or at least 1, not {self.cpu_seconds}")


@dataclass(frozen=True, slots=True)
class Step:
    """One layer's name and what puts it in force: it returns the detail, or raises `Unavailable` or OSError."""

    name: str
    apply: Callable[[JailConfig], str]


def run_step(step: Step, config: JailConfig) -> Layer:
    """Put one layer in force and tell how that went."""
    try:
        return Layer(step.name, True, step.apply(config))
    except OSError as error:
        return Layer(step.name, False, error.strerror or str(error))
