"""The system call policy: what CPython, the C library and Lua need to compute and to talk over two sockets; and the
numbers of system calls on the architectures that the filter knows, as the kernel's headers give them.

Found by tracing a worker (Lua, JSON, memory, threads, tracebacks, abort, exit) and reading what glibc and musl call.
Whatever is not named here fails: with EPERM, or with ENOSYS when it is newer than the tables, so that a C library
that tries a new call first falls back to an old one.
"""

from __future__ import annotations

PID = -1
"""In a check's values: the worker's own process id, filled in when the filter is installed."""

ALL_BITS = 0xFFFF_FFFF


class ArgumentCheck:
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

    def __init__(self, name: str, *checks: ArgumentCheck) -> None:
        self.name = name
        self.checks = checks


PROT_EXEC = 0x4
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_LOCKED, MAP_HUGETLB = 0x01, 0x02, 0x20, 0x2000, 0x4_0000
MADV_DONTNEED, MADV_FREE = 4, 8
FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_WAIT_BITSET, FUTEX_FLAGS = 0, 1, 3, 9, 0x180
MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL = 0x2, 0x40, 0x100, 0x4000
FIONBIO = 0x5421
SIGKILL = 9
NO_EXEC = ArgumentCheck(2, 0, mask=PROT_EXEC)
OWN_CLOCK = ArgumentCheck(0, 0, mask=ALL_BITS & ~0xF)  # larger numbers name other processes' clocks and devices


def _only(flags: int) -> int:
    """The mask that leaves every bit but these flags."""
    return ALL_BITS & ~flags


CHECKED = (
    # No out-of-band data: its handling of Unix sockets has been a way into the kernel. No address either, so that
    # a socket that takes one cannot be used to reach others.
    Checked("recvfrom", ArgumentCheck(3, 0, mask=_only(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL))),
    Checked("sendto", ArgumentCheck(3, 0, mask=_only(MSG_DONTWAIT | MSG_NOSIGNAL)), ArgumentCheck(4, 0, whole=True)),
    # Plain waiting and waking: priority inheritance is left out, requeueing is what musl's conditions use.
    Checked(
        "futex", ArgumentCheck(1, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAIT, FUTEX_REQUEUE, mask=_only(FUTEX_FLAGS))
    ),
    Checked("clock_gettime", OWN_CLOCK),
    Checked("clock_getres", OWN_CLOCK),
    Checked("clock_nanosleep", OWN_CLOCK),
    # Memory of its own, of the ordinary kind, that never becomes code.
    Checked(
        "mmap",
        NO_EXEC,
        ArgumentCheck(
            3,
            MAP_PRIVATE | MAP_ANONYMOUS,
            mask=MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_HUGETLB,
        ),
    ),
    Checked("mprotect", NO_EXEC),
    Checked("madvise", ArgumentCheck(2, MADV_DONTNEED, MADV_FREE)),
    # A socket's blocking mode, nothing else.
    Checked("ioctl", ArgumentCheck(1, FIONBIO)),
    # Signals to itself: that is how abort() ends a process.
    Checked("tgkill", ArgumentCheck(0, PID)),
    # Reading its own limits.
    Checked("prlimit64", ArgumentCheck(0, 0), ArgumentCheck(2, 0, whole=True)),
)

