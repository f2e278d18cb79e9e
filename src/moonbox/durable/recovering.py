"""Recovery by itself: runs that no process continues go on here, if no call of theirs is in doubt."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.durable.index import KnownRun, select
from moonbox.durable.leases import LEASE_SECONDS
from moonbox.durable.recorded import RecordedRun, read_runs
from moonbox.durable.undoing import LABEL
from moonbox.durable.watch import Asleep
from moonbox.errors import ClosedError, JournalError, MoonboxError
from moonbox.runs.events import Environment, Record
from moonbox.tools.naming import safe_alias
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.durable.store import Journal
    from moonbox.tools.toolbox import Toolbox

MOST_ATTEMPTS = 3
"""A run that has ended its process so often, and came no further, is parked."""
_MOST_AT_ONCE = 8
_GRACE = 0.2  # seconds in which the process wakes a run whose caller waits there


class Recovering(Protocol):
    """A Sandbox, which stands above this layer, as far as it continues runs."""

    @property
    def closed(self) -> bool: ...
    @property
    def language(self) -> str: ...
    @property
    def toolbox(self) -> Toolbox: ...
    def in_doubt(self, recorded: RecordedRun) -> bool: ...
    def options_for(self, run: KnownRun) -> dict[str, Any] | None: ...
    def continue_run(self, run: str, options: dict[str, Any]) -> Future[Any]: ...


class Recoverer:
    """Looks for such runs at the start, when a run's time has come or an answer, and when leases may have ended."""

    def __init__(self, journal: Journal, sandbox: Callable[[], Recovering | None]) -> None:
        self._journal = journal
        self._sandbox = sandbox
        self._due = threading.Event()
        self._left: set[tuple[str, int]] = set()  # runs in doubt, with their attempts
        self._lacking: dict[tuple[str, int], int] = {}  # runs whose tools were missing at that revision of the toolbox
        journal.watch.tell(self._due.set)
        threading.Thread(target=self._run, name="moonbox-recovery", daemon=True).start()

    def _run(self) -> None:
        pause = 0.0
        while True:
            self._due.wait(pause)
            self._due.clear()
            sandbox = self._sandbox()
            if sandbox is None or sandbox.closed:
                return
            pause = LEASE_SECONDS
            try:
                self._look(sandbox)
                pause = self._next()
            except ClosedError:
                return
            except MoonboxError:  # the journal is away
                pass
            del sandbox

    def _look(self, sandbox: Recovering) -> None:
        """Continue what can be continued."""
        under_way: set[Future[Any]] = set()
        for run in self._found(sandbox):
            if run.attempts >= MOST_ATTEMPTS:
                self._journal.park(run.id, f"it ended its process {run.attempts} times")
                continue
            options = sandbox.options_for(run)
            if options is None:
                self._left.add((run.id, run.attempts))
            if options is None or not self._can_continue(run, sandbox):
                continue
            if len(under_way) == _MOST_AT_ONCE:
                under_way = wait(under_way, return_when="FIRST_COMPLETED").not_done
            self._journal.recovering[run.id] = future = sandbox.continue_run(run.id, options)
            future.add_done_callback(partial(self._ended, run.id, run.attempts))
            under_way.add(future)
        wait(under_way, timeout=LEASE_SECONDS)

    def _found(self, sandbox: Recovering) -> list[KnownRun]:
        now, journal = time(), self._journal
        with journal.backend.reading() as db:
            rest = "WHERE r.language = ? AND (b.state = '' OR b.wakes <= ?) ORDER BY b.n"
            found = select(db, rest, (sandbox.language, now - _GRACE), now)
        here = journal.watch.runs | journal.suspended
        revision = sandbox.toolbox.revision
        return [
            run
            for run in found
            if not run.in_use and run.id not in here and (run.id, run.attempts) not in self._left
            if LABEL not in run.labels  # an undoing has tools of its own
            if self._lacking.get((run.id, run.attempts)) != revision
        ]

    def _can_continue(self, run: KnownRun, sandbox: Recovering) -> bool:
        """Whether no call is in doubt, and the tools of the script are here; otherwise it is left."""
        revision, events = sandbox.toolbox.revision, self._journal.read(run.repl)
        recorded = next((each for each in read_runs(events) if each.begin.run == run.id), None)
        missing = _missing(events, run.source, sandbox.toolbox)
        if missing:
            self._lacking[run.id, run.attempts] = revision
            self._journal.note(run.id, f"{counted(len(missing), 'tool')} of it missing: {', '.join(missing[:5])}")
            return False
        if recorded is None or recorded.end is not None or sandbox.in_doubt(recorded):
            self._left.add((run.id, run.attempts))
            return False
        return True

    def _ended(self, run: str, attempts: int, done: Future[Any]) -> None:
        self._journal.recovering.pop(run, None)
        problem = None if done.cancelled() else done.exception()
        if problem is None or isinstance(problem, Asleep):
            self._due.set()  # the journal may have more
        elif not isinstance(problem, ClosedError | JournalError):
            self._left.add((run, attempts))
            with suppress(MoonboxError):
                self._journal.note(run, str(problem))

    def _next(self) -> float:
        """Seconds until the next look."""
        with self._journal.backend.reading() as db:
            ((wakes,),) = db.rows("SELECT min(wakes) FROM journal_runs WHERE wakes > ?", (time() - _GRACE,))
        return LEASE_SECONDS if wakes is None else min(LEASE_SECONDS, max(0.0, wakes + _GRACE - time()))


def _missing(events: list[list[Record]], source: str, toolbox: Toolbox) -> list[str]:
    """The tools that the script may name and that were there when it began, but are not here."""
    found = [record for records in events for record in records if isinstance(record, Environment)]
    gone = [path for path in (found[-1].tools if found else ()) if path not in toolbox]
    return [path for path in gone if any(word in source for word in (path, safe_alias(path).partition(".")[0]))]
