"""Handles: runs whose clients were told to come back for the result, each for its owner alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.durable.backends import Backend


class Handles:
    """The handles of one journal. A handle is dropped with the result, which is given once."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def keep(self, run: str, owner: str) -> None:
        """Write it, before the client is told."""
        begin = "SELECT ?, coalesce(max(repl), ''), ? FROM journal_runs WHERE id = ?"
        self._backend.change(f"INSERT INTO handles {begin}", (run, owner, run))

    def has(self, run: str, owner: str) -> bool:
        """Whether the run has a result to give to this owner. It may not have begun yet."""
        with self._backend.reading() as db:
            return bool(db.rows("SELECT 1 FROM handles WHERE run = ? AND owner = ?", (run, owner)))

    def drop(self, run: str, owner: str) -> bool:
        """Whether there was one of this owner."""
        return self._backend.change("DELETE FROM handles WHERE run = ? AND owner = ?", (run, owner)) > 0

    def dropped(self, runs: list[str]) -> list[str]:
        """Those of these runs that have no handle any more."""
        marks = ", ".join("?" * len(runs))
        with self._backend.reading() as db:
            kept = {str(row[0]) for row in db.rows(f"SELECT run FROM handles WHERE run IN ({marks})", tuple(runs))}
        return [run for run in runs if run not in kept]
