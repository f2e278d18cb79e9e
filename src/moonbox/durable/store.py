"""Journal: the events of Repls in a database. Each Repl has one writer at a time, held by a lease with a fence."""

from __future__ import annotations

import json
import os
import secrets
import threading
import weakref
from contextlib import ExitStack, suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from msgspec import Struct

from moonbox.durable.backends import Backend, PostgresBackend, SqliteBackend, Transaction
from moonbox.durable.index import IS_OPEN, JournalFilter, KnownRun, enter, enter_tools, find, find_one, forget
from moonbox.durable.leases import LEASE_SECONDS, Held, InUse, in_words, is_held, this_process
from moonbox.durable.watch import Watch
from moonbox.errors import ClosedError, JournalError, UsageError
from moonbox.runs.events import Begin, End, Environment, Patched, Record, Reset, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import Future

    from moonbox.durable.journaling import ReplJournal
    from moonbox.runs.record import RunClock

T = TypeVar("T")

WAIT = 30.0
KEPT_DAYS = 30.0
DURABILITIES = ("process", "machine")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to reach a database that is away
_PRUNE_SECONDS = 3600.0
_LONGEST_REASON = 1_000
_ALL_RUNS = JournalFilter()
_ALL = 1 << 62


class KnownRepl(Struct, frozen=True, kw_only=True):
    """A Repl of the journal."""

    id: str
    created: float
    language: str
    labels: dict[str, str]
    parent: str
    """The Repl that it was forked from; empty for others."""
    runs: int
    held_by: str
    """The process that uses it now, in words; empty where none does."""


