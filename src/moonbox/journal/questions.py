"""Questions: calls that wait for a person, kept in a journal until any process answers them or they expire."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.errors import UsageError
from moonbox.journal.records import Begin, decode

if TYPE_CHECKING:
    from moonbox.journal.backends import Backend, Transaction

EXPIRED, WITHDRAWN = "expired", "withdrawn"
_MOST_LISTED = 1_000
_COLUMNS = "q.id, q.repl, q.run, q.call, q.question, q.asked, q.expires, q.decision"
_ENDED = "EXISTS (SELECT 1 FROM events AS e WHERE e.run = q.run AND e.mark = 'e')"


class KeptQuestion(Struct, frozen=True, kw_only=True):
    """A question of the journal."""

    id: str
    repl: str
    run: str
    call: int
    mark: str
    """Identifies what was asked: the tool's definition and the arguments."""
    shown: dict[str, Any]
    """What a person needs to know of the call."""
    asked: float
    expires: float
    decision: dict[str, Any] | None = None
    """The answer: `kind`, `reason`, `by` and, for edited calls, `arguments` or the `changes` of them."""
    source: str = ""
    """The script, in a listing."""


class Questions:
    """The questions of one journal. The first answer to each counts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, *, repl: str, run: str, call: int, mark: str, shown: dict[str, Any], seconds: float) -> KeptQuestion:
        """Write a question, before anybody is asked. The kept one where the same call was asked about before."""
        now = self._backend.now()
        with self._backend.writing() as db:
            kept = self._read(db, "q.run = ? AND q.call = ?", (run, call))
            if kept is not None and kept.mark == mark and (kept.decision or {}).get("kind") != WITHDRAWN:
                return kept
            asked = KeptQuestion(
                id=secrets.token_hex(8),
                repl=repl,
                run=run,
                call=call,
                mark=mark,
                shown=shown,
                asked=now,
                expires=now + seconds,
            )
            db.change("DELETE FROM questions WHERE run = ? AND call = ?", (run, call))
            text = json.dumps({"mark": mark, "shown": shown})
            row = (asked.id, repl, run, call, text, now, asked.expires, None, None)
            db.change("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return asked

    def decision(self, question: KeptQuestion) -> dict[str, Any] | None:
        """What was answered so far; a question whose time is over is closed, and answered with `expired`."""
        with self._backend.reading() as db:
            kept = self._read(db, "q.id = ?", (question.id,))
        if kept is not None and kept.decision is None and self._backend.now() >= kept.expires:
            return self.settle(kept.id, {"kind": EXPIRED})
        return {"kind": WITHDRAWN} if kept is None else kept.decision

    def settle(self, id: str, decision: dict[str, Any]) -> dict[str, Any]:
        """Answer a question, unless it is answered. The answer that counts."""
        with self._backend.writing() as db:
            values = (json.dumps(decision), self._backend.now(), id)
            db.change("UPDATE questions SET decision = ?, answered = ? WHERE id = ? AND decision IS NULL", values)
            kept = self._read(db, "q.id = ?", (id,))
        return {"kind": WITHDRAWN} if kept is None or kept.decision is None else kept.decision

    def answer(self, id: str, decision: dict[str, Any]) -> None:
        """Answer a question from any process; raises UsageError where it is not open."""
        now = self._backend.now()
        with self._backend.writing() as db:
            kept = self._read(db, f"q.id = ?{self._backend.for_update}", (id,))
            if kept is None:
                raise UsageError(f"there is no approval {id[:40]!r}; `moonbox approvals list` lists those that wait")
            if kept.decision is not None or now >= kept.expires:
                raise UsageError(f"this approval is not open: {_closed(kept)}")
            if db.rows(f"SELECT 1 FROM questions AS q WHERE q.id = ? AND {_ENDED}", (id,)):
                raise UsageError("this approval is not open: its run has ended")
            db.change("UPDATE questions SET decision = ?, answered = ? WHERE id = ?", (json.dumps(decision), now, id))

    def pending(self) -> tuple[KeptQuestion, ...]:
        """The open questions, oldest first, each with its script."""
        now = self._backend.now()
        with self._backend.reading() as db:
            rows = db.rows(
                f"SELECT {_COLUMNS}, (SELECT b.data FROM events AS b WHERE b.run = q.run AND b.mark = 'b') "
                f"FROM questions AS q WHERE q.decision IS NULL AND q.expires > ? AND NOT {_ENDED} "
                f"ORDER BY q.asked LIMIT {_MOST_LISTED}",
                (now,),
            )
        return tuple(_kept(row, _source(begin)) for *row, begin in rows)

    def _read(self, db: Transaction, where: str, values: tuple[Any, ...]) -> KeptQuestion | None:
        rows = db.rows(f"SELECT {_COLUMNS} FROM questions AS q WHERE {where}", values)
        return _kept(rows[0]) if rows else None


def _kept(row: Any, source: str = "") -> KeptQuestion:
    id, repl, run, call, question, asked, expires, decision = row
    return KeptQuestion(
        id=id,
        repl=repl,
        run=run,
        call=call,
        **json.loads(question),
        asked=asked,
        expires=expires,
        decision=None if decision is None else json.loads(decision),
        source=source,
    )


def _source(begin: Any) -> str:
    records = [] if begin is None else decode(bytes(begin))
    return next((record.source for record in records if isinstance(record, Begin)), "")


def _closed(kept: KeptQuestion) -> str:
    """In words: why a question takes no answer."""
    kind = EXPIRED if kept.decision is None else kept.decision["kind"]
    if kind in (EXPIRED, WITHDRAWN):
        return "it has expired" if kind == EXPIRED else "its run no longer waits"
    by = (kept.decision or {}).get("by")
    return f"it was answered ({kind}{f' by {by}' if by else ''})"
