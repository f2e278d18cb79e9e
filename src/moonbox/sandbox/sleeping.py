"""Sleep: idle Repls give their workers up until their next run."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from moonbox.errors import MoonboxError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox

_LONGEST_PAUSE = 5.0


def put_to_sleep(box: Sandbox, repls: Iterable[Repl], idle_seconds: float) -> None:
    """Start a thread that does it for the Repls of a Sandbox which have been idle for so long."""
    if isinstance(idle_seconds, bool) or not isinstance(idle_seconds, int | float) or idle_seconds <= 0:
        raise UsageError(f"sleep_after must be a number of seconds above 0, not {idle_seconds!r}")
    ended = threading.Event()
    weakref.finalize(box, ended.set)
    job = (weakref.ref(box), repls, idle_seconds, ended)
    threading.Thread(target=_watch, args=job, name="moonbox-sleep", daemon=True).start()


def _watch(box: weakref.ref[Sandbox], repls: Iterable[Repl], idle_seconds: float, ended: threading.Event) -> None:
    while not ended.wait(min(idle_seconds / 4, _LONGEST_PAUSE)):
        living = box()
        if living is None or living.closed:
            return
        del living
        with suppress(RuntimeError):  # a Repl was made meanwhile: the next look finds it
            for repl in list(repls):
                with suppress(MoonboxError):  # closed, or its journal is away: the next look tries again
                    repl.sleep(idle_seconds)
