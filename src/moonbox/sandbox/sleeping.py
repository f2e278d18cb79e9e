"""Sleep: idle Repls give their workers up until their next run."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from moonbox.errors import MoonboxError
from moonbox.sandbox.figures import living

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.sandbox.repl import Repl
    from moonbox.worker.pool import Pool

_LONGEST_PAUSE = 5.0


def put_to_sleep(repls: Iterable[Repl], pool: Pool, idle_seconds: float) -> None:
    """Start a thread that does it for Repls which have been idle for so long, until their pool is closed."""
    threading.Thread(target=_watch, args=(repls, pool, idle_seconds), name="moonbox-sleep", daemon=True).start()


def _watch(repls: Iterable[Repl], pool: Pool, idle_seconds: float) -> None:
    while not pool.closed:
        time.sleep(min(idle_seconds / 4, _LONGEST_PAUSE))
        for repl in living(repls):
            with suppress(MoonboxError):  # closed, or its journal is away: the next look tries again
                repl.sleep(idle_seconds)
