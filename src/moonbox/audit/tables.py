"""The tables of a SQLite trail: runs, their calls, and a hash chain over all records as they were written."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from moonbox.audit.chain import START, ChainLink, digest, json_object, link, prune_note
from moonbox.audit.query import UNFINISHED, RunSummary
from moonbox.audit.records import DAMAGED, Call, Run, cut_off
from moonbox.compact import clean
from moonbox.database import Schema
from moonbox.errors import AuditError


def create_runs_and_calls(db: sqlite3.Connection) -> None:
    """The whole record is JSON in `runs.record`; columns and calls hold what listings and statistics ask for."""
    # `record` comes last: SQLite reads a row from its start, so that a listing never touches the long part.
    db.execute(
        """
        CREATE TABLE runs (
            seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, started REAL NOT NULL, language TEXT NOT NULL,
            repl TEXT NOT NULL, kind TEXT, calls INTEGER NOT NULL, failed_calls INTEGER NOT NULL, wall REAL NOT NULL,
            title TEXT NOT NULL, record TEXT NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE calls (
            run INTEGER NOT NULL, position INTEGER NOT NULL, tool TEXT NOT NULL, status TEXT NOT NULL,
            started REAL NOT NULL, queued REAL NOT NULL, duration REAL NOT NULL,
            bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL, PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX runs_by_time ON runs (started)")


def index_runs_by_repl(db: sqlite3.Connection) -> None:
    """For the runs before and after one in the same Repl."""
    db.execute("CREATE INDEX runs_by_repl ON runs (repl, started)")


def create_chain(db: sqlite3.Connection) -> None:
    """`intents` holds calls of runs that have not ended. `chain` has a row for each record.

    kind: run (whole), start (of a run that makes its first call), call (about to be made, and again when it has ended),
    prune (what was removed), pruned (all that is left of removed records: the hash that the next one follows).
    """
    db.execute(
        """
        CREATE TABLE intents (
            run TEXT NOT NULL, position INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        """
    )
    db.execute(
        """
        CREATE TABLE chain (
            position INTEGER PRIMARY KEY, kind TEXT NOT NULL, run TEXT NOT NULL, call INTEGER NOT NULL,
            size INTEGER NOT NULL, digest TEXT NOT NULL, hash TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX chain_by_run ON chain (run)")
    for (seq,) in db.execute("SELECT seq FROM runs ORDER BY seq").fetchall():
        id, record = db.execute("SELECT id, record FROM runs WHERE seq = ?", (seq,)).fetchone()
        add_to_chain(db, "run", id, record)


SCHEMA = Schema(
    name="audit trail",
    application_id=0x6D6F6F6E,  # "moon"
    migrations=(create_runs_and_calls, index_runs_by_repl, create_chain),
    error=AuditError,
    repair="move it away; the next run starts a new one",
    upgrade="the next run that is written to it updates it",
)


def add_to_chain(db: sqlite3.Connection, kind: str, run: str, record: str, call: int = 0) -> None:
    """Add a record. The caller holds the write lock."""
    last = db.execute("SELECT hash FROM chain ORDER BY position DESC LIMIT 1").fetchone()
    data = record.encode()
    content = record if kind == "prune" else digest(data)
    hash = link(last[0] if last else START, kind, run, str(call), content)
    row = (kind, run, call, len(data), content, hash)
    db.execute("INSERT INTO chain (kind, run, call, size, digest, hash) VALUES (?, ?, ?, ?, ?, ?)", row)


def prune_chain(db: sqlite3.Connection, removed: Collection[str]) -> None:
    """Leave one stub for each row of records that are gone, and add a record that vouches for them."""
    before = db.execute("SELECT digest FROM chain WHERE kind = 'prune' ORDER BY position DESC LIMIT 1").fetchone()
    runs = json_object(before[0]).get("runs") if before else 0
    gone = "kind = 'pruned', run = '', call = 0, size = 0, digest = ''"
    db.executemany(f"UPDATE chain SET {gone} WHERE run = ?", [(id,) for id in removed])
    db.execute(f"UPDATE chain SET {gone} WHERE kind = 'prune'")
    # What was written while a run happened is not needed once the run itself is there.
    db.execute(
        f"""
        UPDATE chain SET {gone} WHERE kind IN ('start', 'call')
        AND EXISTS (SELECT 1 FROM chain AS whole WHERE whole.run = chain.run AND whole.kind = 'run')
        """
    )
    db.execute(
        """
        DELETE FROM chain WHERE position IN (
            SELECT position FROM (
                SELECT position, kind, lead(kind) OVER (ORDER BY position) AS next FROM chain
            ) WHERE kind = 'pruned' AND next = 'pruned'
        )
        """
    )
    stubs = [hash for (hash,) in db.execute("SELECT hash FROM chain WHERE kind = 'pruned' ORDER BY position")]
    add_to_chain(db, "prune", "", json.dumps(prune_note(stubs, (runs if isinstance(runs, int) else 0) + len(removed))))


COLUMNS = "id, started, language, repl, kind, calls, failed_calls, wall, title"
"""The columns of a run beside its record."""
_INSERT_RUN = f"INSERT INTO runs ({COLUMNS}, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INTO_CALLS = "INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _run_row(run: Run) -> tuple[Any, ...]:
    """What is in `COLUMNS`. There, calls without an end count as failed."""
    found = RunSummary.of(run)
    kind = found.kind if found.state in ("ok", "failed") else UNFINISHED
    calls = (found.calls, found.failed_calls + found.open_calls)
    return (run.id, run.started, run.language, run.repl, kind, *calls, found.wall, clean(found.title))


def _call_row(seq: int, call: Call) -> tuple[Any, ...]:
    """The columns of a call."""
    figures = (call.started, call.queued, call.duration, call.bytes_in, call.bytes_out)
    return (seq, call.index, clean(call.tool), call.status, *figures)


def put_run(db: sqlite3.Connection, run: Run, record: str) -> None:
    """Enter a run and its calls, in place of what was written of it before."""
    row = (*_run_row(run), record)
    try:
        seq = db.execute(_INSERT_RUN, row).lastrowid
    except sqlite3.IntegrityError:  # written before: the later record is the one that counts
        delete_runs(db, [run.id])
        seq = db.execute(_INSERT_RUN, row).lastrowid
    db.executemany(f"INSERT {_INTO_CALLS}", [_call_row(seq or 0, call) for call in run.calls])


def put_start(db: sqlite3.Connection, run: Run, record: str) -> bool:
    """Enter a run of which nothing is written yet, without its end; whether that was so."""
    if db.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone():
        return False
    put_run(db, cut_off(run, (), "unfinished"), record)
    return True


def put_call(db: sqlite3.Connection, run: str, call: Call, record: str) -> None:
    """Enter a call of a run, or its end. Nothing of a run that has ended changes: an abandoned call comes too late."""
    db.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?)", (run, call.index, record))
    sql = f"SELECT seq FROM runs WHERE id = ? AND kind = '{UNFINISHED}'"
    for (seq,) in db.execute(sql, (run,)).fetchall():
        found = db.execute("SELECT status FROM calls WHERE run = ? AND position = ?", (seq, call.index)).fetchone()
        db.execute(f"INSERT OR REPLACE {_INTO_CALLS}", _call_row(seq, call))
        failed = (call.status != "ok") - (found is not None and found[0] != "ok")
        sql = "UPDATE runs SET calls = calls + ?, failed_calls = failed_calls + ? WHERE seq = ?"
        db.execute(sql, (found is None, failed, seq))


@contextlib.contextmanager
def tables_in_memory(state_of: Callable[[str], str]) -> Iterator[sqlite3.Connection]:
    """Empty tables for runs that are kept elsewhere; `state_of` is the state of an unfinished run by its record."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.create_function("state_of_start", 1, state_of)
        for create in (create_runs_and_calls, create_chain):
            create(db)
        db.execute("BEGIN")
        yield db


def delete_runs(db: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Remove runs and all of their calls."""
    rows = [(id,) for id in ids]
    db.executemany("DELETE FROM calls WHERE run = (SELECT seq FROM runs WHERE id = ?)", rows)
    db.executemany("DELETE FROM runs WHERE id = ?", rows)
    db.executemany("DELETE FROM intents WHERE run = ?", rows)


def chain_links(db: sqlite3.Connection) -> Iterator[ChainLink]:
    """The chain from its first record to its last."""
    head = START
    for position, kind, run, call, content, hash in db.execute(_CHAIN):
        place = f"record {position}" + (f" (run {run})" if run else "")
        problem = note = None
        if kind != "pruned" and hash != link(head, kind, run, str(call), content):
            problem = f"{place} does not fit the records before it"
        elif kind == "prune":
            note = json_object(content)
        elif kind != "pruned" and (wrong := _content_problem(db, position, kind, run, call, content)):
            problem = f"{place}: {wrong}"
        yield ChainLink(kind, place, hash, problem, note)
        head = hash
    yield ChainLink("end", problem=next(_strangers(db), None))


_REPLACED = """
    SELECT 1 FROM chain WHERE run = ? AND position > ? AND (kind = 'run' OR (kind = 'call' AND call = ?))
"""
_CHAIN = "SELECT position, kind, run, call, digest, hash FROM chain ORDER BY position"


def _content_problem(db: sqlite3.Connection, position: int, kind: str, run: str, call: int, content: str) -> str | None:
    """What is wrong with the record that a row of the chain stands for; a later record of the run replaces it."""
    if kind == "call":
        row = db.execute("SELECT record FROM intents WHERE run = ? AND position = ?", (run, call)).fetchone()
        if db.execute(_REPLACED, (run, position, call)).fetchone():
            return None
        if row is None:
            return f"the record of call {call} is missing"
        return None if digest(row[0].encode()) == content else f"the record of call {call} was changed"
    if db.execute(
        "SELECT 1 FROM chain WHERE run = ? AND position > ? AND kind IN ('run', 'start')", (run, position)
    ).fetchone():
        return None
    row = db.execute(f"SELECT seq, record, {COLUMNS} FROM runs WHERE id = ?", (run,)).fetchone()
    if row is None:
        return "the run is missing"
    seq, record, *columns = row
    if digest(record.encode()) != content:
        return "the run was changed"
    if kind == "run":
        try:
            whole = Run.from_json(record)
        except DAMAGED:
            return "it is not the record of a run"
        calls = db.execute("SELECT * FROM calls WHERE run = ? ORDER BY position", (seq,)).fetchall()
        if _run_row(whole) != tuple(columns) or [_call_row(seq, one) for one in whole.calls] != calls:
            return "what listings and statistics show of the run was changed"
    return None


def _strangers(db: sqlite3.Connection) -> Iterator[str]:
    """Records that no row of the chain stands for."""
    for (run,) in db.execute("SELECT id FROM runs WHERE id NOT IN (SELECT run FROM chain) ORDER BY seq LIMIT 1"):
        yield f"run {run} was not written by moonbox: the chain does not have it"
    missing = """
        SELECT run, position FROM intents AS i WHERE NOT EXISTS (
            SELECT 1 FROM chain WHERE chain.run = i.run AND chain.call = i.position AND kind = 'call'
        ) LIMIT 1
    """
    for run, call in db.execute(missing):
        yield f"call {call} of run {run} was not written by moonbox: the chain does not have it"
