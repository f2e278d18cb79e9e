"""The worker's jail: what a process gives up, in two steps around the start of its control thread.

    prepared = prepare()                                  # in the zygote, once
    ...fork...
    config = JailConfig(keep_fds=(a, b), parent_pid=zygote, memory=limits.max_memory, prepared=prepared)
    layers = before_threads(config)
    ...start the control thread...
    layers += after_threads(config)

Nothing is imported, opened or forked in the worker after that. Each layer that the platform lacks comes back as
inactive with the reason; whether a worker may run without it is the caller's decision.
"""

from __future__ import annotations

from moonbox.worker.jail.layers import JailConfig, Layer, run_step
from moonbox.worker.jail.prepared import Prepared, prepare
from moonbox.worker.jail.rlimits import renew_cpu
from moonbox.worker.jail.status import describe_exit
from moonbox.worker.jail.steps import AFTER_THREADS, BEFORE_THREADS

__all__ = [
    "JailConfig",
    "Layer",
    "Prepared",
    "after_threads",
    "before_threads",
    "describe_exit",
    "prepare",
    "renew_cpu",
    "report",
]


def before_threads(config: JailConfig) -> tuple[Layer, ...]:
    """Everything but the system call filter; to be called while the worker has one thread."""
    return tuple(run_step(step, config) for step in BEFORE_THREADS)


def after_threads(config: JailConfig) -> tuple[Layer, ...]:
    """The process limit and the system call filter, for every thread that runs by now."""
    return tuple(run_step(step, config) for step in AFTER_THREADS)


def report() -> tuple[Layer, ...]:
    """Try every layer in a short-lived process of its own, and tell which hold on this machine."""
    from moonbox.worker.jail.probe import probe  # needs subprocess and json, which a worker does not

    return probe()
