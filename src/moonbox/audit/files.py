"""Trails in files: what is written and asked of each, whatever the file's format, and how it keeps its bounds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.audit.query import pick
from moonbox.audit.reader import RunReader
from moonbox.audit.records import DAMAGED, Call, Run, cut_off
from moonbox.audit.retention import Pruning, Retention
from moonbox.audit.tables import UNFINISHED
from moonbox.audit.writers import Writer, state_of_start
from moonbox.errors import AuditError

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator

    from moonbox.audit.chain import Verification

_LOOK_AGAIN = 60.0
"""Seconds after which a writer looks at the trail again, however little it has written."""
_LAST = "\U0010ffff"
"""No id has a character after this one."""


class FileTrail(RunReader):
    """A trail in a file. It can be pruned, also while others write to it, and its hash chain can be verified."""

    def __init__(self, path: str | os.PathLike[str], retention: Retention | None) -> None:
        self.path = Path(path)
        self._retention = retention or Retention(None, None, None)
        self._new_bytes = self._new_runs = 0
        self._looked = float("-inf")
        self._closed = False

    def write(self, run: Run) -> None:
        record = run.to_json()
        self._put("run", run.id, record, run)
        self._retain(len(record))

    def start_run(self, run: Run) -> None:
        """Write down a run that is about to make its first call."""
        data = {**run.to_dict(), "writer": Writer.current().to_dict()}
        self._put("run_started", run.id, json.dumps(data, separators=(",", ":")), run)

    def start_call(self, run: str, call: Call) -> None:
        """Write down a call of the run of that id before its tool is invoked."""
        self._put("call_started", run, json.dumps(call.to_dict(), separators=(",", ":")), call)

    def end_call(self, run: str, call: Call) -> None:
        """Write down what came of a call."""
        self._put("call_ended", run, json.dumps(call.to_dict(), separators=(",", ":")), call)

    def get(self, id: str) -> Run:
        with self._reading(prefix=id) as db:
            ids = db.execute("SELECT id FROM runs WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 7", (id, id + _LAST))
            return self._run(db, pick(id, [row[0] for row in ids]))

    def runs(self) -> Iterator[Run]:
        with self._reading() as db:
            for (id,) in db.execute("SELECT id FROM runs ORDER BY seq"):
                yield self._run(db, id)

    def _run(self, db: sqlite3.Connection, id: str) -> Run:
        kind, record = db.execute("SELECT kind, record FROM runs WHERE id = ?", (id,)).fetchone()
        calls = db.execute("SELECT record FROM intents WHERE run = ?", (id,)).fetchall()
        try:
            data = json.loads(record)
            run = Run.from_dict(data)
            if kind != UNFINISHED:
                return run
            return cut_off(run, [Call.from_dict(json.loads(call)) for (call,) in calls], state_of_start(data))
        except DAMAGED:
            raise AuditError(f"the record of run {id} in {self.path} is damaged, or was tampered with") from None

    def prune(
        self,
        *,
        older_than: float | None = None,
        keep: int | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> int:
        """Remove runs older than that many seconds, all but the latest `keep`, and the oldest past `max_bytes`.

        Returns their number.
        """
        return self._prune(Pruning(older_than, keep, max_bytes), dry_run=dry_run)

    def verify(self, *, expect: str | None = None) -> Verification:
        raise NotImplementedError

    def close(self) -> None:
        self._closed = True

    def _put(self, event: str, run: str, record: str, about: Run | Call) -> None:
        """Write the JSON of a "run", or what is known at "run_started", "call_started" and "call_ended"."""
        raise NotImplementedError

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        raise NotImplementedError

    def _size(self) -> int:
        """How many bytes the trail has."""
        raise NotImplementedError

    def _retain(self, written: int) -> None:
        """Prune the trail where it is past its bounds; not every call looks whether it is."""
        keep, now = self._retention, time.monotonic()
        self._new_bytes += written
        self._new_runs += 1
        is_due = (
            (keep.max_bytes is not None and self._new_bytes * 16 > keep.max_bytes)
            or (keep.max_runs is not None and self._new_runs * 16 > keep.max_runs)
            or now - self._looked > _LOOK_AGAIN
        )
        if not is_due or (choice := keep.pruning) is None:
            return
        self._new_bytes, self._new_runs, self._looked = 0, 0, now
        runs, oldest = 0, None
        if keep.max_runs is not None or keep.max_age is not None:  # else there is no need to look at the runs
            with self._reading(records=False) as db:
                runs, oldest = db.execute("SELECT count(*), min(started) FROM runs").fetchone()
        if (
            (keep.max_bytes is not None and self._size() > keep.max_bytes)
            or (keep.max_runs is not None and runs > keep.max_runs)
            or (keep.max_age is not None and oldest is not None and oldest < time.time() - keep.max_age)
        ):
            self._prune(choice)
