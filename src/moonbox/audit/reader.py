"""Readers of a trail: listings, pages and statistics, asked in SQL whatever the trail keeps its runs in."""

from __future__ import annotations

import json
import re
from array import array
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from moonbox.audit.query import DayStats, RunFilter, RunPage, RunSummary, Stats, ToolStats, percentile
from moonbox.audit.tables import UNFINISHED
from moonbox.compact import clean
from moonbox.errors import UsageError

if TYPE_CHECKING:
    import sqlite3
    from contextlib import AbstractContextManager

    from moonbox.audit.records import Run

_STRETCH = 2_000
_STRETCHES = 5
"""A page looks at no more than this many stretches of this many runs, however rare its matches are."""


class RunReader:
    """What can be asked about the runs of a trail."""

    def get(self, id: str) -> Run:
        """The run with that id, or with the only id that starts with it; raises UsageError for none or several."""
        raise NotImplementedError

    def _reading(self, *, records: bool = True, prefix: str = "") -> AbstractContextManager[sqlite3.Connection]:
        """A connection to the tables, which has the function `state_of_start`.

        At least the runs whose ids start with `prefix` are in them, and their records if these are wanted.
        """
        raise NotImplementedError

    def list(self, limit: int = 50, offset: int = 0, **where: Any) -> tuple[RunSummary, ...]:
        """Summaries, the latest run first; `where` are fields of RunFilter."""
        _check_page(limit, offset)
        wanted = RunFilter(**where)
        tests, values = _tests(wanted)
        sql = f"SELECT {SUMMARY} FROM runs WHERE 1{tests} ORDER BY started DESC, seq DESC LIMIT :limit OFFSET :offset"
        with self._reading(records=wanted.reads_records) as db:
            rows = db.execute(sql, {**values, "limit": limit, "offset": offset})
            return tuple(RunSummary(*row) for row in rows)

    def count(self, where: RunFilter) -> int:
        """How many runs are wanted."""
        tests, values = _tests(where)
        with self._reading(records=where.reads_records) as db:
            return int(db.execute(f"SELECT count(*) FROM runs WHERE 1{tests}", values).fetchone()[0])

    def page(self, limit: int = 50, *, before: str | None = None, where: RunFilter | None = None) -> RunPage:
        """Summaries of the runs before the one with that id, the latest first.

        Where matches are rare in a long trail, a page may hold fewer than `limit` runs and still have a `next`.
        """
        _check_page(limit, 0)
        wanted = where or RunFilter()
        tests, values = _tests(wanted)
        with self._reading(records=wanted.reads_records) as db:
            place = _place_of(db, before) if before is not None else (float("inf"), 0)
            rows: list[tuple[Any, ...]] = []
            for _ in range(_STRETCHES if tests else 1):
                end = db.execute(_STRETCH_END, (*place, _STRETCH - 1)).fetchone()
                border = end[:2] if end is not None else (float("-inf"), 0)
                bounds = {"started": place[0], "seq": place[1], "last": border[0], "last_seq": border[1]}
                rows += db.execute(_PAGE.format(tests), {**values, **bounds, "limit": limit + 1 - len(rows)})
                if len(rows) > limit or end is None:
                    break
                place = border
        runs = tuple(RunSummary(*row) for row in rows[:limit])
        if len(rows) > limit:
            return RunPage(runs, runs[-1].id if runs else before)
        return RunPage(runs) if end is None else RunPage(runs, end[2], end[0])

    def neighbours(self, run: Run) -> tuple[RunSummary | None, RunSummary | None]:
        """The runs before and after it in the same Repl."""
        if not run.repl:
            return None, None
        with self._reading(records=False) as db:
            place = db.execute("SELECT repl, started, seq FROM runs WHERE id = ?", (run.id,)).fetchone()
            if place is None:
                return None, None
            around = [db.execute(sql, place).fetchone() for sql in (_EARLIER, _LATER)]
        earlier, later = (RunSummary(*row) if row is not None else None for row in around)
        return earlier, later

    def stats(self, *, since: float | None = None, latest: int | None = None) -> Stats:
        """How runs and tools did, since a moment or over so many of the latest runs.

        The figures are of one moment, also while others write.
        """
        start = since if since is not None else float("-inf")
        with self._reading(records=False) as db:
            if latest is not None:
                first = db.execute(_NTH_LATEST, (max(0, latest - 1),)).fetchone()
                start = max(start, first[0] if first is not None and latest else start)
            runs, calls = db.execute(_TOTALS, (start,)).fetchone()
            states = dict(db.execute(_STATES, (start,)).fetchall())
            kinds = dict(db.execute(_KINDS, (start,)).fetchall())
            tools = _tool_stats(db, start)
            days = tuple(DayStats(*row) for row in db.execute(_DAYS, (start,)))
        return Stats(runs, states.get("failed", 0), calls, kinds, states, tools, days)


