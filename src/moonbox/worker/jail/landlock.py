"""Landlock: no path, no port and no process outside is within reach, whatever system call is tried."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from moonbox.worker.jail.layers import Layer, Step, Unavailable

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.libc import Libc

# The same numbers on every architecture.
SYS_CREATE_RULESET = 444
SYS_ADD_RULE = 445
SYS_RESTRICT_SELF = 446
CREATE_RULESET_VERSION = 1
PATH_BENEATH = 1
_RULE = struct.Struct("=Qi")

# (the ABI that brought them, how many rights there are from then on, counted from bit 0)
FILE_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16), (9, 17))
NETWORK_RIGHTS = ((4, 2), (10, 4))  # TCP bind and connect; UDP bind, and connect or send
SCOPES = ((6, 2),)  # abstract Unix sockets and signals
SIGNALS = 1 << 1

_ABOVE = 10  # the lowest numbers are those of a worker's sockets, which take their place before it is used

_REASONS = {
    errno.ENOSYS: "the kernel is older than Linux 5.13 or built without Landlock, or a container's policy hides it",
    errno.EOPNOTSUPP: "the kernel has Landlock, but it is not enabled at boot (lsm=)",
    errno.EPERM: "refused by the container's system call policy",
    errno.E2BIG: "this process is inside 16 Landlock domains already, which is the most there can be",
}


class Ruleset:
    """A descriptor of the zygote's, which each worker uses once before closing it, and the kernel's version."""

    __slots__ = ("abi", "fd")

    def __init__(self, fd: int, abi: int) -> None:
        self.fd = fd
        self.abi = abi


def make_ruleset(libc: Libc, *, signals: bool = False) -> Ruleset:
    """A ruleset that handles every right that the kernel knows and allows none, but for `signals`."""
    try:
        abi = libc.syscall(SYS_CREATE_RULESET, 0, 0, CREATE_RULESET_VERSION)
        rights = handled_rights(abi, signals=signals)
        attributes = ctypes.create_string_buffer(rights, len(rights))
        fd = libc.syscall(SYS_CREATE_RULESET, ctypes.addressof(attributes), len(rights), 0)
        above = os.dup2(fd, _free_number(), inheritable=False)
        os.close(fd)
        return Ruleset(above, abi)
    except OSError as error:
        raise Unavailable(_REASONS.get(error.errno or 0, str(error))) from None


def allow(libc: Libc, ruleset: Ruleset, fd: int, rights: int) -> None:
    """Allow these rights to an open file, or to all in an open folder."""
    rule = ctypes.create_string_buffer(_RULE.pack(rights, fd), _RULE.size)
    libc.syscall(SYS_ADD_RULE, ruleset.fd, PATH_BENEATH, ctypes.addressof(rule))


def _free_number() -> int:
    number = _ABOVE
    while is_open(number):
        number += 1
    return number


def is_open(fd: int) -> bool:
    """Whether the descriptor is in use."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def restrict(libc: Libc, ruleset: Ruleset) -> Step:
    """Enter a domain of the worker's own; threads started later inherit it. Needs no_new_privileges."""
    names = [(1, "files"), (4, "TCP"), (10, "UDP"), (6, "abstract sockets"), (6, "signals to others")]
    refused = ", ".join(name for since, name in names if since <= ruleset.abi)
    layer = Layer("landlock", True, f"ABI {ruleset.abi}: no {refused}")
    return Step(layer, libc.ready(SYS_RESTRICT_SELF, ruleset.fd, 0), reasons=_REASONS)


def handled_rights(abi: int, *, signals: bool = False) -> bytes:
    """`struct landlock_ruleset_attr` with everything that the ABI can handle, but for `signals`."""
    scopes = _mask(SCOPES, abi) & ~(SIGNALS if signals else 0)
    masks = [_mask(FILE_RIGHTS, abi), _mask(NETWORK_RIGHTS, abi), scopes]
    while not masks[-1]:
        masks.pop()  # an older kernel knows a shorter struct
    return struct.pack(f"={len(masks)}Q", *masks)


def _mask(table: tuple[tuple[int, int], ...], abi: int) -> int:
    return max(((1 << count) - 1 for since, count in table if since <= abi), default=0)
