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

import msgspec
from msgspec import Struct

from moonbox.audit.writers import Writer
from moonbox.durable.backends import PostgresBackend, SqliteBackend
from moonbox.durable.records import Begin, End, Record, decode, encode
from moonbox.errors import ClosedError, JournalError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.durable.backends import Backend, Transaction
    from moonbox.runs.clock import RunClock

T = TypeVar("T")

LEASE_SECONDS = 20.0
"""A lease that its holder does not renew for so long is lost."""
WAIT = 30.0
DURABILITIES = ("process", "machine")
_GIVEN_UP = "given up"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to reach a database that is away
# An event that begins or ends a run, or does both, is marked with "b", "e" or "be". SQLite uses the index of marked
# events only where a statement says that the mark is not empty.
_BEGINS = "b.mark <> '' AND b.mark IN ('b', 'be')"
_ENDS = "e.run = b.run AND e.mark <> '' AND e.mark IN ('e', 'be')"
_UNENDED = f"NOT EXISTS (SELECT 1 FROM events AS e WHERE {_ENDS})"
_PRUNE_SECONDS = 3600.0


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


class KnownRun(Struct, frozen=True, kw_only=True):
    """A run of the journal."""

    id: str
    repl: str
    began: float
    state: str
    """`running`, `interrupted`, `given up`, `ok`, or the kind of its error."""
    source: str


class Held(Struct, frozen=True, kw_only=True):
    """The right to write to one Repl's journal, until another process takes it."""

    repl: str
    fence: int


