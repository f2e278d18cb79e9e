"""One synchronisation of a source at a time, over threads and processes."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from moonbox.knowledge.errors import KnowledgeError, SyncBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["only_one"]

SLICE_SECONDS = 0.2


@contextmanager
def only_one(store: Path, source: int, wait: float, describe: Callable[[], str]) -> Iterator[None]:
    """Hold the source's lock; raises SyncBusy with what `describe` says when it is not free within `wait` seconds.

    The lock is SQLite's own, on an empty database beside the store: it works on every platform, between threads and
    processes alike, and it goes when its holder dies, however that happens.
    """
    path = store.with_name(f"{store.name}-sync-{source}")
    deadline = time.monotonic() + wait
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
        while True:
            # In slices, so that Ctrl-C gets through.
            left = deadline - time.monotonic()
            db.execute(f"PRAGMA busy_timeout={int(1000 * max(0.0, min(SLICE_SECONDS, left)))}")
            try:
                db.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise KnowledgeError(f"the lock {path} cannot be taken: {error}") from error
                if left <= 0:
                    raise SyncBusy(describe()) from None
        try:
            yield
        finally:
            db.execute("ROLLBACK")
