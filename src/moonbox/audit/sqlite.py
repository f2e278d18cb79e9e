"""Runs in a SQLite database, shared by any number of threads and processes."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from array import array
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.query import (
    TIMED,
    DayStats,
    RunFilter,
    RunPage,
    RunSummary,
    Stats,
    ToolStats,
    check_page,
    percentile,
    pick,
    written,
)
from moonbox.audit.records import Call, Run, cut_off
from moonbox.audit.retention import Prunable, Pruning, Retention, RetentionClock
from moonbox.audit.tables import (
    COLUMNS,
    SCHEMA,
    UNFINISHED,
    add_to_chain,
    call_row,
    prune_chain,
    summary_row,
    verify_tables,
)
from moonbox.audit.writers import Writer, state_of_start
from moonbox.database import Database
from moonbox.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from moonbox.audit.chain import Verification

_STRETCH = 2_000
_STRETCHES = 5
"""A page is looked for in so many stretches of so many runs, however rare its matches are."""


class SqliteSink(Prunable):
    """A database in write-ahead mode: one transaction for each run, done when `write` returns.

    The commit is in the operating system's hands by then, so that SIGKILL of this process loses no run that was
    returned; SQLite's own checksums drop what was half written. With `fsync` each commit waits for the disk
    and survives a loss of power as well; without it, a loss of power may cost the latest runs, never the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        create: bool = True,
        timeout: float = 30.0,
        retention: Retention | None = None,
    ) -> None:
        self.path = Path(path)
        self._closed = False
        self._retention = RetentionClock(retention)
        self._database = Database(self.path, SCHEMA, create=create, durable=fsync, timeout=timeout)

    def write(self, run: Run) -> None:
        summary, record = RunSummary.of(run), run.to_json()
        with self._database.writing() as db:
            _insert_run(db, summary, record, run.calls)
            add_to_chain(db, "run", run.id, record)
        if self._retention.is_due(len(record)):
            self._retain()

    def start_run(self, run: Run) -> None:
        """Write down a run that is about to make its first call."""
        summary = RunSummary.of(cut_off(run, (), "unfinished"))
        record = json.dumps({**run.to_dict(), "writer": Writer.current().to_dict()}, separators=(",", ":"))
        with self._database.writing() as db:
            if _seq(db, run.id) is None:
                _insert_run(db, summary, record, ())
                add_to_chain(db, "start", run.id, record)

    def start_call(self, run: str, call: Call) -> None:
        """Write down a call of the run of that id before its tool is invoked."""
        record = json.dumps(call.to_dict(), separators=(",", ":"))
        with self._database.writing() as db:
            db.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?)", (run, call.index, record))
            add_to_chain(db, "call", run, record, call.index)
            # Not in a run that has ended: an abandoned call comes too late for its record.
            if (seq := _seq(db, run, unfinished=True)) is not None:
                _put_call(db, seq, call)

    end_call = start_call
    """Write down what came of the call."""

    def list(self, limit: int = 50, offset: int = 0, **where: Any) -> tuple[RunSummary, ...]:
        """Summaries, the latest run first; `where` are fields of RunFilter."""
        check_page(limit, offset)
        tests, values = _tests(RunFilter(**where))
        chosen = " AND ".join(tests) or "1"
        sql = f"SELECT {_SUMMARY} FROM runs WHERE {chosen} ORDER BY started DESC, seq DESC LIMIT :limit OFFSET :offset"
        with self._reading() as db:
            rows = db.execute(sql, {**values, "limit": limit, "offset": offset})
            return tuple(RunSummary(*row) for row in rows)

    def count(self, where: RunFilter) -> int:
        """How many runs are wanted."""
        tests, values = _tests(where)
        with self._reading() as db:
            return int(
                db.execute(f"SELECT count(*) FROM runs WHERE {' AND '.join(tests) or '1'}", values).fetchone()[0]
            )

    def get(self, id: str) -> Run:
        """The run with that id, or with the only id that starts with it; raises UsageError for none or several."""
        with self._reading() as db:
            ids = db.execute("SELECT id FROM runs WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 7", (id, id + _LAST))
            chosen = pick(id, [row[0] for row in ids])
            kind, record = db.execute("SELECT kind, record FROM runs WHERE id = ?", (chosen,)).fetchone()
            calls = db.execute("SELECT record FROM intents WHERE run = ?", (chosen,)).fetchall()
        data = json.loads(record)
        run = Run.from_dict(data)
        if kind != UNFINISHED:
            return run
        return cut_off(run, [Call.from_dict(json.loads(call)) for (call,) in calls], state_of_start(data))

    def page(self, limit: int = 50, *, before: str | None = None, where: RunFilter | None = None) -> RunPage:
        """Summaries of the runs before the one with that id, the latest first.

        The time that it takes does not grow with the trail: where matches are rare, a page may hold fewer than `limit`
        runs and still have a `next`.
        """
        check_page(limit, 0)
        tests, values = _tests(where or RunFilter())
        with self._reading() as db:
            place = _place_of(db, before) if before is not None else (float("inf"), 0)
            rows: list[tuple[Any, ...]] = []
            for _ in range(_STRETCHES if tests else 1):
                end = db.execute(_STRETCH_END, (*place, _STRETCH - 1)).fetchone()
                border = end[:2] if end is not None else (float("-inf"), 0)
                bounds = {"started": place[0], "seq": place[1], "last": border[0], "last_seq": border[1]}
                sql = _PAGE.format(tests="".join(f" AND {test}" for test in tests))
                rows += db.execute(sql, {**values, **bounds, "limit": limit + 1 - len(rows)})
                if len(rows) > limit or end is None:
                    break
                place = border
        runs = tuple(RunSummary(*row[1:]) for row in rows[:limit])
        if len(rows) > limit:
            return RunPage(runs, runs[-1].id if runs else before)
        return RunPage(runs) if end is None else RunPage(runs, end[2], end[0])

    def neighbours(self, run: Run) -> tuple[RunSummary | None, RunSummary | None]:
        """The runs before and after it in the same Repl."""
        if not run.repl:
            return None, None
        with self._reading() as db:
            place = db.execute("SELECT repl, started, seq FROM runs WHERE id = ?", (run.id,)).fetchone()
            if place is None:
                return None, None
            around = [db.execute(sql, place).fetchone() for sql in (_EARLIER, _LATER)]
        earlier, later = (RunSummary(*row) if row is not None else None for row in around)
        return earlier, later

    def tail(self, mark: int | None = None, limit: int = 100) -> tuple[int, tuple[RunSummary, ...]]:
        """The runs that were written after this mark, by any process, and the next mark; None marks the end."""
        with self._reading() as db:
            if mark is None:
                return int(db.execute("SELECT ifnull(max(seq), 0) FROM runs").fetchone()[0]), ()
            sql = f"SELECT seq, {_SUMMARY} FROM runs WHERE seq > ? ORDER BY seq LIMIT ?"
            rows = db.execute(sql, (mark, limit)).fetchall()
        return (rows[-1][0] if rows else mark), tuple(RunSummary(*row[1:]) for row in rows)

    def stats(self, *, since: float | None = None, latest: int | None = None) -> Stats:
        """How runs and tools did; the figures are of one moment, also while others write."""
        start = since if since is not None else float("-inf")
        with self._reading() as db:
            if latest is not None:
                first = db.execute(_NTH_LATEST, (max(0, latest - 1),)).fetchone()
                start = max(start, first[0] if first is not None and latest else start)
            runs, calls = db.execute(_TOTALS, (start,)).fetchone()
            states = dict(db.execute(_STATES, (start,)).fetchall())
            kinds = dict(db.execute(_KINDS, (start,)).fetchall())
            tools = _tool_stats(db, start)
            days = tuple(DayStats(*row) for row in db.execute(_DAYS, (start,)))
        return Stats(runs, states.get("failed", 0), calls, kinds, states, tools, days)

    def verify(self, *, expect: str | None = None) -> Verification:
        """Whether every record fits the one before; `expect` is the hash of a record that must be there."""
        with self._reading() as db:
            return verify_tables(db, expect)

    def close(self) -> None:
        self._database.close()
        self._closed = True

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        if dry_run:
            with self._reading() as db:
                return len(choice.of_runs(_sizes(db)))
        with self._database.writing() as db:
            removed = choice.of_runs(_sizes(db))
            rows = [(id,) for id in removed]
            db.executemany("DELETE FROM calls WHERE run = (SELECT seq FROM runs WHERE id = ?)", rows)
            db.executemany("DELETE FROM runs WHERE id = ?", rows)
            db.executemany("DELETE FROM intents WHERE run = ?", rows)
            if removed:
                prune_chain(db, removed)
        if removed:
            self._database.shrink()
        return len(removed)

    def _retain(self) -> None:
        pruning = self._retention.pruning
        with self._database.reading() as db:
            runs, oldest = db.execute("SELECT count(*), min(started) FROM runs").fetchone()
            (pages,) = db.execute("PRAGMA page_count").fetchone()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            (page,) = db.execute("PRAGMA page_size").fetchone()
        if pruning is not None and self._retention.is_past(runs=runs, size=(pages - free) * page, oldest=oldest):
            self._prune(pruning)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A closed sink stays readable, as every other sink does: the file is opened for this once."""
        if not self._closed:
            with self._database.reading(_reader) as db:
                yield db
            return
        database = Database(self.path, SCHEMA, read_only=True)
        with contextlib.closing(database), database.reading(_reader) as db:
            yield db


def _reader(connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """A connection that knows the state of a run of which only the start is on file."""
    db = connect()
    db.create_function("state_of_start", 1, lambda record: state_of_start(json.loads(record)))
    return db


def _tests(where: RunFilter) -> tuple[list[str], dict[str, Any]]:
    """The filter as SQL conditions and their values."""
    values = {
        "ok": where.ok,
        "state": where.state,
        "kind": where.kind,
        "tool": where.tool,
        "repl": where.repl,
        "language": where.language,
        "since": where.since,
        "until": where.until,
        "text": None if where.text is None else f"%{_pattern(where.text)}%",
    }
    tests = [_TESTS[name] for name, value in values.items() if value is not None]
    for place, (name, label) in enumerate((where.labels or {}).items()):
        tests.append(_LABEL_TEST.format(place))
        values |= {f"name{place}": name, f"label{place}": label}
    return tests, values


def _pattern(text: str) -> str:
    """The text as it stands in a record, with LIKE's own marks escaped."""
    return written(text).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _place_of(db: sqlite3.Connection, id: str) -> tuple[float, int]:
    row = db.execute("SELECT started, seq FROM runs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise UsageError(f"unknown run {id!r}")
    return row[0], row[1]


def _tool_stats(db: sqlite3.Connection, start: float) -> tuple[ToolStats, ...]:
    by_tool = groupby(db.execute(_DURATIONS, (start,)), itemgetter(0))
    times = {tool: array("d", (row[1] for row in rows)) for tool, rows in by_tool}
    return tuple(
        ToolStats(
            tool=tool,
            calls=calls,
            failures=failures,
            p50=percentile(times.get(tool, ()), 50),
            p95=percentile(times.get(tool, ()), 95),
            bytes_in=bytes_in,
            bytes_out=bytes_out,
        )
        for tool, calls, failures, bytes_in, bytes_out in db.execute(_TOOLS, (start,))
    )


def _insert_run(db: sqlite3.Connection, run: RunSummary, record: str, calls: Iterable[Call]) -> None:
    row = summary_row(run)
    try:
        seq = db.execute(_INSERT_RUN, (*row, record)).lastrowid
    except sqlite3.IntegrityError:  # written before: the later record is the one that counts
        db.execute("DELETE FROM calls WHERE run = (SELECT seq FROM runs WHERE id = ?)", (run.id,))
        db.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        db.execute("DELETE FROM intents WHERE run = ?", (run.id,))
        seq = db.execute(_INSERT_RUN, (*row, record)).lastrowid
    if calls:
        db.executemany(f"INSERT {_INTO_CALLS}", [call_row(seq or 0, call) for call in calls])


def _put_call(db: sqlite3.Connection, seq: int, call: Call) -> None:
    """Enter a call of a run that has not ended, or its end."""
    found = db.execute("SELECT status FROM calls WHERE run = ? AND position = ?", (seq, call.index)).fetchone()
    db.execute(f"INSERT OR REPLACE {_INTO_CALLS}", call_row(seq, call))
    failed = (call.status != "ok") - (found is not None and found[0] != "ok")
    sql = "UPDATE runs SET calls = calls + ?, failed_calls = failed_calls + ? WHERE seq = ?"
    db.execute(sql, (found is None, failed, seq))


def _seq(db: sqlite3.Connection, id: str, *, unfinished: bool = False) -> int | None:
    sql = "SELECT seq FROM runs WHERE id = ?" + (f" AND kind = '{UNFINISHED}'" if unfinished else "")
    row = db.execute(sql, (id,)).fetchone()
    return None if row is None else int(row[0])


def _sizes(db: sqlite3.Connection) -> list[tuple[str, float, int]]:
    """Every run with its start and size, in the order they were written."""
    return db.execute(
        """
        SELECT id, started, ifnull((SELECT sum(size) FROM chain WHERE chain.run = runs.id), 0) FROM runs ORDER BY seq
        """
    ).fetchall()


_LAST = "\U0010ffff"
_STATE = f"""
    CASE WHEN kind IS NULL THEN 'ok' WHEN kind <> '{UNFINISHED}' THEN 'failed' ELSE state_of_start(record) END
"""
_FAILED = f"ifnull(kind <> '{UNFINISHED}', 0)"
_OPEN = "(SELECT count(*) FROM calls WHERE calls.run = runs.seq AND status = 'in_flight')"
_SUMMARY = f"""
    id, started, language, repl, {_STATE}, iif({_FAILED}, kind, NULL),
    calls, failed_calls - {_OPEN}, {_OPEN}, wall, title
"""
_TESTS = {
    "ok": f"iif(:ok, kind IS NULL, {_FAILED})",
    "state": f"{_STATE} = :state",
    "kind": f"{_FAILED} AND kind = :kind",
    "tool": "EXISTS (SELECT 1 FROM calls WHERE run = runs.seq AND tool = :tool)",
    "repl": "repl = :repl",
    "language": "language = :language",
    "since": "started >= :since",
    "until": "started < :until",
    "text": "record LIKE :text ESCAPE '\\'",
}
_LABEL_TEST = "EXISTS (SELECT 1 FROM json_each(record, '$.labels') WHERE key = :name{0} AND value = :label{0})"
_PAGE = f"""
    SELECT seq, {_SUMMARY} FROM runs
    WHERE (started, seq) < (:started, :seq) AND (started, seq) >= (:last, :last_seq){{tests}}
    ORDER BY started DESC, seq DESC LIMIT :limit
"""
_STRETCH_END = """
    SELECT started, seq, id FROM runs WHERE (started, seq) < (?, ?) ORDER BY started DESC, seq DESC LIMIT 1 OFFSET ?
"""
_NTH_LATEST = "SELECT started FROM runs ORDER BY started DESC LIMIT 1 OFFSET ?"
_EARLIER = f"""
    SELECT {_SUMMARY} FROM runs WHERE repl = ? AND (started, seq) < (?, ?) ORDER BY started DESC, seq DESC LIMIT 1
"""
_LATER = f"SELECT {_SUMMARY} FROM runs WHERE repl = ? AND (started, seq) > (?, ?) ORDER BY started, seq LIMIT 1"
_INSERT_RUN = f"INSERT INTO runs ({COLUMNS}, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INTO_CALLS = "INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOTALS = "SELECT count(*), ifnull(sum(calls), 0) FROM runs WHERE started >= ?"
_STATES = f"SELECT {_STATE} AS state, count(*) FROM runs WHERE started >= ? GROUP BY state ORDER BY state"
_KINDS = f"SELECT kind, count(*) FROM runs WHERE {_FAILED} AND started >= ? GROUP BY kind ORDER BY kind"
_DAYS = f"""
    SELECT date(started, 'unixepoch') AS day, count(*), sum({_FAILED}), sum(calls), sum(wall)
    FROM runs WHERE started >= ? GROUP BY day ORDER BY day DESC
"""
# CROSS JOIN: the runs first, by their index, so that the calls of a few runs are found without reading all of them.
_CALLS_SINCE = "FROM runs CROSS JOIN calls ON calls.run = runs.seq WHERE runs.started >= ?"
_TOOLS = f"""
    SELECT tool, count(*) AS made, sum(status NOT IN ('ok', 'in_flight')), sum(bytes_in), sum(bytes_out)
    {_CALLS_SINCE} GROUP BY tool ORDER BY made DESC, tool
"""
_DURATIONS = f"""
    SELECT tool, duration {_CALLS_SINCE}
    AND status IN ({", ".join(f"'{status}'" for status in TIMED)}) ORDER BY tool, duration
"""
