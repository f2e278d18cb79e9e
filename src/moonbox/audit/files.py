"""Trails in files: what is written and asked of each, whatever the file's format, and how it keeps its bounds."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from moonbox.audit.query import UNFINISHED, RunReader, pick
from moonbox.audit.records import DAMAGED, Call, Run, cut_off
from moonbox.audit.writers import Writer, state_of_start
from moonbox.errors import AuditError, UsageError

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator, Sequence

    from moonbox.audit.chain import Verification

_LOOK_AGAIN = 60.0
"""Seconds after which a writer looks at the trail again, however little it has written."""
_LAST = "\U0010ffff"
"""No id has a character after this one."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """A run is removed when it began more than `older_than` seconds ago, when `keep` others began after it,
    or when those written after it take `max_bytes` already."""

    older_than: float | None = None
    keep: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.older_than is None and self.keep is None and self.max_bytes is None:
            raise UsageError("prune needs older_than=SECONDS, keep=COUNT or max_bytes=BYTES")
        if any(value is not None and value < 0 for value in (self.older_than, self.keep, self.max_bytes)):
            raise UsageError("older_than, keep and max_bytes must not be negative")

    def of_runs(self, runs: Sequence[tuple[str, float, int]]) -> set[str]:
        """The ids of the runs to remove, of all runs as (id, started, bytes) in the order they were written."""
        removed = set[str]()
        if self.older_than is not None:
            border = time.time() - self.older_than
            removed = {id for id, started, _ in runs if started < border}
        if self.keep is not None:
            latest = sorted(((started, place, id) for place, (id, started, _) in enumerate(runs)), reverse=True)
            removed.update(id for _, _, id in latest[self.keep :])
        if self.max_bytes is not None:
            left = self.max_bytes
            for id, _, size in reversed(runs):
                if id not in removed:
                    left -= size
                    if left < 0:
                        removed.add(id)
        return removed


@dataclass(frozen=True, slots=True)
class Retention:
    """What a trail keeps by itself: runs past these bounds are removed as new ones are written."""

    max_age: float | None = None
    """Seconds since a run began."""
    max_runs: int | None = None
    max_bytes: int | None = 1_000_000_000

    def __post_init__(self) -> None:
        if any(value is not None and value <= 0 for value in (self.max_age, self.max_runs, self.max_bytes)):
            raise UsageError("max_age, max_runs and max_bytes of a Retention must be above 0")

    @property
    def pruning(self) -> Pruning | None:
        """What a pruning removes: a quarter more bytes and runs than necessary, so that it is rare. None keeps all."""
        if self == Retention(None, None, None):
            return None
        return Pruning(
            self.max_age,
            None if self.max_runs is None else max(1, self.max_runs * 3 // 4),
            None if self.max_bytes is None else self.max_bytes * 3 // 4,
        )


class FileTrail(RunReader):
    """A trail in a file. It can be pruned, also while others write to it, and its hash chain can be verified."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        create: bool = True,
        retention: Retention | None = None,
    ) -> None:
        self.path = Path(path)
        self._retention = retention or Retention(None, None, None)
        self._new_bytes = self._new_runs = 0
        self._looked = float("-inf")
        self._closed = False
        self._open(create=create, fsync=fsync)

    def write(self, run: Run) -> None:
        record = run.to_json()
        self._put("run", run.id, record, run)
        self._retain(len(record))

    def start_run(self, run: Run) -> None:
        """Write down a run that is about to make its first call."""
        data = {**run.to_dict(), "writer": asdict(Writer.current())}
        self._put("run_started", run.id, json.dumps(data, separators=(",", ":")), run)

    def start_call(self, run: str, call: Call) -> None:
        """Write down a call of the run of that id before its tool is invoked."""
        self._put("call_started", run, json.dumps(call.to_dict(), separators=(",", ":")), call)

    def end_call(self, run: str, call: Call) -> None:
        """Write down the end of a call."""
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

    def _open(self, *, create: bool, fsync: bool) -> None:
        raise NotImplementedError

    def _put(self, event: str, run: str, record: str, about: Run | Call) -> None:
        """Write the JSON of a "run", or what is known at "run_started", "call_started" and "call_ended"."""
        raise NotImplementedError

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        raise NotImplementedError

    def _size(self) -> int:
        """How many bytes the trail has."""
        raise NotImplementedError

    def _retain(self, written: int) -> None:
        """Prune the trail if it exceeds its bounds. Only some calls check that."""
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
