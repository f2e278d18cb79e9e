"""Questions: calls that wait for a person, kept in a journal until any process answers them or they expire."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.durable.index import IS_OPEN
from moonbox.errors import UsageError

if TYPE_CHECKING:
    from moonbox.durable.backends import Backend, Transaction

EXPIRED, WITHDRAWN = "expired", "withdrawn"
_MOST_LISTED = 1_000
_ENDED = f"coalesce(NOT b.{IS_OPEN}, FALSE)"


class KeptQuestion(Struct, frozen=True):
    """A question of the journal."""

    id: str
    mark: str
    """Identifies what was asked: the tool's definition and the arguments."""
    shown: dict[str, Any]
    """What a person needs to know of the call."""
    asked: float
    expires: float
    decision: dict[str, Any] | None
    """The answer: `kind`, `reason`, `by` and, for edited calls, `arguments` or the `changes` of them."""
    ended: bool
    """Whether its run is over."""
    source: str = ""
    """The script, in a listing."""

    def closed(self, now: float) -> str:
        """Why it takes no answer, in words; empty for an open one."""
        if self.decision is None:
            return "it has expired" if now >= self.expires else "its run has ended" if self.ended else ""
        by = self.decision.get("by")
        return f"it was answered ({self.decision['kind']}{f' by {by}' if by else ''})"


class Questions:
    """The questions of one journal. The first answer to each counts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, shown: dict[str, Any], call: int, mark: str, seconds: float) -> KeptQuestion:
        """Write a question, before anybody is asked. The kept one where the same call was asked about before."""
        now, which = self._backend.now(), (shown["run"], call)
        with self._backend.writing() as db:
            kept = _read(db, "q.run = ? AND q.call = ?", which)
            if kept and kept[0].mark == mark and (kept[0].decision or {}).get("kind") != WITHDRAWN:
                return kept[0]
            db.change("DELETE FROM questions WHERE run = ? AND call = ?", which)
            text = json.dumps({"mark": mark, "shown": shown})
            row = (secrets.token_hex(8), shown["repl"], *which, text, now, now + seconds, None, None)
            db.change("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            return _read(db, "q.id = ?", row[:1])[0]

    def decision(self, question: KeptQuestion) -> dict[str, Any] | None:
        """What was answered so far; a question whose time is over is answered with `expired`."""
        with self._backend.reading() as db:
            kept = _read(db, "q.id = ?", (question.id,))
        if kept and kept[0].decision is None and self._backend.now() < question.expires:
            return None
        return self.settle(question.id, {"kind": EXPIRED})

    def settle(self, id: str, decision: dict[str, Any]) -> dict[str, Any]:
        """Answer a question, unless it is answered. The answer that counts."""
        now = self._backend.now()
        with self._backend.writing() as db:
            _answer(self._backend, db, id, decision, now)
            kept = _read(db, "q.id = ?", (id,))
        return (kept[0].decision if kept else None) or {"kind": WITHDRAWN}

    def answer(self, id: str, decision: dict[str, Any]) -> None:
        """Answer a question from any process; raises UsageError where it is not open."""
        now = self._backend.now()
        with self._backend.writing() as db:
            if self._backend.for_update:
                db.rows(f"SELECT 1 FROM questions WHERE id = ?{self._backend.for_update}", (id,))
            kept = _read(db, "q.id = ?", (id,))
            if not kept:
                raise UsageError(f"there is no approval {id[:40]!r}; `moonbox approvals list` lists those that wait")
            if why := kept[0].closed(now):
                raise UsageError(f"this approval is not open: {why}")
            _answer(self._backend, db, id, decision, now)

    def pending(self) -> tuple[KeptQuestion, ...]:
        """The open questions, oldest first, each with its script."""
        where = f"q.decision IS NULL AND q.expires > ? AND NOT {_ENDED} ORDER BY q.asked LIMIT {_MOST_LISTED}"
        now = self._backend.now()
        with self._backend.reading() as db:
            return tuple(_read(db, where, (now,), with_source=True))


def comes_through_journal(approve: Any) -> bool:
    """Whether the answers of this approver come through the journal, so that nothing need wait for them here."""
    inbox = getattr(approve, "__self__", None)
    return approve is None or getattr(inbox, "answers_in_journal", False) is True


def _answer(backend: Backend, db: Transaction, id: str, decision: dict[str, Any], now: float) -> None:
    """Answer a question that is open; a run that sleeps until then goes on."""
    values = (json.dumps(decision), now, id)
    if db.change("UPDATE questions SET decision = ?, answered = ? WHERE id = ? AND decision IS NULL", values):
        ((run,),) = db.rows("SELECT run FROM questions WHERE id = ?", (id,))
        db.change("UPDATE journal_runs SET wakes = ? WHERE id = ? AND state = 'waiting'", (now, run))
        backend.notify(db, run)


def _read(db: Transaction, where: str, values: tuple[Any, ...], *, with_source: bool = False) -> list[KeptQuestion]:
    columns = f"q.id, q.question, q.asked, q.expires, q.decision, {_ENDED}, {'b.source' if with_source else 'NULL'}"
    kept = []
    for id, question, asked, expires, decision, ended, source in db.rows(
        f"SELECT {columns} FROM questions AS q LEFT JOIN journal_runs AS b ON b.id = q.run WHERE {where}", values
    ):
        about, answer = json.loads(question), None if decision is None else json.loads(decision)
        kept.append(KeptQuestion(id, about["mark"], about["shown"], asked, expires, answer, bool(ended), source or ""))
    return kept
