"""What the zygote works out once, so that each worker only installs it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from moonbox.worker.jail.libc import Libc, Unavailable, load_libc
from moonbox.worker.jail.seccomp import Filter, build_filter

__all__ = ["Prepared", "prepare"]

M_ARENA_MAX = -8


@dataclass(frozen=True, slots=True)
class Prepared:
    """The C library's calls and the compiled system call filter, or why there is none."""

    libc: Libc | None
    filter: Filter | None
    no_filter: str = ""

    def linux(self) -> Libc:
        """The C library's calls, on Linux."""
        if self.libc is None:
            raise Unavailable(f"only Linux has it; this is {sys.platform}")
        return self.libc


def prepare() -> Prepared:
    """Load the C library's calls and compile the filter; call it once, in the zygote.

    It also holds malloc to one arena: each further one reserves 64 MiB of address space, which counts
    against a worker's memory limit, and a worker's two threads hardly ever allocate together.
    """
    libc = load_libc()
    if libc is None:
        return Prepared(None, None, f"only Linux has it; this is {sys.platform}")
    libc.mallopt(M_ARENA_MAX, 1)
    try:
        return Prepared(libc, build_filter())
    except Unavailable as reason:
        return Prepared(libc, None, str(reason))
