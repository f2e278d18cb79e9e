"""How long a trail keeps its runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOK_AGAIN = 60.0
"""Seconds after which a writer looks at the trail again, however little it has written."""


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
        """What is removed when it is time; None when everything is kept.

        Of bytes and runs a quarter more than necessary goes, so that not every run has the trail rewritten.
        """
        if self == Retention(None, None, None):
            return None
        return Pruning(
            self.max_age,
            None if self.max_runs is None else max(1, self.max_runs * 3 // 4),
            None if self.max_bytes is None else self.max_bytes * 3 // 4,
        )


class Prunable:
    """A trail in a file: runs can be removed from it, also while others write to it."""

    def __init__(self, retention: Retention | None) -> None:
        self._retention = retention or Retention(None, None, None)
        self._pruning = self._retention.pruning
        self._new_bytes = self._new_runs = 0
        self._looked = float("-inf")

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

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        raise NotImplementedError

    def _extent(self) -> tuple[int, int, float | None]:
        """How many runs and bytes the trail has, and when its oldest run began."""
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
        if self._pruning is None or not is_due:
            return
        self._new_bytes, self._new_runs, self._looked = 0, 0, now
        runs, size, oldest = self._extent()
        if (
            (keep.max_bytes is not None and size > keep.max_bytes)
            or (keep.max_runs is not None and runs > keep.max_runs)
            or (keep.max_age is not None and oldest is not None and oldest < time.time() - keep.max_age)
        ):
            self._prune(self._pruning)