def _check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise UsageError(f"limit and offset must not be negative: {limit}, {offset}")


def _tests(where: RunFilter) -> tuple[str, dict[str, Any]]:
    """The filter as SQL conditions, which begin with AND, and their values."""
    values = {name: getattr(where, name) for name in _TESTS}
    if where.text is not None:
        values["text"] = f"%{_pattern(where.text)}%"
    tests = [_TESTS[name] for name, value in values.items() if value is not None]
    for place, (name, label) in enumerate((where.labels or {}).items()):
        tests.append(_LABEL_TEST.format(place))
        values |= {f"name{place}": name, f"label{place}": label}
    return "".join(f" AND ({test})" for test in tests), values


def _pattern(text: str) -> str:
    """The text as it stands in a record, which is JSON, with LIKE's own marks escaped."""
    return re.sub(r"[\\%_]", r"\\\g<0>", json.dumps(clean(text), ensure_ascii=False)[1:-1])


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


_STATE = f"""
    CASE WHEN kind IS NULL THEN 'ok' WHEN kind <> '{UNFINISHED}' THEN 'failed' ELSE state_of_start(record) END
"""
_FAILED = f"ifnull(kind <> '{UNFINISHED}', 0)"
_OPEN = "(SELECT count(*) FROM calls WHERE calls.run = runs.seq AND status = 'in_flight')"
SUMMARY = f"""
    id, started, language, repl, {_STATE}, iif({_FAILED}, kind, NULL),
    calls, failed_calls - {_OPEN}, {_OPEN}, wall, title
"""
"""The columns of a RunSummary."""
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
_LABELS = "json_each(iif(json_valid(record), record, '{{}}'), '$.labels')"
_LABEL_TEST = f"EXISTS (SELECT 1 FROM {_LABELS} WHERE key = :name{{0}} AND value = :label{{0}})"
_PAGE = f"""
    SELECT {SUMMARY} FROM runs
    WHERE (started, seq) < (:started, :seq) AND (started, seq) >= (:last, :last_seq){{}}
    ORDER BY started DESC, seq DESC LIMIT :limit
"""
_STRETCH_END = """
    SELECT started, seq, id FROM runs WHERE (started, seq) < (?, ?) ORDER BY started DESC, seq DESC LIMIT 1 OFFSET ?
"""
_NTH_LATEST = "SELECT started FROM runs ORDER BY started DESC LIMIT 1 OFFSET ?"
_EARLIER = f"""
    SELECT {SUMMARY} FROM runs WHERE repl = ? AND (started, seq) < (?, ?) ORDER BY started DESC, seq DESC LIMIT 1
"""
_LATER = f"SELECT {SUMMARY} FROM runs WHERE repl = ? AND (started, seq) > (?, ?) ORDER BY started, seq LIMIT 1"
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
# Other statuses say nothing about how long the tool takes.
_DURATIONS = f"""
    SELECT tool, duration {_CALLS_SINCE} AND status IN ('ok', 'error', 'timeout') ORDER BY tool, duration
"""
