"""What a worker gives up as a process: descriptors, terminal, parent, debuggers, new code, root's special powers; and
how a dead one ended, in words."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import partial
from itertools import pairwise

from moonbox.worker.jail.layers import Layer, Step, Unavailable

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.libc import Libc

SYS_CLOSE_RANGE = 436  # the same number on every architecture
LAST_FD = 2**31 - 1
PR_SET_PDEATHSIG = 1
SIGKILL = 9
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_MDWE = 65
PR_MDWE_REFUSE_EXEC_GAIN = 1


# In the zygote: workers inherit these.


def leave_session() -> str:
    """Leave the terminal's session: its Ctrl-C and hang-ups are the host's business."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    return "the zygote and its workers have a session of their own, without a terminal"


def volunteer_for_oom() -> str:
    """When the machine runs out of memory, the kernel ends a worker rather than the host."""
    if sys.platform != "linux":
        raise Unavailable(f"only Linux has it; this is {sys.platform}")
    write_file("/proc/self/oom_score_adj", "1000")
    return "workers are the first to go when the machine's memory runs out"


def write_file(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def no_new_privileges(libc: Libc) -> str:
    """No later program or file can raise what this process may do."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1)
    return "no program or file can raise what a worker may do"


def refuse_debuggers(libc: Libc) -> str:
    """No process without CAP_SYS_PTRACE attaches to this one or reads its memory, and no core is dumped."""
    libc.prctl(PR_SET_DUMPABLE, 0)
    return "no ptrace, no reading of memory from outside, no core dump"


def no_new_code(libc: Libc) -> str:
    """Memory that was writable never becomes executable."""
    try:
        libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN)
    except OSError as error:
        raise Unavailable(f"the kernel is older than Linux 6.3 ({error.strerror})") from None
    return "no writable memory becomes executable"


# In the worker.


def close_descriptors(libc: Libc | None, keep: tuple[int, ...]) -> Step:
    """Close every descriptor but `keep`."""
    kept = sorted(set(keep))
    layer = Layer("descriptors", True, "everything but the worker's sockets is closed")
    if libc is None or not _has_close_range(libc):
        return Step(layer, partial(_close_one_by_one, kept))
    gaps = [(low + 1, high - 1) for low, high in pairwise([-1, *kept, LAST_FD + 1]) if low + 1 < high]
    return Step(layer, *(libc.ready(SYS_CLOSE_RANGE, first, last, 0) for first, last in gaps))


def die_with_parent(libc: Libc) -> Step:
    """Be killed when the zygote dies. Credentials must not change later: that would clear it."""
    layer = Layer("parent-death", True, "killed when the zygote dies")
    return Step(layer, libc.ready_prctl(PR_SET_PDEATHSIG, SIGKILL))


def _has_close_range(libc: Libc) -> bool:
    try:
        libc.syscall(SYS_CLOSE_RANGE, LAST_FD, LAST_FD, 0)
    except OSError:
        return False
    return True


def _close_one_by_one(keep: list[int]) -> None:
    for fd in _open_descriptors():
        if fd not in keep:
            try:  # noqa: SIM105 - contextlib would cost its import
                os.close(fd)
            except OSError:
                pass  # the listing's own descriptor is closed already


def _open_descriptors() -> list[int]:
    for listing in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(listing)]  # noqa: PTH208 - pathlib would cost its import
        except OSError:
            continue
    import resource  # absent where there is no fork

    return list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


# Capabilities

PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
CAP_SETPCAP = 8
VERSION_3 = 0x20080522
MORE_THAN_THERE_ARE = 64

# Being user 0 no longer brings capabilities back, neither by exec nor by set-user-id calls, and none of it can be
# undone: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE with their locks, and KEEP_CAPS locked off.
SECUREBITS = 0xEF


def drop_capabilities(libc: Libc) -> str:
    """Give up every capability, and the means of getting one back, in the zygote; workers inherit that."""
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc.call("capget", header, sets)
    had = any(sets)
    if sets[1] >> CAP_SETPCAP & 1:
        libc.prctl(PR_SET_SECUREBITS, SECUREBITS)
        _empty_bounding_set(libc)
    libc.call("capset", header, (ctypes.c_uint32 * 6)())
    return "all dropped" if had else "none held"


def _empty_bounding_set(libc: Libc) -> None:
    for capability in range(MORE_THAN_THERE_ARE):
        try:
            libc.prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return  # past the last one that this kernel knows
            raise


# The end


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
