"""The index of a journal: what is known of each run, so that lists and searches are answered in SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.durable.leases import is_held
from moonbox.errors import UsageError
from moonbox.runs.events import Begin, CallsAsked, End, Patched, Record
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from moonbox.durable.backends import Backend, Transaction

OPEN = ("", "sleeping", "waiting", "parked")
"""The states of runs that have not ended; empty for one that is under way, or was cut off."""
IS_OPEN = "state IN ('', 'sleeping', 'waiting', 'parked')"
STATES = ("running", "interrupted", "sleeping", "waiting", "parked", "ok", "failed", "given up", "cancelled")
"""What a list can be restricted to, beside the kinds of errors."""
KINDS = ("check", "syntax", "runtime", "tool", "limit", "crashed")
_COLUMNS = (
    "b.id, b.repl, b.began, b.ended, b.state, b.wakes, b.undone, b.reason, b.labels, b.source, r.language, b.attempts, "
    "r.holder, r.expires"
)
_MANY = 10_000
_QUESTIONS = ("sys", "docs")


class KnownRun(Struct, frozen=True, kw_only=True):
    """A run of the journal."""

    id: str
    repl: str
    began: float
    ended: float | None
    state: str
    """`running`, `interrupted`, `sleeping`, `waiting` (for a person), `parked`, `given up`, `ok`, or the kind of its
    error."""
    wakes: float | None
    """When it goes on, while it sleeps."""
    undone: str
    """`yes` where its calls were taken back, `partly` where some were; else empty."""
    reason: str
    """Why it is parked, or what became of the latest attempt to continue it."""
    labels: dict[str, str]
    source: str
    language: str
    attempts: int
    """How often it was begun or resumed since it has last come further."""
    in_use: bool
    """Whether a living process uses its Repl."""

    @property
    def has_ended(self) -> bool:
        return self.state not in (*OPEN, "running", "interrupted")


class JournalFilter(Struct, frozen=True, kw_only=True):
    """Which runs a list has: those that fit all that is given."""

    state: str = ""
    """One of `STATES`, or the kind of an error."""
    labels: dict[str, str] = {}
    tool: str = ""
    """They have called it."""
    since: float = 0.0
    """They began then, or later."""
    text: str = ""
    """Words that their scripts have."""

    def __post_init__(self) -> None:
        if self.state and self.state not in (*STATES, *KINDS):
            raise UsageError(unknown("state", self.state, (*STATES, *KINDS)))


def enter(db: Transaction, backend: Backend, repl: str, records: Sequence[Record], at: float) -> None:
    """Note in the index what these records say of a run; in the transaction that writes them.

    Raises UsageError where a new run has the id of another one.
    """
    begin = next((each for each in records if isinstance(each, Begin)), None)
    end = next((each for each in records if isinstance(each, End)), None)
    patched = next((each for each in records if isinstance(each, Patched)), None)
    if begin is not None:
        over = end is not None and end.run == begin.run
        labels = json.dumps(begin.labels)
        row = (begin.run, repl, at, at if over else None, _state(end) if over and end else "", labels, begin.source)
        names = "id, repl, began, ended, state, labels, source, wakes, attempts, undone, reason"
        insert = f"INSERT INTO journal_runs ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 1, '', '')"
        insert += " ON CONFLICT (id) DO NOTHING"
        if not db.change(insert, row):
            raise UsageError(f"the {backend.name} has a run {begin.run!r} already; each run has an id of its own")
        if backend.index_text:
            db.change(backend.index_text, (begin.run,))
        _tag(db, begin.run, [f"label:{name}={text}" for name, text in begin.labels.items()])
    if patched is not None:
        if backend.forget_text:
            db.change(backend.forget_text, (patched.run,))
        change = "UPDATE journal_runs SET state = '', ended = NULL, wakes = NULL, attempts = 1, source = ? WHERE id = ?"
        db.change(change, (patched.source, patched.run))
        db.change(
            "DELETE FROM journal_tags WHERE tag = 'failed' AND run = (SELECT n FROM journal_runs WHERE id = ?)",
            (patched.run,),
        )
        if backend.index_text:
            db.change(backend.index_text, (patched.run,))
    if end is not None:
        if begin is None or end.run != begin.run:
            values = (_state(end), at, end.run)
            db.change("UPDATE journal_runs SET state = ?, ended = ?, wakes = NULL WHERE id = ?", values)
        if end.outcome not in ("ok", "interrupted", "cancelled"):
            _tag(db, end.run, ["failed"])


def enter_tools(db: Transaction, run: str, tools: Iterable[str]) -> None:
    """The run calls these tools."""
    _tag(db, run, [f"tool:{name}" for name in tools])


def tools_of(records: Iterable[Record]) -> set[str]:
    """The tools and functions that these records ask for."""
    targets = (item[1].partition(".") for each in records if isinstance(each, CallsAsked) for item in each.calls)
    return {name for space, _, name in targets if space not in _QUESTIONS}


def forget(db: Transaction, backend: Backend, repl: str) -> None:
    """Delete what is known of the runs of a Repl."""
    if backend.forget_text:
        db.change(backend.forget_text.replace("id = ?", "repl = ?"), (repl,))
    db.change("DELETE FROM journal_tags WHERE run IN (SELECT n FROM journal_runs WHERE repl = ?)", (repl,))
    db.change("DELETE FROM journal_runs WHERE repl = ?", (repl,))


def find(db: Transaction, backend: Backend, wanted: JournalFilter, page: str, now: float) -> list[KnownRun]:
    """The runs that fit, the latest first."""
    tags = [f"label:{name}={text}" for name, text in wanted.labels.items()]
    tags += [f"tool:{wanted.tool}"] * bool(wanted.tool) + ["failed"] * (wanted.state == "failed")
    where, values, source, order = [], [], "journal_runs AS b", "b.n"
    words = re.findall(r"[^\W_]+", wanted.text)
    if words:
        values.append(backend.text_query(words))
        source, condition, order = backend.text_search(db, values[0])
        where.append(condition)
    elif tags:
        tags.sort(key=lambda tag: _frequency(db, tag))
        source, order = "journal_tags AS t CROSS JOIN journal_runs AS b", "t.run"
        where.append("t.tag = ? AND b.n = t.run")
        values.append(tags.pop(0))
    for tag in tags:
        where.append("EXISTS (SELECT 1 FROM journal_tags AS o WHERE o.tag = ? AND o.run = b.n)")
        values.append(tag)
    if wanted.state and wanted.state != "failed":
        where.append("b.state = ?")
        values.append("" if wanted.state in ("running", "interrupted") else wanted.state)
    if wanted.since:
        first = db.rows("SELECT n FROM journal_runs WHERE began >= ? ORDER BY began LIMIT 1", (wanted.since,))
        if not first:
            return []
        where.append(f"{order} >= ?")
        values.append(first[0][0])
    condition = f"WHERE {' AND '.join(where)} " if where else ""
    return select(db, f"{condition}ORDER BY {order} DESC{page}", values, now, source)


def find_one(db: Transaction, run: str, now: float) -> KnownRun | None:
    """The run with that id."""
    return next(iter(select(db, "WHERE b.id = ?", (run,), now)), None)


def select(
    db: Transaction, rest: str, values: Sequence[Any], now: float, source: str = "journal_runs AS b"
) -> list[KnownRun]:
    """The runs of the source that the rest of the statement chooses."""
    rows = db.rows(f"SELECT {_COLUMNS} FROM {source} JOIN repls AS r ON r.id = b.repl {rest}", values)
    return [_known_run(row, now) for row in rows]


def _known_run(row: Sequence[Any], now: float) -> KnownRun:
    in_use = is_held(row[-2], row[-1], now)
    known = dict(zip(KnownRun.__struct_fields__, (*row[:-2], in_use), strict=True))
    known["state"] = known["state"] or ("running" if in_use else "interrupted")
    return KnownRun(**{**known, "labels": json.loads(known["labels"])})


def _state(end: End) -> str:
    return "given up" if end.outcome == "interrupted" else end.outcome


def _tag(db: Transaction, run: str, tags: Iterable[str]) -> None:
    for tag in tags:
        row = "SELECT CAST(? AS TEXT), n FROM journal_runs WHERE id = ?"
        db.change(f"INSERT INTO journal_tags {row} ON CONFLICT (tag, run) DO NOTHING", (tag, run))


def _frequency(db: Transaction, tag: str) -> int:
    """How many runs have it, as far as that matters."""
    return int(
        db.rows(f"SELECT count(*) FROM (SELECT 1 FROM journal_tags WHERE tag = ? LIMIT {_MANY}) AS t", (tag,))[0][0]
    )
