"""A dead worker's wait status, in words."""

from __future__ import annotations

import os

__all__ = ["describe_exit"]


def describe_exit(status: int) -> str:
    """What a status of `os.waitpid` says about how a worker ended."""
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return "ended by itself" if code == 0 else f"ended with exit status {code}"
    if not os.WIFSIGNALED(status):
        return f"did not end (wait status {status})"
    import signal  # here because a worker, which imports this too, does without

    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    words = _WORDS.get(name)
    return f"{words} ({name})" if words else f"killed by {name}"


_WORDS = {
    "SIGSYS": "killed by the system call filter",
    "SIGKILL": "killed, by the host or because the machine ran out of memory",
    "SIGXCPU": "killed by its CPU time limit",
    "SIGXFSZ": "killed by its file size limit",
    "SIGSEGV": "crashed: it touched memory that is not its own",
    "SIGBUS": "crashed: it touched memory that is not there",
    "SIGILL": "crashed: it ran an instruction that does not exist",
    "SIGFPE": "crashed: an impossible calculation",
    "SIGABRT": "crashed: it found its own memory damaged, or gave up",
    "SIGTRAP": "crashed: it ran into a trap instruction",
}
