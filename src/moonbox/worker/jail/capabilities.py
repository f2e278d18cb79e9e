"""Root's special powers, dropped for good."""

from __future__ import annotations

import ctypes
import errno

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from moonbox.worker.jail.libc import Libc

__all__ = ["drop_capabilities"]

PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
CAP_SETPCAP = 8
VERSION_3 = 0x20080522
MORE_THAN_THERE_ARE = 64

# Being user 0 no longer brings capabilities back, neither by exec nor by set-user-id calls, and none of it can be
# undone: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE with their locks, and KEEP_CAPS locked off.
SECUREBITS = 0xEF


def drop_capabilities(libc: Libc) -> str:
    """Give up every capability, and the means of getting one back, in the zygote; workers inherit that.

    The user id stays: it decides only about files and signals, which Landlock and the filter refuse altogether, and a
    changed one would put the workers out of reach of a zygote without CAP_KILL and beside strangers' processes.
    """
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    had = any(sets)
    if sets[1] >> CAP_SETPCAP & 1:
        libc.prctl(PR_SET_SECUREBITS, SECUREBITS)
        _empty_bounding_set(libc)
    libc.capset(header, (ctypes.c_uint32 * 6)())
    return "all dropped" if had else "none held"


def _empty_bounding_set(libc: Libc) -> None:
    for capability in range(MORE_THAN_THERE_ARE):
        try:
            libc.prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return  # past the last one that this kernel knows
            raise