# With their numbers on x86_64 and aarch64. `sendmsg` and `recvmsg` are missing on purpose: they can carry descriptors.
_ALLOWED: dict[str, tuple[int, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "writev": (20, 66),
    "poll": (7, None),
    "ppoll": (271, 73),
    "close": (3, 57),
    "shutdown": (48, 210),
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "nanosleep": (35, 101),
    "sched_yield": (24, 124),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getrandom": (318, 278),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "restart_syscall": (219, 128),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
ALLOWED = tuple(_ALLOWED)


def end_of(pid: int) -> Checked:
    """The right to kill that process, and no other."""
    return Checked("kill", ArgumentCheck(0, pid), ArgumentCheck(1, SIGKILL))


# What a worker needs besides to speak with a program that its engine has started: see companion.py.
# A thread that speaks with it may still be starting: the C library ends the process where it cannot register one.
BESIDE_A_PROGRAM = (
    "epoll_wait", "epoll_pwait", "epoll_ctl", "sigaltstack", "sched_getaffinity", "wait4", "waitid",
    "rseq", "set_robust_list",
)  # fmt: skip

# What it needs to start the program, and the program to load the C library. The program keeps these rights; Landlock
# leaves it nothing else to execute or read, and its resource limits no descriptor, thread or process to make.
COMPANION = (
    *BESIDE_A_PROGRAM,
    "kill",
    "execve", "clone", "clone3", "vfork", "pipe2", "dup2", "dup3", "fcntl",
    "openat", "fstat", "newfstatat", "statx", "pread64", "lseek", "access", "faccessat", "readlink", "readlinkat",
    "arch_prctl", "prctl", "set_tid_address", "rt_sigaction",
    "epoll_create1", "eventfd2", "socketpair", "uname", "getcwd", "getuid", "geteuid", "getgid", "getegid",
    "mmap", "mprotect", "madvise", "prlimit64", "seccomp", "setrlimit", "close_range", "landlock_restrict_self",
)  # fmt: skip

# What a chore needs for the files that it is granted. Landlock decides which files these are.
FILES = (
    "open", "openat", "stat", "lstat", "fstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getcwd", "getuid", "geteuid", "getgid", "getegid", "getdents64",
    "pread64", "pwrite64", "readv", "lseek", "fsync", "fdatasync", "ftruncate", "fallocate", "fadvise64", "flock",
    "fcntl", "dup", "unlink", "unlinkat", "rename", "renameat", "renameat2", "fchmod", "fchown", "uname", "sysinfo",
    "getcpu", "sched_getaffinity",
)  # fmt: skip

# What it needs for a connection that was open before it entered its jail.
CONNECTED = (
    "getsockopt", "getsockname", "getpeername", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "fcntl", "getuid", "geteuid",
)  # fmt: skip

# Nothing that computes calls these by accident: the worker is ended at once, with SIGSYS. The numbers are as above.
_HOSTILE: dict[str, tuple[int, int | None]] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, None),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
}
HOSTILE = tuple(_HOSTILE)


# Numbers


class Architecture:
    """What the filter has to know of one processor family.

    - `audit`: AUDIT_ARCH_*, what the kernel calls it in seccomp data.
    - `column`: where its numbers are in the table.
    - `foreign_from`: numbers from here on belong to another calling convention (x32).
    """

    __slots__ = ("audit", "column", "foreign_from")

    def __init__(self, *, audit: int, column: int, foreign_from: int | None = None) -> None:
        self.audit = audit
        self.column = column
        self.foreign_from = foreign_from


ARCHITECTURES = {
    "x86_64": Architecture(audit=0xC000_003E, column=0, foreign_from=0x4000_0000),
    "aarch64": Architecture(audit=0xC000_00B7, column=1),
}

NEWEST_KNOWN = 450
"""Calls with larger numbers came after these tables were made (Linux 5.17); both families share those numbers."""


def numbers(architecture: Architecture) -> dict[str, int]:
    """The numbers of one architecture; calls that it lacks are left out."""
    column = architecture.column
    return {name: number for name, row in _TABLE.items() if (number := row[column]) is not None}


_TABLE: dict[str, tuple[int, int | None]] = {
    **_ALLOWED,
    **_HOSTILE,
    "recvfrom": (45, 207),
    "sendto": (44, 206),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    "clock_nanosleep": (230, 115),
    "clock_getres": (229, 114),
    "ioctl": (16, 29),
    "tgkill": (234, 131),
    "prlimit64": (302, 261),
    "kill": (62, 129), "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_ctl": (233, 21),
    "epoll_create1": (291, 20), "eventfd2": (290, 19), "sigaltstack": (131, 132),
    "sched_getaffinity": (204, 123), "clone": (56, 220), "clone3": (435, 435), "vfork": (58, None),
    "wait4": (61, 260), "waitid": (247, 95), "pipe2": (293, 59), "dup2": (33, None), "dup3": (292, 24),
    "fcntl": (72, 25), "openat": (257, 56), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "pread64": (17, 67), "lseek": (8, 62), "access": (21, None), "faccessat": (269, 48),
    "readlink": (89, None), "readlinkat": (267, 78), "arch_prctl": (158, None), "prctl": (157, 167),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293), "rt_sigaction": (13, 134),
    "socketpair": (53, 199), "uname": (63, 160), "getcwd": (79, 17), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "seccomp": (317, 277),
    "setrlimit": (160, 164), "close_range": (436, 436), "landlock_restrict_self": (446, 446),
    "open": (2, None), "stat": (4, None), "lstat": (6, None), "statfs": (137, 43), "fstatfs": (138, 44),
    "faccessat2": (439, 439), "getdents64": (217, 61), "pwrite64": (18, 68), "readv": (19, 65), "fsync": (74, 82),
    "fdatasync": (75, 83), "ftruncate": (77, 46), "fallocate": (285, 47), "fadvise64": (221, 223), "flock": (73, 32),
    "dup": (32, 23), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "fchmod": (91, 52), "fchown": (93, 55), "sysinfo": (99, 179), "getcpu": (309, 168),
    "getsockopt": (55, 209), "getsockname": (51, 204), "getpeername": (52, 205), "select": (23, None),
    "pselect6": (270, 72),
}  # fmt: skip
