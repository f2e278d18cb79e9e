"""The system call policy: what CPython, the C library and Lua need to compute and to talk over two sockets.

Found by tracing a worker (Lua, JSON, memory, threads, tracebacks, abort, exit) and reading what glibc and musl call.
Whatever is not named here fails: with EPERM, or with ENOSYS when it is newer than the tables, so that a C library
that tries a new call first falls back to an old one.
"""

from __future__ import annotations

__all__ = ["ALLOWED", "CHECKED", "HOSTILE", "PID", "Check", "Checked"]

PID = -1
"""In a check's values: the worker's own process id, filled in when the filter is installed."""

ALL_BITS = 0xFFFF_FFFF


class Check:
    """An argument's lower 32 bits, masked, must be one of the values; `whole` asks for zeros above them too."""

    __slots__ = ("argument", "mask", "values", "whole")

    def __init__(self, argument: int, *values: int, mask: int = ALL_BITS, whole: bool = False) -> None:
        self.argument = argument
        self.values = values
        self.mask = mask
        self.whole = whole


class Checked:
    """A system call that is allowed when every check holds. Named twice, either way will do."""

    __slots__ = ("checks", "name")

    def __init__(self, name: str, *checks: Check) -> None:
        self.name = name
        self.checks = checks


PROT_EXEC = 0x4
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_LOCKED, MAP_HUGETLB = 0x01, 0x02, 0x20, 0x2000, 0x4_0000
MADV_DONTNEED, MADV_FREE = 4, 8
FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_WAIT_BITSET, FUTEX_FLAGS = 0, 1, 3, 9, 0x180
MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL = 0x2, 0x40, 0x100, 0x4000
RLIMIT_CPU = 0
FIONBIO = 0x5421
NO_EXEC = Check(2, 0, mask=PROT_EXEC)
OWN_CLOCK = Check(0, 0, mask=ALL_BITS & ~0xF)  # larger numbers name other processes' clocks and devices


def _only(flags: int) -> int:
    """The mask that leaves every bit but these flags."""
    return ALL_BITS & ~flags


CHECKED = (
    # No out-of-band data: its handling of Unix sockets has been a way into the kernel. No address either, so that
    # a socket that takes one cannot be used to reach others.
    Checked("recvfrom", Check(3, 0, mask=_only(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL))),
    Checked("sendto", Check(3, 0, mask=_only(MSG_DONTWAIT | MSG_NOSIGNAL)), Check(4, 0, whole=True)),
    # Plain waiting and waking: priority inheritance is left out, requeueing is what musl's conditions use.
    Checked("futex", Check(1, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAIT, FUTEX_REQUEUE, mask=_only(FUTEX_FLAGS))),
    Checked("clock_gettime", OWN_CLOCK),
    Checked("clock_getres", OWN_CLOCK),
    Checked("clock_nanosleep", OWN_CLOCK),
    # Memory of its own, of the ordinary kind, that never becomes code.
    Checked(
        "mmap",
        NO_EXEC,
        Check(
            3,
            MAP_PRIVATE | MAP_ANONYMOUS,
            mask=MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_HUGETLB,
        ),
    ),
    Checked("mprotect", NO_EXEC),
    Checked("madvise", Check(2, MADV_DONTNEED, MADV_FREE)),
    # A socket's blocking mode, nothing else.
    Checked("ioctl", Check(1, FIONBIO)),
    # Signals to itself: that is how abort() ends a process.
    Checked("tgkill", Check(0, PID)),
    # Reading its own limits, and renewing the CPU limit below the hard one.
    Checked("prlimit64", Check(0, 0), Check(2, 0, whole=True)),
    Checked("prlimit64", Check(0, 0), Check(1, RLIMIT_CPU)),
)

# `sendmsg` and `recvmsg` are missing on purpose: they can carry descriptors.
ALLOWED = (
    "read", "write", "writev", "poll", "ppoll", "close", "shutdown",
    "brk", "munmap", "mremap",
    "gettimeofday", "time", "times", "getrusage", "getrlimit", "nanosleep", "sched_yield",
    "getpid", "gettid", "getppid", "getrandom",
    "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
)  # fmt: skip

# Nothing that computes calls these by accident: the worker is ended at once, with SIGSYS.
HOSTILE = (
    "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "bpf", "perf_event_open", "userfaultfd",
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "init_module", "finit_module", "delete_module", "create_module", "kexec_load", "kexec_file_load", "reboot",
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "swapon", "swapoff", "unshare", "setns", "keyctl", "add_key", "request_key",
    "name_to_handle_at", "open_by_handle_at", "iopl", "ioperm", "modify_ldt", "settimeofday", "clock_settime",
    "adjtimex", "clock_adjtime", "acct", "quotactl", "syslog", "sethostname", "setdomainname",
    "lookup_dcookie", "vhangup", "nfsservctl",
)  # fmt: skip
