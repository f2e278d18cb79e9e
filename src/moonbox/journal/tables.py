"""The tables of a journal, for SQLite and PostgreSQL. In SQLite they can be in the file of an audit trail."""

from __future__ import annotations

TABLES = (
    """
    CREATE TABLE repls (
        id TEXT PRIMARY KEY,
        created {real} NOT NULL,
        language TEXT NOT NULL,
        labels TEXT NOT NULL,
        parent TEXT NOT NULL,
        fence BIGINT NOT NULL,
        holder TEXT NOT NULL,
        expires {real} NOT NULL
    )
    """,
    """
    CREATE TABLE events (
        repl TEXT NOT NULL,
        seq BIGINT NOT NULL,
        run TEXT NOT NULL,
        mark TEXT NOT NULL,
        at {real} NOT NULL,
        checksum BIGINT NOT NULL,
        data {bytes} NOT NULL,
        PRIMARY KEY (repl, seq)
    ) {clustered}
    """,
    "CREATE INDEX events_of_runs ON events (run, mark) WHERE mark <> ''",
    """
    CREATE TABLE questions (
        id TEXT PRIMARY KEY,
        repl TEXT NOT NULL,
        run TEXT NOT NULL,
        call BIGINT NOT NULL,
        question TEXT NOT NULL,
        asked {real} NOT NULL,
        expires {real},
        decision TEXT,
        answered {real}
    )
    """,
    "CREATE UNIQUE INDEX questions_of_calls ON questions (run, call)",
    "CREATE TABLE IF NOT EXISTS handles (run TEXT PRIMARY KEY, repl TEXT NOT NULL, owner TEXT NOT NULL)",
)
"""`fence` counts the leases of a Repl. `mark` says which rows begin or end a run."""
