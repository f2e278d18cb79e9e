"""The zygote's part of the jail: what it gives up for its workers, and what it works out for them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from moonbox.worker.jail import capabilities, landlock, process, rlimits, seccomp
from moonbox.worker.jail.layers import Layer, Unavailable, attempt
from moonbox.worker.jail.libc import Libc, load_libc

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INHERITED", "Prepared", "prepare"]

M_ARENA_MAX = -8
Made = TypeVar("Made")

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


@dataclass(frozen=True, slots=True)
class Prepared:
    """The layers in force in the zygote, and what its workers need for theirs; a text says why there is none."""

    layers: tuple[Layer, ...]
    libc: Libc | None
    ruleset: landlock.Ruleset | str
    filter: seccomp.Filter | str


def prepare() -> Prepared:
    """Lock the calling process in as far as a zygote can be, and work out the rest for its workers.

    Call it once, in the zygote, when everything is imported: it changes the process for good.
    """
    libc = load_libc()
    layers = tuple(attempt(name, partial(apply, libc)) for name, apply in INHERITED)
    return work_out(libc, layers)


def work_out(libc: Libc | None, layers: tuple[Layer, ...]) -> Prepared:
    """The ruleset and the filter, once the inherited layers are in force."""
    if libc is not None:
        # Each further arena reserves 64 MiB of address space, which counts against a worker's memory limit,
        # and a worker's two threads hardly ever allocate together.
        libc.mallopt(M_ARENA_MAX, 1)
    ruleset = _or_reason(lambda: landlock.make_ruleset(on_linux(libc)))
    compiled = _or_reason(lambda: _filter(libc))
    return Prepared(layers, libc, ruleset, compiled)


def on_linux(libc: Libc | None) -> Libc:
    if libc is None:
        raise Unavailable(f"only Linux has it; this is {sys.platform}")
    return libc


def _filter(libc: Libc | None) -> seccomp.Filter:
    on_linux(libc)
    return seccomp.build_filter()


def _or_reason(make: Callable[[], Made]) -> Made | str:
    try:
        return make()
    except OSError as error:
        return str(error)
