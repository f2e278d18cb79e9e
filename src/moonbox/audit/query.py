"""Questions to a trail: listings, pages and statistics, asked in SQL whatever the trail keeps its runs in."""

from __future__ import annotations

import datetime as dt
import json
import re
from array import array
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from moonbox.compact import clean
from moonbox.errors import UsageError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from moonbox.audit.records import Run, RunState

UNFINISHED = "unfinished"
"""The kind of a run whose end is not on file. A reader decides whether it is running or was interrupted."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a listing."""

    id: str
    started: float
    language: str
    repl: str
    state: RunState
    kind: str | None
    """The error's kind; None unless the run failed."""
    calls: int
    failed_calls: int
    open_calls: int
    """Calls without an end: they are running, or it is in doubt whether they took effect."""
    wall: float
    title: str
    """The first line of the source that is neither empty nor a comment; for a tool script, its name."""

    @property
    def ok(self) -> bool:
        return self.state == "ok"

    @property
    def result(self) -> str:
        """The error's kind, or else the state."""
        return self.kind or self.state

    @property
    def calls_text(self) -> str:
        """The number of calls, and of those that failed or have no end."""
        doubt = "running" if self.state == "running" else "in doubt"
        parts = [f"{n:,} {what}" for n, what in ((self.failed_calls, "failed"), (self.open_calls, doubt)) if n]
        return f"{self.calls:,}" + (f" ({', '.join(parts)})" if parts else "")

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        return cls(
            id=run.id,
            started=run.started,
            language=run.language,
            repl=run.repl,
            state=run.state,
            kind=run.error.kind if run.error is not None and run.state == "failed" else None,
            calls=len(run.calls),
            failed_calls=sum(call.failed for call in run.calls),
            open_calls=sum(call.status == "in_flight" for call in run.calls),
            wall=run.usage.wall,
            title=f"tool script {run.tool}"[:200] if run.tool else title(run.source),
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; None stands for any."""

    ok: bool | None = None
    """True for runs that succeeded, False for runs that failed."""
    state: str | None = None
    kind: str | None = None
    """The error's kind."""
    tool: str | None = None
    """Runs that called this tool."""
    repl: str | None = None
    language: str | None = None
    since: float | None = None
    until: float | None = None
    labels: Mapping[str, str] | None = None
    """Runs with all of these labels."""
    text: str | None = None
    """Somewhere in the record: the source, arguments, results, output, error. Letter case does not matter."""

    @property
    def reads_records(self) -> bool:
        """Whether it asks for what only the whole record of a run tells."""
        return bool(self.labels) or self.text is not None


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a listing, the latest run first."""

    runs: tuple[RunSummary, ...]
    next: str | None = None
    """What to give as `before` for the page after this one; None at the end of the trail."""
    searched_back_to: float | None = None
    """When the earliest run began that was looked at: a rare match may be on a later page."""


@dataclass(frozen=True, slots=True)
class ToolStats:
    """Figures of one tool. Times are in seconds, over the calls that reached the tool."""

    tool: str
    calls: int
    failures: int
    p50: float
    p95: float
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class DayStats:
    """What happened on one day (UTC)."""

    day: str
    runs: int
    failures: int
    calls: int
    wall: float


@dataclass(frozen=True, slots=True)
class TrailStats:
    """What a trail holds: tools with most calls first, days with the latest first."""

    runs: int
    failures: int
    calls: int
    kinds: dict[str, int]
    """How many runs failed with each kind of error."""
    states: dict[str, int]
    """How many runs are in each state."""
    tools: tuple[ToolStats, ...]
    days: tuple[DayStats, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def pick(prefix: str, ids: Sequence[str]) -> str:
    """The one id that is or starts with `prefix`; raises UsageError for none and for several."""
    if prefix in ids:
        return prefix
    if not ids:
        raise UsageError(f"no run has an id that starts with {prefix!r}")
    if len(ids) > 1:
        raise UsageError(
            f"several runs have an id that starts with {prefix!r}: {', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}"
        )
    return ids[0]


def labels_of(texts: Iterable[str]) -> dict[str, str] | None:
    """The labels that texts such as "user=ann" name; None for no texts."""
    labels = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"invalid label {text[:200]!r}; write a name and a text, such as user=ann")
        labels[name] = value
    return labels or None


def moment(text: str, now: float) -> float:
    """A point in time: "45m", "12h" or "7d" ago, or a date or time in ISO 8601 (local unless it says otherwise)."""
    if age := re.fullmatch(r"(\d+)([smhdw])", text.strip()):
        return now - int(age[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[age[2]]
    try:
        return dt.datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"invalid time {text!r}; write an age such as 45m, 12h or 7d, or a date such as 2026-01-31"
        ) from None


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest element that at least `percent` of them do not exceed; 0 when there are none."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else 0.0


def title(source: str) -> str:
    """The first line of a script that is neither empty nor a comment, or else the first that is not empty."""
    lines = [line.strip() for line in source[:4000].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(("--", "//"))), lines[0] if lines else "")
    return first[:200]


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
            place = (float("inf"), 0)
            if before is not None:
                place = db.execute("SELECT started, seq FROM runs WHERE id = ?", (before,)).fetchone()
                if place is None:
                    raise UsageError(f"unknown run {before!r}")
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
            directions = ({"sign": "<", "order": "DESC"}, {"sign": ">", "order": "ASC"})
            around = [db.execute(_NEIGHBOUR.format(**each), place).fetchone() for each in directions]
        earlier, later = (RunSummary(*row) if row is not None else None for row in around)
        return earlier, later

    def stats(self, *, since: float | None = None, latest: int | None = None) -> TrailStats:
        """Figures of runs and tools, since a point in time or over the `latest` runs.

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
        return TrailStats(runs, states.get("failed", 0), calls, kinds, states, tools, days)


def _check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise UsageError(f"limit and offset must not be negative: {limit}, {offset}")


def _tests(where: RunFilter) -> tuple[str, dict[str, Any]]:
    """The filter as SQL conditions, which begin with AND, and their values."""
    values = {name: getattr(where, name) for name in _TESTS}
    if where.text is not None:  # as it stands in a record, which is JSON, with LIKE's own marks escaped
        written = json.dumps(clean(where.text), ensure_ascii=False)[1:-1]
        values["text"] = "%" + re.sub(r"[\\%_]", r"\\\g<0>", written) + "%"
    tests = [_TESTS[name] for name, value in values.items() if value is not None]
    for place, (name, label) in enumerate((where.labels or {}).items()):
        tests.append(_LABEL_TEST.format(place))
        values |= {f"name{place}": name, f"label{place}": label}
    return "".join(f" AND ({test})" for test in tests), values


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
_NEIGHBOUR = f"""
    SELECT {SUMMARY} FROM runs WHERE repl = ? AND (started, seq) {{sign}} (?, ?)
    ORDER BY started {{order}}, seq {{order}} LIMIT 1
"""
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
