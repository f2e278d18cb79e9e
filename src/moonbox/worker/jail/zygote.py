"""The zygote's part of the jail: what it gives up for its workers, and what it works out for them."""

from __future__ import annotations

import sys
from functools import partial

from moonbox.worker.jail import capabilities, landlock, process, rlimits, seccomp
from moonbox.worker.jail.layers import Unavailable, attempt
from moonbox.worker.jail.libc import load_libc

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from moonbox.worker.jail.layers import Layer
    from moonbox.worker.jail.libc import Libc

    Made = TypeVar("Made")

__all__ = ["INHERITED", "Prepared", "prepare"]

M_ARENA_MAX = -8


class Prepared:
    """The layers in force in the zygote, and what its workers need for theirs; a text says why there is none."""

    __slots__ = ("filter", "layers", "libc", "ruleset")

    def __init__(self, libc: Libc | None, layers: tuple[Layer, ...]) -> None:
        self.libc = libc
        self.layers = layers
        if libc is not None:
            # Each further arena reserves 64 MiB of address space, which counts against a worker's memory limit,
            # and a worker's two threads hardly ever allocate together.
            libc.mallopt(M_ARENA_MAX, 1)
        self.ruleset = _or_reason(lambda: landlock.make_ruleset(on_linux(libc)))
        self.filter = _or_reason(lambda: seccomp.build_filter(on_linux(libc)))

    def linux(self) -> Libc:
        """The C library's calls, which there are on Linux only."""
        return on_linux(self.libc)

    @staticmethod
    def made(made: Made | str) -> Made:
        """The ruleset or the filter, if there is one."""
        if isinstance(made, str):
            raise Unavailable(made)
        return made


def prepare() -> Prepared:
    """Lock the calling process in as far as a zygote can be, and work out the rest for its workers.

    Call it once, in the zygote, when everything is imported: it changes the process for good.
    """
    libc = load_libc()
    return Prepared(libc, tuple(attempt(name, partial(apply, libc)) for name, apply in INHERITED))


def on_linux(libc: Libc | None) -> Libc:
    if libc is None:
        raise Unavailable(f"only Linux has it; this is {sys.platform}")
    return libc


def _or_reason(make: Callable[[], Made]) -> Made | str:
    try:
        return make()
    except OSError as error:
        return str(error)


# What reads or writes /proc comes before the process hides from it.
INHERITED: tuple[tuple[str, Callable[[Libc | None], str]], ...] = (
    ("session", lambda libc: process.leave_session()),
    ("oom-score", lambda libc: process.volunteer_for_oom()),
    ("leftovers", lambda libc: rlimits.no_leftovers()),
    ("capabilities", lambda libc: capabilities.drop_capabilities(on_linux(libc))),
    ("no-new-privileges", lambda libc: process.no_new_privileges(on_linux(libc))),
    ("no-debugger", lambda libc: process.refuse_debuggers(on_linux(libc))),
    ("no-new-code", lambda libc: process.no_new_code(on_linux(libc))),
)