class Journal:
    """Open it with `open_journal`. Thread-safe; shared by all Repls of a Sandbox."""

    def __init__(self, backend: Backend, *, max_days: float = KEPT_DAYS, wait: float = WAIT) -> None:
        self.backend = backend
        self.wait = wait
        """Seconds that a run waits for a database that is away or full."""
        self.suspended: set[str] = set()
        """Runs that this process stops but does not end: they stay interrupted, and another process resumes them."""
        self.recovering: dict[str, Future[Any]] = {}
        """Runs that go on by themselves in this process; a cancelled one is stopped."""
        self.max_days = max_days
        """Repls that were not used for so long are deleted; 0 keeps everything."""
        self.name = backend.name
        self._holder = this_process(secrets.token_hex(4))
        self._pid = os.getpid()
        self._closing = threading.Event()
        self._unreleased: set[Held] = set()
        self._held: set[str] = set()  # the Repls that this process may hold
        self._renewing: threading.Thread | None = None
        self._lock = threading.Lock()
        self.watch = Watch(backend)

    def patiently(self, work: Callable[[], T], repl: ReplJournal | None = None, clock: RunClock | None = None) -> T:
        """Do it, and where the database is away try again for a while, with the clock stopped, unless `repl` hurries.

        What is done must be safe to repeat: whether it took effect is not known when a connection is lost.
        """
        deadline, pause = monotonic() + self.wait, _FIRST_PAUSE

        def gives_up() -> bool:
            return monotonic() >= deadline or self._closing.is_set() or (repl is not None and repl.hurries)

        with ExitStack() as stopped:
            while True:
                try:
                    return work()
                except JournalError as problem:
                    if not problem.passing or gives_up():
                        raise
                if clock is not None:
                    stopped.enter_context(clock.standing_still())
                    clock = None
                again = monotonic() + pause
                while monotonic() < again and not gives_up():
                    self._closing.wait(_FIRST_PAUSE)
                pause = min(2 * pause, _LONGEST_PAUSE)

    # Leases

    def create(self, repl: str, language: str, labels: Mapping[str, str]) -> Held:
        """Enter a new Repl, held by this process. Where Ctrl-C came after that was written, it is done again."""
        now = self.backend.now()
        row = (repl, now, language, json.dumps(dict(labels)), "", 1, self._holder, now + LEASE_SECONDS)
        again = "ON CONFLICT (id) DO UPDATE SET expires = excluded.expires WHERE repls.holder = excluded.holder"
        again += " AND NOT EXISTS (SELECT 1 FROM events WHERE repl = repls.id)"
        self._held.add(repl)
        if self.backend.change(f"INSERT INTO repls VALUES (?, ?, ?, ?, ?, ?, ?, ?) {again}", row) != 1:
            raise UsageError(f"the {self.name} has a Repl {repl!r} already; restore it, or choose another id")
        self._renew_leases()
        return Held(repl=repl, fence=1)

    def take(self, repl: str) -> Held:
        """Hold a Repl; raises UsageError where there is none of that id, or a living process holds it."""
        self._release_late()
        now, held = self.backend.now(), Held(repl=repl, fence=0)
        try:
            with self.backend.writing() as db:
                lock = self.backend.for_update
                found = db.rows(f"SELECT fence, holder, expires FROM repls WHERE id = ?{lock}", (repl,))
                if not found:
                    raise self._unknown(repl)
                fence, holder, expires = found[0]
                if is_held(holder, expires, now):
                    raise InUse(f"the Repl {repl!r} is in use by {in_words(holder)}; close it there first")
                held = Held(repl=repl, fence=fence + 1)
                values = (self._holder, now + LEASE_SECONDS, repl)
                db.change("UPDATE repls SET fence = fence + 1, holder = ?, expires = ? WHERE id = ?", values)
            self._held.add(repl)
            self._renew_leases()
        except (KeyboardInterrupt, JournalError):  # the caller does not get the Repl, which may have been taken
            self.release(held)
            raise
        return held

    def release(self, held: Held) -> None:
        """Let others take the Repl: now, or when the database is there again."""
        self.release_late(held)
        with suppress(JournalError):
            self._release_late()

    def release_late(self, held: Held) -> None:
        """Let others take the Repl, at the next use of the journal or renewal of leases."""
        self._unreleased.add(held)

    def _release_late(self) -> None:
        for held in tuple(self._unreleased):
            with self.backend.writing() as db:
                self._let_go(db, held)
            self._unreleased.discard(held)

    def _let_go(self, db: Transaction, held: Held) -> None:
        values = (held.repl, held.fence, self._holder)
        db.change("UPDATE repls SET holder = '' WHERE id = ? AND fence = ? AND holder = ?", values)
        self._held.discard(held.repl)

    def _renew_leases(self) -> None:
        """Start the thread that does it, once."""
        with self._lock:
            if self._renewing is None:
                job = (weakref.ref(self), self._closing)
                self._renewing = threading.Thread(target=_renew, args=job, name="moonbox-leases", daemon=True)
                self._renewing.start()

    def renew(self) -> None:
        """Hold everything that this process holds for a while longer."""
        self._release_late()
        if not self._held:
            return
        values = (self.backend.now() + LEASE_SECONDS, self._holder)
        self.backend.change("UPDATE repls SET expires = ? WHERE holder = ?", values)

    # Events

    def append(self, held: Held, seq: int, run: str, records: list[Record], tools: Collection[str] = ()) -> None:
        """Write records as one event; raises JournalError where another process has taken the Repl.

        Done again, it has the same effect: the event may have been written although the connection was lost. `tools`
        are those that the run calls for the first time.
        """
        data = encode(records)
        mark = "b" * any(type(record) is Begin for record in records) + "e" * (type(records[-1]) is End)
        at = time() if mark else 0.0
        insert = (
            "INSERT INTO events SELECT id, ?, ?, ?, ?, ?, ? FROM repls WHERE id = ? AND fence = ?"
            + self.backend.for_share
            + " ON CONFLICT (repl, seq) DO NOTHING",
            (seq, run, mark, at, crc32(data), data, held.repl, held.fence),
        )
        if mark or tools or any(type(record) is Patched for record in records):
            with self.backend.writing() as db:
                written = db.change(*insert)
                if written == 1:
                    enter(db, self.backend, held.repl, records, at)
                    enter_tools(db, run, tools)
        else:
            written = self.backend.change(*insert)
        if written != 1 and not self._has(held, seq, data):
            raise JournalError(f"the Repl {held.repl!r} was taken over by another process, or deleted; stop using it")

    def _has(self, held: Held, seq: int, data: bytes) -> bool:
        """Whether this holder has written that event, and no other holder has taken the Repl since."""
        same = "SELECT e.data FROM events AS e, repls AS r WHERE e.repl = ? AND e.seq = ? AND r.id = ? AND r.fence = ?"
        with self.backend.reading() as db:
            found = db.rows(same, (held.repl, seq, held.repl, held.fence))
        return bool(found) and bytes(found[0][0]) == data

    def read(self, repl: str) -> list[list[Record]]:
        """The events of a Repl in their order; raises JournalError, with the place, where one is damaged."""
        with self.backend.reading() as db:
            rows = db.rows("SELECT seq, checksum, data FROM events WHERE repl = ? ORDER BY seq", (repl,))
        events = []
        for place, (seq, checksum, data) in enumerate(rows):
            try:
                if seq != place or crc32(data) != checksum:
                    raise ValueError
                events.append(decode(bytes(data)))
            except ValueError:
                raise JournalError(
                    f"the {self.name} is damaged: record {place} of the Repl {repl!r} cannot be read; "
                    "restore it from a copy; nothing was changed in it"
                ) from None
        return events

    def drop(self, held: Held, runs: Collection[str], *, resets: bool) -> int:
        """Take runs from the journal of a Repl; with `resets`, also those before its latest reset. How many there were.

        They stay in the index. What scripts find since then is kept.
        """
        gone: set[str] = {*runs}
        events = self.read(held.repl)
        latest = max((at for at, event in enumerate(events) if Reset() in event), default=-1) if resets else -1
        with self.backend.writing() as db:
            same = f"SELECT 1 FROM repls WHERE id = ? AND fence = ?{self.backend.for_update}"
            rows = db.rows("SELECT seq, run FROM events WHERE repl = ? ORDER BY seq", (held.repl,))
            if not db.rows(same, (held.repl, held.fence)) or len(rows) != len(events):
                raise JournalError(f"the Repl {held.repl!r} was taken over by another process; stop using it")
            place, dropped = 0, set()
            for seq, run in rows:
                kept = events[seq]
                if seq <= latest or run in gone:
                    dropped |= {run} - {""}
                    kept = [record for record in kept if isinstance(record, Environment)]
                    db.change("DELETE FROM events WHERE repl = ? AND seq = ?", (held.repl, seq))
                    if kept:
                        data = encode(kept)
                        row = (held.repl, place, "", "", 0.0, crc32(data), data)
                        db.change("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                else:
                    db.change("UPDATE events SET seq = ? WHERE repl = ? AND seq = ?", (place, held.repl, seq))
                place += bool(kept)
        return len(dropped)

    def copy(self, source: str, upto: int = _ALL) -> Held:
        """A new Repl, held by this process, that begins with the first events of another, and with its labels."""
        now, held = self.backend.now(), Held(repl=secrets.token_hex(6), fence=1)
        row = (held.repl, now, self._holder, now + LEASE_SECONDS, source)
        same = f"SELECT ?, ?, language, labels, id, 1, ?, ? FROM repls WHERE id = ?{self.backend.for_share}"
        events = "SELECT ?, seq, run, '', at, checksum, data FROM events WHERE repl = ? AND seq < ?"
        with self.backend.writing() as db:
            if not db.change(f"INSERT INTO repls {same}", row):
                raise self._unknown(source)
            db.change(f"INSERT INTO events {events}", (held.repl, source, upto))
        self._held.add(held.repl)
        self._renew_leases()
        return held

    def _unknown(self, repl: str) -> UsageError:
        return UsageError(f"the {self.name} has no Repl {repl!r}; `moonbox repls` lists those that it has")

    # Sleeping runs

    def fall_asleep(self, held: Held, run: str, until: float, questions: int) -> float:
        """Release a Repl whose run waits until then, or for the answers to so many questions; when the run goes on."""
        now, state = self.backend.now(), "waiting" if questions else "sleeping"
        change = "UPDATE journal_runs SET state = ?, wakes = ?, attempts = 1 WHERE id = ? AND repl = ?"
        with self.backend.writing() as db:
            db.change(change, (state, until, run, held.repl))  # an answer that comes now waits, and then wakes the run
            if questions:
                asked = db.rows("SELECT expires FROM questions WHERE run = ? AND decision IS NULL", (run,))
                until = min([until, *(expires for (expires,) in asked)]) if len(asked) == questions else now
                db.change(change, (state, until, run, held.repl))
            self._let_go(db, held)
        return until

    def awake(self, run: str) -> None:
        """The run goes on, or is begun again: once more since it has last come further."""
        change = "UPDATE journal_runs SET state = '', wakes = NULL, attempts = attempts + 1 WHERE id = ?"
        self.backend.change(f"{change} AND {IS_OPEN}", (run,))

    def park(self, run: str, reason: str) -> None:
        """Nothing continues the run by itself."""
        text = "CASE reason WHEN '' THEN '' ELSE '; ' || reason END"
        change = f"UPDATE journal_runs SET state = 'parked', wakes = NULL, reason = CAST(? AS TEXT) || {text}"
        self.backend.change(f"{change} WHERE id = ? AND {IS_OPEN}", (reason, run))

    def note(self, run: str, problem: str) -> None:
        """What became of an attempt to continue the run."""
        self.backend.change("UPDATE journal_runs SET reason = ? WHERE id = ?", (problem[:_LONGEST_REASON], run))

    def comes_further(self, run: str) -> None:
        self.backend.change("UPDATE journal_runs SET attempts = 1 WHERE id = ?", (run,))

    # Listings

    def repls(
        self, labels: Mapping[str, str] | None = None, *, most: int | None = None, skip: int = 0
    ) -> tuple[KnownRepl, ...]:
        """The latest first; only those with all of these labels. `skip` leaves out the first ones."""
        now, wanted = self.backend.now(), dict(labels or {})
        # As the column has them. In front of a quote that belongs to a name or a value is a backslash.
        texts = [before + json.dumps({name: text})[1:-1] for name, text in wanted.items() for before in "{ "]
        has = "(replace(labels, ?, '') <> labels OR replace(labels, ?, '') <> labels)"
        where = " AND ".join(["1 = 1", *[has] * len(wanted)])
        with self.backend.reading() as db:
            rows = db.rows(
                "SELECT id, created, language, labels, parent, holder, expires, "
                "(SELECT count(*) FROM journal_runs AS b WHERE b.repl = repls.id) "
                f"FROM repls WHERE {where} ORDER BY created DESC, id" + _page(most, skip),
                texts,
            )
        return tuple(
            KnownRepl(
                id=id,
                created=created,
                language=language,
                labels=json.loads(own),
                parent=parent,
                runs=runs,
                held_by=in_words(holder) if is_held(holder, expires, now) else "",
            )
            for id, created, language, own, parent, holder, expires, runs in rows
        )

    def count_runs(self) -> int:
        """How many there are."""
        with self.backend.reading() as db:
            return int(db.rows("SELECT count(*) FROM journal_runs")[0][0])

    def runs(
        self, wanted: JournalFilter = _ALL_RUNS, *, most: int | None = None, skip: int = 0
    ) -> tuple[KnownRun, ...]:
        """The latest first; only those that fit. `interrupted` is the state of those that a crash cut off."""
        self._release_late()
        depends = wanted.state in ("running", "interrupted")  # on whether their processes live
        now = self.backend.now()
        with self.backend.reading() as db:
            found = find(db, self.backend, wanted, "" if depends else _page(most, skip), now)
        if not depends:
            return tuple(found)
        last = None if most is None else skip + most
        return tuple(run for run in found if run.state == wanted.state)[skip:last]

    def known(self, run: str) -> KnownRun:
        """What is known of a run; raises UsageError where there is none of that id."""
        if (found := self.look_up(run)) is None:
            raise UsageError(f"the {self.name} has no run {run!r}; `moonbox runs` lists those that it has")
        return found

    def look_up(self, run: str) -> KnownRun | None:
        """The same; None where there is none."""
        self._release_late()
        now = self.backend.now()
        with self.backend.reading() as db:
            return find_one(db, run, now)

    def mark_undone(self, run: str, how: str) -> None:
        """The calls of the run were taken back: `yes`, or `partly`."""
        self.backend.change("UPDATE journal_runs SET undone = ? WHERE id = ?", (how, run))

    # The end

    def delete(self, repls: Sequence[str]) -> int:
        """Delete all that is known of these Repls; how many there were. Those in use are refused."""
        now = self.backend.now()
        with self.backend.writing() as db:
            for repl in repls:
                found = db.rows(f"SELECT holder, expires FROM repls WHERE id = ?{self.backend.for_update}", (repl,))
                if found and is_held(found[0][0], found[0][1], now):
                    raise UsageError(f"the Repl {repl!r} is in use by {in_words(found[0][0])}; close it there first")
            return sum(self._delete(db, repl) for repl in repls)

    def _delete(self, db: Transaction, repl: str) -> int:
        runs = "SELECT id FROM journal_runs WHERE repl = ?"  # a handle may be older than the run, and not name its Repl
        db.change(f"DELETE FROM handles WHERE repl = ? OR run IN ({runs})", (repl, repl))
        forget(db, self.backend, repl)
        for table in ("events", "questions"):
            db.change(f"DELETE FROM {table} WHERE repl = ?", (repl,))
        return db.change("DELETE FROM repls WHERE id = ?", (repl,))

    def unused(self, before: float, *, interrupted: bool = False) -> list[str]:
        """The Repls that nobody has used since then; on request also those with an interrupted run."""
        now = self.backend.now()
        unended = f"EXISTS (SELECT 1 FROM journal_runs AS b WHERE b.repl = r.id AND b.{IS_OPEN})"
        with self.backend.reading() as db:
            rows = db.rows(
                "SELECT r.id, r.holder, r.expires FROM repls AS r WHERE r.created < ? "
                "AND NOT EXISTS "
                "(SELECT 1 FROM journal_runs AS b WHERE b.repl = r.id AND (b.began >= ? OR b.ended >= ?))"
                + ("" if interrupted else f" AND NOT {unended}"),
                (before, before, before),
            )
        return [repl for repl, holder, expires in rows if not is_held(holder, expires, now)]

    def prune(self) -> None:
        """Delete what is older than `max_days`."""
        for repl in self.unused(self.backend.now() - self.max_days * 86_400) if self.max_days else ():
            with suppress(UsageError):  # a process has taken it in the meantime
                self.delete([repl])

    def close(self) -> None:
        """Release what this process holds, and close the database. Leases that cannot be released end by themselves."""
        self._closing.set()
        self.watch.close()
        if os.getpid() == self._pid:
            with suppress(JournalError):
                self.backend.change("UPDATE repls SET holder = '' WHERE holder = ?", (self._holder,))
            self.backend.close()


def open_journal(
    place: Any, *, durability: str = "process", create: bool = True, max_days: float = KEPT_DAYS, wait: float = WAIT
) -> Journal:
    """The journal that `Sandbox(journal=…)` names: a path, `postgresql://…`, or a Journal."""
    if isinstance(place, Journal):
        return place
    if durability not in DURABILITIES:
        raise UsageError(f"durability must be one of {', '.join(DURABILITIES)}, not {durability!r}")
    if isinstance(place, str) and place.partition("://")[0] in ("postgresql", "postgres"):
        return Journal(PostgresBackend(place), max_days=max_days, wait=wait)
    if not isinstance(place, str | os.PathLike) or not str(place):
        raise UsageError(f"journal must be a path or a postgresql:// address, not {place!r}")
    backend = SqliteBackend(os.fspath(place), machine=durability == "machine", create=create)
    return Journal(backend, max_days=max_days, wait=wait)


def _page(most: int | None, skip: int) -> str:
    return "" if most is None else f" LIMIT {most:d} OFFSET {skip:d}"


def _renew(journal: weakref.ref[Journal], closing: threading.Event) -> None:
    pruned = 0.0
    while (living := journal()) is not None:
        # Tried again soon, unless it was closed. Who takes the Repl in the meantime has a higher fence.
        with suppress(JournalError, ClosedError):
            if pruned:
                living.renew()
            if not pruned or monotonic() - pruned >= _PRUNE_SECONDS:
                pruned = monotonic()
                living.prune()
        del living
        if closing.wait(LEASE_SECONDS / 4):
            return