class Journal:
    """Open it with `open_journal`. Thread-safe; shared by all Repls of a Sandbox."""

    def __init__(self, backend: Backend, *, max_days: float = 0, wait: float = WAIT) -> None:
        self.backend = backend
        self.wait = wait
        """Seconds that a run waits for a database that is away or full."""
        self.suspended: set[str] = set()
        """Runs that this process stops but does not end: they stay interrupted, and another process resumes them."""
        self.max_days = max_days
        """Repls that were not used for so long are deleted; 0 keeps everything."""
        self.name = backend.name
        self._holder = this_process(secrets.token_hex(4))
        self._pid = os.getpid()
        self._closing = threading.Event()
        self._unreleased: set[Held] = set()
        self._renewing: threading.Thread | None = None
        self._lock = threading.Lock()

    def patiently(
        self, work: Callable[[], T], hurry: threading.Event | None = None, clock: RunClock | None = None
    ) -> T:
        """Do it, and where the database is away try again for a while, with the clock stopped; `hurry` ends the wait.

        What is done must be safe to repeat: whether it took effect is not known when a connection is lost.
        """
        hurry = hurry or self._closing
        deadline, pause = monotonic() + self.wait, _FIRST_PAUSE
        with ExitStack() as stopped:
            while True:
                try:
                    return work()
                except JournalError as problem:
                    if not problem.passing or monotonic() >= deadline or hurry.is_set():
                        raise
                if clock is not None:
                    stopped.enter_context(clock.standing_still())
                    clock = None
                hurry.wait(min(pause, max(0.0, deadline - monotonic())))
                pause = min(2 * pause, _LONGEST_PAUSE)

    # Leases

    def create(self, repl: str, language: str, labels: Mapping[str, str], parent: str = "") -> Held:
        """Enter a new Repl, held by this process. Where Ctrl-C came after that was written, it is done again."""
        now = self.backend.now()
        row = (repl, now, language, json.dumps(dict(labels)), parent, 1, self._holder, now + LEASE_SECONDS)
        again = "ON CONFLICT (id) DO UPDATE SET expires = excluded.expires WHERE repls.holder = excluded.holder"
        again += " AND NOT EXISTS (SELECT 1 FROM events WHERE repl = repls.id)"
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
                    raise UsageError(f"the {self.name} has no Repl {repl!r}; `moonbox repls` lists those that it has")
                fence, holder, expires = found[0]
                if is_held(holder, expires, now):
                    raise UsageError(f"the Repl {repl!r} is in use by {in_words(holder)}; close it there first")
                held = Held(repl=repl, fence=fence + 1)
                values = (self._holder, now + LEASE_SECONDS, repl)
                db.change("UPDATE repls SET fence = fence + 1, holder = ?, expires = ? WHERE id = ?", values)
            self._renew_leases()
        except (KeyboardInterrupt, JournalError):  # the caller does not get the Repl, which may have been taken
            self.release(held)
            raise
        return held

    def release(self, held: Held) -> None:
        """Let others take the Repl: now, or when the database is there again."""
        self._unreleased.add(held)
        with suppress(JournalError):
            self._release_late()

    def _release_late(self) -> None:
        for held in tuple(self._unreleased):
            values = (held.repl, held.fence, self._holder)
            self.backend.change("UPDATE repls SET holder = '' WHERE id = ? AND fence = ? AND holder = ?", values)
            self._unreleased.discard(held)

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
        values = (self.backend.now() + LEASE_SECONDS, self._holder)
        self.backend.change("UPDATE repls SET expires = ? WHERE holder = ?", values)

    # Events

    def append(self, held: Held, seq: int, run: str, records: list[Record]) -> None:
        """Write records as one event; raises JournalError where another process has taken the Repl.

        Done again, it has the same effect: the event may have been written although the connection was lost.
        """
        data = encode(records)
        mark = "b" * any(type(record) is Begin for record in records) + "e" * (type(records[-1]) is End)
        written = self.backend.change(
            "INSERT INTO events SELECT id, ?, ?, ?, ?, ?, ? FROM repls WHERE id = ? AND fence = ?"
            + self.backend.for_share
            + " ON CONFLICT (repl, seq) DO NOTHING",
            (seq, run, mark, time() if mark else 0.0, crc32(data), data, held.repl, held.fence),
        )
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

    def copy(self, held: Held, source: str, upto: int) -> None:
        """Begin a new Repl's journal with the first events of another, and with its labels."""
        labels = "SELECT labels FROM repls WHERE id = ?"
        self.backend.change(f"UPDATE repls SET labels = coalesce(({labels}), labels) WHERE id = ?", (source, held.repl))
        self.backend.change(
            "INSERT INTO events SELECT ?, seq, run, '', at, checksum, data FROM events WHERE repl = ? AND seq < ?",
            (held.repl, source, upto),
        )

    # Listings

    def repls(
        self, labels: Mapping[str, str] | None = None, *, id: str = "", most: int | None = None, skip: int = 0
    ) -> tuple[KnownRepl, ...]:
        """The latest first; only those with all of these labels, or that one. `skip` leaves out the first ones."""
        now, wanted = self.backend.now(), dict(labels or {})
        # As the column has them. In front of a quote that belongs to a name or a value is a backslash.
        texts = [before + json.dumps({name: text})[1:-1] for name, text in wanted.items() for before in "{ "]
        has = "(replace(labels, ?, '') <> labels OR replace(labels, ?, '') <> labels)"
        where = " AND ".join(["1 = 1", *[has] * len(wanted), *["id = ?"] * bool(id)])
        values = (*texts, *[id] * bool(id))
        with self.backend.reading() as db:
            rows = db.rows(
                "SELECT id, created, language, labels, parent, holder, expires, "
                f"(SELECT count(*) FROM events AS b WHERE b.repl = id AND {_BEGINS}) "
                f"FROM repls WHERE {where} ORDER BY created DESC, id" + _page(most, skip),
                values,
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

    def language(self, run: str) -> str:
        """That of a run's Repl."""
        return self.repls(id=self.find_run(run))[0].language

    def count_runs(self) -> int:
        """How many there are."""
        with self.backend.reading() as db:
            return int(db.rows(f"SELECT count(*) FROM events AS b WHERE {_BEGINS}")[0][0])

    def runs(self, *, interrupted: bool = False, most: int | None = None, skip: int = 0) -> tuple[KnownRun, ...]:
        """The latest first; on request only those that a crash cut off."""
        self._release_late()
        now = self.backend.now()
        with self.backend.reading() as db:
            rows = db.rows(
                "SELECT b.run, b.repl, b.at, b.data, r.holder, r.expires, "
                f"(SELECT e.data FROM events AS e WHERE {_ENDS}) "
                f"FROM events AS b JOIN repls AS r ON r.id = b.repl WHERE {_BEGINS} "
                f"{f'AND {_UNENDED}' if interrupted else ''} ORDER BY b.at DESC, b.seq DESC, b.run" + _page(most, skip)
            )
        runs = []
        for run, repl, began, data, holder, expires, ended in rows:
            source = next(each.source for each in decode(bytes(data)) if isinstance(each, Begin))
            state = "running" if is_held(holder, expires, now) else "interrupted"
            if ended is not None:
                state = next(each.outcome for each in decode(bytes(ended)) if isinstance(each, End))
                state = _GIVEN_UP if state == "interrupted" else state
            if not interrupted or state == "interrupted":
                runs.append(KnownRun(id=run, repl=repl, began=began, state=state, source=source))
        return tuple(runs)

    def find_run(self, run: str) -> str:
        """The Repl of the run with that id; raises UsageError where there is none."""
        with self.backend.reading() as db:
            found = db.rows("SELECT repl FROM events WHERE run = ? AND mark <> ''", (run,))
        if not found:
            raise UsageError(f"the {self.name} has no run {run!r}; `moonbox runs` lists those that it has")
        return str(found[0][0])

    def whereabouts(self, run: str) -> tuple[str, bool, bool]:
        """The Repl of a run, whether the run has ended, and whether a living process uses the Repl."""
        self._release_late()
        repl, now = self.find_run(run), self.backend.now()
        with self.backend.reading() as db:
            ended = db.rows(f"SELECT 1 FROM events AS e, events AS b WHERE b.run = ? AND {_BEGINS} AND {_ENDS}", (run,))
            found = db.rows("SELECT holder, expires FROM repls WHERE id = ?", (repl,))
        return repl, bool(ended), bool(found) and is_held(found[0][0], found[0][1], now)

    # The end

    def delete(self, repls: Sequence[str]) -> int:
        """Delete all that is known of these Repls; how many there were. Those in use are refused."""
        now = self.backend.now()
        with self.backend.writing() as db:
            for repl in repls:
                found = db.rows(f"SELECT holder, expires FROM repls WHERE id = ?{self.backend.for_update}", (repl,))
                if found and is_held(found[0][0], found[0][1], now):
                    raise UsageError(f"the Repl {repl!r} is in use by {in_words(found[0][0])}; close it there first")
            return sum(_delete(db, repl) for repl in repls)

    def unused(self, before: float, *, interrupted: bool = False) -> list[str]:
        """The Repls that nobody has used since then; on request also those with an interrupted run."""
        now = self.backend.now()
        unended = f"EXISTS (SELECT 1 FROM events AS b WHERE b.repl = r.id AND {_BEGINS} AND {_UNENDED})"
        with self.backend.reading() as db:
            rows = db.rows(
                "SELECT r.id, r.holder, r.expires FROM repls AS r WHERE r.created < ? "
                "AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.repl = r.id AND e.at >= ?)"
                + ("" if interrupted else f" AND NOT {unended}"),
                (before, before),
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
        if os.getpid() == self._pid:
            with suppress(JournalError):
                self.backend.change("UPDATE repls SET holder = '' WHERE holder = ?", (self._holder,))
            self.backend.close()


def open_journal(
    place: Any, *, durability: str = "process", create: bool = True, max_days: float = 0, wait: float = WAIT
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


def _delete(db: Transaction, repl: str) -> int:
    for table in ("events", "questions", "handles"):
        db.change(f"DELETE FROM {table} WHERE repl = ?", (repl,))
    return db.change("DELETE FROM repls WHERE id = ?", (repl,))


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


def this_process(journal: str) -> str:
    """The name under which this process holds leases through one open journal."""
    return f"{journal} {msgspec.json.encode(Writer.current()).decode()}"


def is_held(holder: str, expires: float, now: float) -> bool:
    """Whether the lease still counts. A dead process loses it at once, where its death can be seen."""
    if not holder or expires <= now:
        return False
    process = _process(holder)
    return process is None or process.state() != "interrupted"


def in_words(holder: str) -> str:
    """For messages."""
    process = _process(holder)
    if process is None:
        return "another process"
    return f"process {process.pid}" + ("" if process.state() == "running" else " in another container or machine")


def _process(holder: str) -> Writer | None:
    """None for the name of an earlier version."""
    try:
        return msgspec.json.decode(holder.partition(" ")[2], type=Writer)
    except msgspec.DecodeError:
        return None
