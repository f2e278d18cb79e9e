"""The worker's jail: what a process gives up, first as the zygote and then around the start of its control thread.

    prepared = prepare()                                  # in the zygote, once, when everything is imported
    config = JailConfig(prepared=prepared, keep_fds=(a, b), parent_pid=os.getpid(), memory=limits.max_memory)
    ...fork; in the worker:
    layers = before_threads(config)
    ...start the control thread...
    layers += after_threads(config)

Nothing can be imported, opened or started in the worker after that. Each layer that the platform lacks comes back as
inactive with the reason; whether a worker may run without it is the caller's decision.
"""

from __future__ import annotations

import os

from moonbox.worker.jail.companion import Companion, combined
from moonbox.worker.jail.config import LAYERS, WHOLE_JAIL, JailConfig, PreparedJail, prepare
from moonbox.worker.jail.grants import JailGrants
from moonbox.worker.jail.layers import Layer, enforce, outcomes
from moonbox.worker.jail.native import native_form
from moonbox.worker.jail.process import describe_exit
from moonbox.worker.jail.rlimits import memory_of

__all__ = [
    "LAYERS",
    "WHOLE_JAIL",
    "Companion",
    "JailConfig",
    "JailGrants",
    "Layer",
    "PreparedJail",
    "after_threads",
    "before_threads",
    "combined",
    "describe_exit",
    "memory_of",
    "native_form",
    "outcomes",
    "prepare",
    "report",
]


def before_threads(config: JailConfig) -> tuple[Layer, ...]:
    """Everything but the system call filter, while the worker has one thread; the zygote's layers come first."""
    layers = enforce(config.before)
    if os.getppid() != config.parent_pid:
        # The zygote died before PR_SET_PDEATHSIG was set: nothing would ever end this process.
        os._exit(1)
    return layers


def after_threads(config: JailConfig) -> tuple[Layer, ...]:
    """The process limit and the system call filter, for every thread that runs by now."""
    return enforce(config.after)


def report() -> tuple[Layer, ...]:
    """Try every layer in a short-lived process of its own, and tell which hold on this machine."""
    from moonbox.worker.jail.probe import probe  # needs subprocess and json, which a worker does not

    return probe()
