"""The audit database's schema, as the list of steps that led to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

__all__ = ["APPLICATION_ID", "MIGRATIONS"]

APPLICATION_ID = 0x6D6F6F6E  # "moon", in the file's header: tells a trail from a stranger's database


def create_runs_and_calls(db: sqlite3.Connection) -> None:
    """The whole record is JSON in `runs.record`; columns and calls hold what listings and statistics ask for."""
    # `record` comes last: SQLite reads a row from its start, so that a listing never touches the long part.
    db.execute(
        """
        CREATE TABLE runs (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            started REAL NOT NULL,
            language TEXT NOT NULL,
            repl TEXT NOT NULL,
            kind TEXT,
            calls INTEGER NOT NULL,
            failed_calls INTEGER NOT NULL,
            wall REAL NOT NULL,
            title TEXT NOT NULL,
            record TEXT NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE calls (
            run INTEGER NOT NULL,
            position INTEGER NOT NULL,
            tool TEXT NOT NULL,
            status TEXT NOT NULL,
            started REAL NOT NULL,
            queued REAL NOT NULL,
            duration REAL NOT NULL,
            bytes_in INTEGER NOT NULL,
            bytes_out INTEGER NOT NULL,
            PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX runs_by_time ON runs (started)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (create_runs_and_calls,)
"""Applied in order, each once and in a transaction of its own; `PRAGMA user_version` counts them. Only ever append."""
